"""End-to-end times before and after: a kernel's gain is never shown where a pipeline could say what becomes of it."""

from __future__ import annotations

from pathlib import Path

from opspec.analysis.review.model import PipelineChange
from opspec.diagnostics import Failure
from opspec.ir.program import Module

_NOISE = 1e-12


def compare_pipelines(
    base: Module | None, head: Module | None, folders: tuple[Path, Path]
) -> tuple[PipelineChange, ...]:
    """Pipelines and variants whose end-to-end time differs, that came or that went.

    ``folders``: of the spec on either side, for results that it names. A pipeline that can't be timed says so.
    """
    before, after = _totals(base, folders[0]), _totals(head, folders[1])
    found: list[PipelineChange] = []
    for key in dict.fromkeys([*after, *before]):
        one, two = before.get(key), after.get(key)
        if base is None or head is None or one == two:
            continue
        a, b = (x if isinstance(x, float) else None for x in (one, two))
        if a is not None and b is not None and abs(a - b) <= _NOISE * max(a, b):
            continue
        note = two if isinstance(two, str) else "new" if one is None else "removed" if two is None else ""
        found.append(PipelineChange(pipeline=key[0], variant=key[1], before=a, after=b, note=note))
    return tuple(found)


def _totals(module: Module | None, folder: Path) -> dict[tuple[str, str], float | str]:
    """(pipeline, variant or empty) → seconds, or why there are none."""
    if module is None or not module.pipelines:
        return {}
    from opspec.analysis.pipeline import Sources, analyse

    found: dict[tuple[str, str], float | str] = {}
    for pipeline in module.pipelines:
        try:
            report = analyse(module, pipeline, Sources(module=module, folder=folder))
        except Failure as failure:
            found[pipeline.name, ""] = failure.diagnostics[0].message
            continue
        found[pipeline.name, ""] = float(report.base.total)
        found |= {(pipeline.name, v.variant): float(v.after.total) for v in report.variants}
    return found
