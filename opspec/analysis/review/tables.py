"""The tables of a review's comment: formulas, numbers, times by machine, crossings by machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opspec.analysis.review.escape import code
from opspec.analysis.review.model import Crossing, FormChange, NumberChange
from opspec.analysis.review.wording import change, exponents, number

ROWS = 40
_COLUMNS = 6


def forms(found: Sequence[FormChange], *, alone: bool) -> list[str]:
    """Closed forms of an op that is new or gone (``alone``), or before and after."""
    if not found:
        return []
    if alone:
        rows = [(code(f.quantity) + of(f.boundary), code(f.after or f.before)) for f in found]
        return table(("form", "closed form"), rows)
    changed = []
    for f in found:
        grows = "; ".join(f"{code(d)}: {how}" for d, how in exponents(f)) or "same"
        leads = (
            ""
            if f.dominant_before == f.dominant_after
            else f"{_term(f.dominant_before)} → {_term(f.dominant_after)}"
        )
        changed.append((code(f.quantity) + of(f.boundary), code(f.before), code(f.after), leads, grows))
    return table(("form", "before", "after", "largest term", "exponents"), changed)


def _term(text: str) -> str:
    return code(text) or "all of it"


def numbers(found: Sequence[NumberChange]) -> list[str]:
    """Counts, a row each; then times, a row a machine and a column a workload."""
    counts = [n for n in found if not n.machine]
    rows = [
        (
            code(n.workload),
            code(n.quantity) + of(n.boundary),
            number(n.before, n.unit),
            number(n.after, n.unit),
            change(n),
        )
        for n in counts[:ROWS]
    ]
    lines = table(("workload", "number", "before", "after", "change"), rows) if rows else []
    if len(counts) > ROWS:
        lines += [f"… and {len(counts) - ROWS} more numbers.", ""]
    return lines + _times([n for n in found if n.machine])


def _times(found: Sequence[NumberChange]) -> list[str]:
    """The model's times."""
    cells = {(n.machine, code(n.workload) + of(n.boundary)): _cell(n) for n in found}
    return _by_machine("time on", cells, "workloads")


def _cell(n: NumberChange) -> str:
    if n.before is None or n.after is None:
        return number(n.after if n.before is None else n.before, n.unit)
    return f"{number(n.before, n.unit)} → {number(n.after, n.unit)} ({change(n)})"


def crossings(found: Sequence[Crossing]) -> list[str]:
    """Where the ridge is crossed, a row a machine and a column a dim of a workload."""
    cells = {(c.machine, f"{code(c.workload)} along {code(c.dim)}"): _moved(c) for c in found}
    lines = _by_machine("on", cells, "crossings")
    return ["Crossing of `ai.tensor` and the ridge:", "", *lines] if lines else []


def _moved(c: Crossing) -> str:
    """``compute-bound from 163 → 20``; what both sides say stands once."""
    start, there, end = c.after.partition(" from ")
    return f"{c.before} → {end if there and c.before.startswith(start + there) else c.after}"


def _by_machine(head: str, cells: Mapping[tuple[str, str], str], what: str) -> list[str]:
    """Tables of (machine, column) → cell, a few columns each."""
    machines = list(dict.fromkeys(m for m, _ in cells))
    columns = list(dict.fromkeys(c for _, c in cells))
    lines: list[str] = []
    for k in range(0, min(len(columns), ROWS), _COLUMNS):
        some = columns[k : k + _COLUMNS]
        rows = [(code(m), *(cells.get((m, c), "–") for c in some)) for m in machines[:ROWS]]
        lines += table((head, *some), rows)
    more = len(columns) - ROWS
    return [*lines, f"… and {more} more {what}.", ""] if more > 0 else lines


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; every cell is Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(r)} |" for r in rows), ""]


def of(boundary: str) -> str:
    """`` of `fused` ``."""
    return f" of {code(boundary)}" if boundary else ""
