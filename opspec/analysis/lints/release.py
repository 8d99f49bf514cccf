"""What an ``evidence`` block leaves open: wrong bytes, ideal shapes only, traffic ignored, no steady state, one side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from opspec.analysis.lints.codes import IDEAL, NO_BYTES, NO_TRAFFIC, NOT_STEADY, ONE_SIDED, warning
from opspec.analysis.pipeline.results import read_json
from opspec.diagnostics import Diagnostic, Failure
from opspec.ir.composition import Evidence, Stage
from opspec.ir.program import Module, Workload

_TILE = 16


def gaps(module: Module, folder: Path) -> Iterator[Diagnostic]:
    """A warning for each gap of each evidence block."""
    for evidence in module.evidence:
        yield from gaps_of(module, evidence, folder)


def gaps_of(module: Module, evidence: Evidence, folder: Path) -> Iterator[Diagnostic]:
    """A warning for each gap of one evidence block."""
    running = [s for s in _changed(module, evidence) if s.op]
    for op in dict.fromkeys(s.op for s in running):
        yield from _shapes(module, evidence, op)
    yield from _bytes(evidence, [s.op for s in running])
    for stage in running:
        yield from _steady(stage, folder)
    yield from _sides(module, evidence, running)


def _changed(module: Module, evidence: Evidence) -> list[Stage]:
    """The stages that the variant restates."""
    variant = next((v for v in module.variants_of(evidence.pipeline) if v.name == evidence.variant), None)
    return list(variant.stages) if variant is not None else []


def _shapes(module: Module, evidence: Evidence, op: str) -> Iterator[Diagnostic]:
    workloads = _workloads(module, op)
    if not workloads:
        return
    extents = [v for w in workloads for _, dims in w.cases for _, v in dims]
    where = f"evidence `{evidence.name}`"
    if all(v % _TILE == 0 or v & (v - 1) == 0 for v in extents):
        names = ", ".join(f"`{w.name}`" for w in workloads[:4])
        yield warning(IDEAL, f"{where} rests on ideal shapes of `{op}` only: {names}", evidence.span)
    if all(len(w.cases) == 1 and not w.lengths for w in workloads):
        yield warning(NO_TRAFFIC, f"{where} knows no distribution of the shapes of `{op}`", evidence.span)


def _workloads(module: Module, op: str) -> Sequence[Workload]:
    linked = next((ws for o, ws in module.linked if o.name == op), ())
    return [*module.workloads_of(op), *linked]


def _bytes(evidence: Evidence, ops: Sequence[str]) -> Iterator[Diagnostic]:
    for op in dict.fromkeys(ops):
        asked = [n.text for n in evidence.numbers if n.op == op]
        if not any(word in text for text in asked for word in ("bytes", "ai", "time", "bound")):
            message = f"evidence `{evidence.name}` computes neither bytes nor intensity of `{op}`"
            yield warning(NO_BYTES, message, evidence.span, f"add `{op} @ WORKLOAD: bytes` to `numbers`")


def _steady(stage: Stage, folder: Path) -> Iterator[Diagnostic]:
    if stage.results:
        for what in _unsteady(folder / stage.results, stage):
            message = f"stage `{stage.name}`: `{stage.results}` is of no steady state: {what}"
            yield warning(NOT_STEADY, message, stage.span, "measure again on a card that is left alone")
    elif stage.seconds is not None and stage.provenance == "measured":
        message = f"stage `{stage.name}` states a measured time without the result that it is from"
        yield warning(NOT_STEADY, message, stage.span)


def _unsteady(path: Path, stage: Stage) -> Iterator[str]:
    """What a result says against itself; a file that can't be read is told elsewhere."""
    try:
        records = read_json(path, stage.results, stage.span).get("results")
    except Failure:
        return
    for record in records if isinstance(records, list) else ():
        timing = record.get("measured") if isinstance(record, dict) else None
        if not isinstance(timing, dict) or record.get("workload") != stage.workload:
            continue
        if timing.get("drifted"):
            yield "its rate drifted"
        if timing.get("throttled_rounds"):
            yield "the clock was held down"
        if timing.get("incomplete"):
            yield f"it is incomplete, {str(timing['incomplete'])[:80]}"


def _sides(module: Module, evidence: Evidence, running: Sequence[Stage]) -> Iterator[Diagnostic]:
    pipeline = next((p for p in module.pipelines if p.name == evidence.pipeline), None)
    machine = pipeline.machine if pipeline is not None else ""
    theory = [s for s in running if s.machine or machine]
    both = [s for s in theory if s.results or (s.seconds is not None and s.provenance == "measured")]
    if both:
        return
    if not running:
        why = "its variant restates no stage that runs an op"
    elif not theory:
        why = "no machine is named, so there is no bound"
    else:
        why = "no stage that it restates was measured"
    yield warning(
        ONE_SIDED,
        f"evidence `{evidence.name}` has theory and measurement not side by side: {why}",
        evidence.span,
    )
