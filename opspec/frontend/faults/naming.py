"""Shared wording: lists of candidates and near misses."""

from __future__ import annotations

from dataclasses import replace

from opspec.diagnostics import Diagnostic, Note
from opspec.diagnostics.hints import listing, nearest, suggest
from opspec.source import Span

__all__ = ["in_statement", "listing", "nearest", "short", "suggest"]


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
