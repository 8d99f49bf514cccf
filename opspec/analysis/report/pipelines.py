"""Pipelines of a spec on the page: stages, what variants make of them, and what does not agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opspec.analysis.pipeline import Sources, analyse
from opspec.analysis.pipeline.compare import Comparison
from opspec.analysis.pipeline.total import Part
from opspec.analysis.report.model import PipelinePage, StageLine, VariantPage
from opspec.ir.program import Module


def gather_pipelines(
    module: Module, spec: str, folder: Path, machine: str, results: Mapping[str, str]
) -> tuple[PipelinePage, ...]:
    """A page for each pipeline. ``results``: result file by op; ``machine`` for stages that name none.

    Raises: Failure if a stage has no time.
    """
    pages: list[PipelinePage] = []
    for pipeline in module.pipelines:
        sources = Sources(
            module=module, folder=folder, machine="" if pipeline.machine else machine, results=results or None
        )
        found = analyse(module, pipeline, sources)
        pages.append(
            PipelinePage(
                name=pipeline.name,
                spec=spec,
                doc=pipeline.doc,
                total=float(found.base.total),
                rest=float(found.base.rest),
                stages=tuple(map(_stage, found.base.parts)),
                variants=tuple(map(_variant, found.variants)),
                flags=tuple(f"{f.where}: {f.text}" for f in found.flags),
            )
        )
    return tuple(pages)


def _stage(part: Part) -> StageLine:
    t = part.timed
    return StageLine(
        name=t.name,
        runs=f"{float(t.count):.4g} ×" if t.count != 1 else "",
        seconds=float(t.seconds),
        share=float(part.share),
        provenance=t.provenance,
        source=t.source or t.runs,
    )


def _variant(v: Comparison) -> VariantPage:
    return VariantPage(
        name=v.variant,
        doc=v.doc,
        after=float(v.after.total),
        gain=float(v.gain),
        kernel=None if v.kernel is None else float(v.kernel),
        ceiling=None if v.ceiling is None else float(v.ceiling),
        steps=tuple((s.what, float(s.delta), float(s.total)) for s in v.steps),
        losses=tuple((x.what, float(x.seconds), x.why) for x in v.losses),
    )
