"""A pipeline with its variants, analysed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opspec.analysis.pipeline.codes import NO_TIME, refuse, unknown
from opspec.analysis.pipeline.compare import Comparison, compare
from opspec.analysis.pipeline.consistency import Flag, TokenCount, count_tokens, pipeline_flags, variant_flags
from opspec.analysis.pipeline.timing import Sources, Timed, time_stage
from opspec.analysis.pipeline.total import Breakdown, break_down
from opspec.ir.composition import Pipeline, Stage
from opspec.ir.program import Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An end-to-end time, what each variant makes of it, and what does not agree."""

    pipeline: Pipeline
    machine: str
    base: Breakdown
    variants: tuple[Comparison, ...]
    flags: tuple[Flag, ...]
    ledgers: tuple[TokenCount, ...]

    def variant(self, name: str) -> Comparison:
        """The comparison of a variant by name."""
        return next(v for v in self.variants if v.variant == name)


def find_pipeline(module: Module, name: str = "") -> Pipeline:
    """The pipeline of that name, or the only one.

    Raises: Failure if there is none, or the choice is open.
    """
    if not name and len(module.pipelines) == 1:
        return module.pipelines[0]
    found = next((p for p in module.pipelines if p.name == name), None)
    if found is None:
        raise unknown(name, [p.name for p in module.pipelines], "pipeline")
    return found


def analyse(module: Module, pipeline: Pipeline, sources: Sources, variant: str | None = None) -> Report:
    """Times of all stages, the breakdown, and the comparison with one variant or with all.

    Raises: Failure if there is no such variant, or a stage has no time.
    """
    known = module.variants_of(pipeline.name)
    if variant is not None and variant not in {v.name for v in known}:
        raise unknown(variant, [v.name for v in known], "variant")
    before = _timed(pipeline.stages, sources, pipeline.machine)
    flags = list(pipeline_flags(pipeline, before))
    comparisons: list[Comparison] = []
    for v in known:
        if variant not in (None, v.name):
            continue
        restated = _timed(v.stages, sources, pipeline.machine)
        flags += variant_flags(before, restated, v.name)
        comparisons.append(compare(pipeline, v.name, v.doc, before, restated))
    base = break_down(pipeline, before)
    for what, total in ((pipeline.name, base.total), *((c.variant, c.after.total) for c in comparisons)):
        if not total:
            raise refuse(
                NO_TIME, f"`{what}` takes no time at all, so there is nothing to compare", pipeline.span
            )
    ledgers = count_tokens(module, module.ledgers)
    flags += [t.flag for t in ledgers if t.flag is not None]
    return Report(
        pipeline=pipeline,
        machine=sources.machine or pipeline.machine,
        base=base,
        variants=tuple(comparisons),
        flags=tuple(flags),
        ledgers=ledgers,
    )


def _timed(stages: Iterable[Stage], sources: Sources, machine: str) -> dict[str, Timed]:
    return {s.name: time_stage(s, sources, machine) for s in stages}
