"""Shared wording: lists of candidates and near misses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from opspec.diagnostics import Diagnostic, Note
from opspec.source import Span


def in_statement(diagnostic: Diagnostic, statement: Span | None) -> Diagnostic:
    """With the statement as a note, where the place is in a function that it calls."""
    span = diagnostic.span
    if statement is None or span is None:
        return diagnostic
    if span.source is statement.source and statement.start <= span.start <= statement.end:
        return diagnostic
    note = Note("called from here", statement)
    return replace(diagnostic, notes=(*diagnostic.notes, note))


def short(text: str, limit: int = 60) -> str:
    """A piece of a spec on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


def nearest(name: str, candidates: Iterable[str]) -> str:
    """``did you mean `…`?`` for a near miss, else the empty string."""
    known = [c for c in candidates if c]
    lowered = {c.lower(): c for c in known}
    if name.lower() in lowered:
        return f"did you mean `{lowered[name.lower()]}`?"
    found = get_close_matches(name[:60], known, n=1, cutoff=0.6)
    return f"did you mean `{found[0]}`?" if found else ""


def listing(candidates: Iterable[str], limit: int = 12) -> str:
    """`` `a`, `b` and 3 more``."""
    names = sorted(set(candidates))
    shown = ", ".join(f"`{n}`" for n in names[:limit])
    more = len(names) - limit
    return f"{shown} and {more} more" if more > 0 else shown


def suggest(name: str, candidates: Iterable[str], what: str) -> str:
    """The near miss if there is one, else the whole list."""
    names = list(candidates)
    close = nearest(name, names)
    if close:
        return close
    return f"{what}: {listing(names)}" if names else ""
