"""Lines of ``expect`` blocks on both sides."""

from __future__ import annotations

from opspec.analysis.expectations import check_expectations, in_one_line
from opspec.analysis.review.model import BudgetChange
from opspec.ir.program import Module


def compare_budgets(base: Module | None, head: Module | None) -> tuple[BudgetChange, ...]:
    """Budgets that are broken now, were before, came or went. A budget that holds on both sides is silent."""
    before, after = _verdicts(base), _verdicts(head)
    found: list[BudgetChange] = []
    for key in dict.fromkeys([*after, *before]):
        workload, text = key
        now, was = after.get(key), before.get(key)
        if now:
            standing = "still broken" if was else "broken"
        elif now is None:
            standing = "removed"
        elif was is None:
            standing = "added"
        elif was:
            standing = "mended"
        else:
            continue
        if standing in ("added", "removed") and (base is None or head is None):
            continue
        found.append(BudgetChange(workload=workload, text=text, standing=standing, message=now or ""))  # type: ignore[arg-type]
    return tuple(found)


def _verdicts(module: Module | None) -> dict[tuple[str, str], str]:
    """(workload, line) → why it does not hold, or an empty text."""
    if module is None or not module.expectations:
        return {}
    lines = {(e.workload, in_one_line(e)): "" for e in module.expectations}
    spans = {e.span: (e.workload, in_one_line(e)) for e in module.expectations}
    for d in check_expectations(module):
        inside = (k for s, k in spans.items() if s and d.span and s.start <= d.span.start <= s.end)
        key = next(inside, None)
        if key is not None:
            lines[key] = d.message.removeprefix(f"`{key[1]}` does not hold at `{key[0]}`: ")
    return lines
