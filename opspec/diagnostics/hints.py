"""Words for what was probably meant: near misses and lists of what there is."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 60


def nearest(name: str, candidates: Iterable[str]) -> str:
    """``did you mean `…`?`` for a near miss, else the empty string."""
    from difflib import get_close_matches

    known = [c for c in candidates if c]
    lowered = {c.lower(): c for c in known}
    if name.lower() in lowered:
        return f"did you mean `{lowered[name.lower()]}`?"
    found = get_close_matches(name[:_LONGEST], known, n=1, cutoff=0.6)
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
