"""The tables of a review's comment: formulas, numbers, times by machine, crossings by machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    columns = list(dict.fromkeys((n.workload, n.boundary) for n in found))
    machines = list(dict.fromkeys(n.machine for n in found))
    cells = {(n.machine, n.workload, n.boundary): _cell(n) for n in found}
    lines: list[str] = []
    for k in range(0, min(len(columns), ROWS), _COLUMNS):
        some = columns[k : k + _COLUMNS]
        head = ("time on", *(code(w) + of(b) for w, b in some))
        rows = [(code(m), *(cells.get((m, *c), "–") for c in some)) for m in machines[:ROWS]]
        lines += table(head, rows)
    more = len(columns) - ROWS
    return [*lines, f"… and {more} more workloads.", ""] if more > 0 else lines


def _cell(n: NumberChange) -> str:
    if n.before is None or n.after is None:
        return number(n.after if n.before is None else n.before, n.unit)
    return f"{number(n.before, n.unit)} → {number(n.after, n.unit)} ({change(n)})"


def crossings(found: Sequence[Crossing]) -> list[str]:
    """Where the ridge is crossed: machines on which the same happens share a row."""
    grouped: dict[tuple[str, str, str, str], list[str]] = {}
    for c in found:
        grouped.setdefault((c.workload, c.dim, c.before, c.after), []).append(c.machine)
    rows = [
        (code(w), code(d), ", ".join(map(code, machines)), before, after)
        for (w, d, before, after), machines in grouped.items()
    ]
    if not rows:
        return []
    lines = ["Crossing of `ai.tensor` and the ridge:", ""]
    lines += table(("workload", "along", "on", "before", "after"), rows[:ROWS])
    return [*lines, f"… and {len(rows) - ROWS} more.", ""] if len(rows) > ROWS else lines


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; every cell is Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(r)} |" for r in rows), ""]


def of(boundary: str) -> str:
    """`` of `fused` ``."""
    return f" of {code(boundary)}" if boundary else ""
