"""Checks of stages: their times, what they run and on which machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults import names
from opspec.frontend.measures import duration, plain
from opspec.ir.composition import Pipeline, Provenance, Stage, Variant
from opspec.ir.program import Op, Workload
from opspec.source import Span

Runnable = Callable[[str, str], tuple[Op, Workload] | None]


@dataclass(slots=True)
class Scope:
    """What the items of a file may name, and where faults go.

    ``refused``: ops and workloads that were reported already, and are not reported missing, too.
    """

    report: list[Diagnostic]
    runnable: Runnable
    ops: dict[str, list[str]]
    refused: frozenset[str]
    machines: set[str]
    complete: bool
    pipelines: dict[str, Pipeline | None] = field(default_factory=dict)
    variants: dict[tuple[str, str], Variant | None] = field(default_factory=dict)


def stages(nodes: Iterable[s.StageDecl], scope: Scope, base: Pipeline | None) -> tuple[Stage, ...]:
    """The stages of a pipeline or variant."""
    found: list[Stage] = []
    seen: dict[str, Span] = {}
    kept = {x.name: x for x in base.stages} if base is not None else {}
    for node in nodes:
        name = node.name.text
        if name in seen:
            scope.report.append(names.duplicate(node.name.span, name, seen[name]))
            continue
        seen[name] = node.name.span
        made = _stage(node, scope, kept.get(name))
        if made is not None:
            found.append(made)
    return tuple(found)


def _stage(node: s.StageDecl, scope: Scope, base: Stage | None) -> Stage | None:
    before = len(scope.report)
    count = plain(node.count, scope.report) if node.count is not None else Fraction(1)
    times = [duration(t, scope.report, positive=node.kind == "each") for t in node.times]
    origin = node.origin
    if node.op is not None:
        _runs(node, scope)
    elif origin is not None and origin.word == "from":
        scope.report.append(
            faults.stage(
                origin.span,
                "only a stage that runs an op takes its time from a result",
                'write `decode @ decode_8k from "result.json"`, or `24.0 ms measured "where"`',
            )
        )
    own = len(node.times) - (node.kind in ("each", "span"))
    if node.kind not in {"plain", "op"} and node.count is not None:
        scope.report.append(
            faults.stage(node.count.span, "this form has a count of its own", "leave out the count")
        )
    if origin is not None and origin.word == "from" and own and node.op is not None:
        scope.report.append(faults.stage(origin.span, "a stage has one time: stated, or from a result"))
    if origin is not None and origin.word != "from" and not own and node.kind != "span":
        scope.report.append(
            faults.stage(
                origin.span,
                f"nothing here is {origin.word}",
                'say how long: `takes 0.55 ms measured "where"`',
            )
        )
    if len(scope.report) > before or count is None or None in times:
        return None
    numbers = [t for t in times if t is not None]
    seconds = numbers[-1] if own or node.kind == "span" else None
    total, start = None, None
    if node.kind == "each":
        total = numbers[0]
        count = total / seconds if seconds is not None else count
    elif node.kind == "span":
        start, seconds = numbers[0], numbers[1] - numbers[0]  # the grammar gives two
        if seconds <= 0:
            scope.report.append(
                faults.stage(node.span, "a span ends after it starts", "write `3 ms .. 6 ms`")
            )
            return None
    return Stage(
        name=node.name.text,
        count=count,
        seconds=seconds,
        total=total,
        start=start if start is not None or base is None else base.start,
        op=node.op.text if node.op is not None else "",
        workload=node.workload.text if node.workload is not None else "",
        boundary=node.boundary.text if node.boundary is not None else "",
        machine=node.machine.text if node.machine is not None else "",
        results=origin.text if origin is not None and origin.word == "from" else "",
        provenance=_provenance(node),
        source=origin.text if origin is not None and origin.word != "from" else "",
        span=node.span,
    )


def _provenance(node: s.StageDecl) -> Provenance:
    word = node.origin.word if node.origin is not None else ""
    match word:
        case "measured" | "asserted" | "calibrated":
            return word
        case "from":
            return "measured"
        case _:
            stated = len(node.times) - (node.kind == "each")
            return "asserted" if stated else "derived"


def _runs(node: s.StageDecl, scope: Scope) -> None:
    """The op, workload, boundary and machine of a stage exist."""
    assert node.op is not None
    assert node.workload is not None
    check_runnable(node.op, node.workload, scope)
    found = scope.runnable(node.op.text, node.workload.text)
    if found is not None and node.boundary is not None:
        known = [b.name for b in found[0].boundaries if b.name]
        if node.boundary.text not in known:
            scope.report.append(names.unknown(node.boundary.span, node.boundary.text, known, "boundary"))
    if node.machine is not None:
        check_machine(node.machine, scope)


def check_runnable(op: s.Ident, workload: s.Ident, scope: Scope) -> None:
    """Report an op or a workload that does not exist."""
    if op.text in scope.refused or not scope.complete:
        return
    if op.text not in scope.ops:
        scope.report.append(names.unknown(op.span, op.text, scope.ops, "op"))
    elif workload.text not in scope.ops[op.text] and workload.text not in scope.refused:
        known = scope.ops[op.text]
        scope.report.append(names.unknown(workload.span, workload.text, known, "workload"))


def check_machine(name: s.Ident, scope: Scope) -> None:
    """Report a machine that neither ships nor stands in the spec."""
    if name.text not in scope.machines:
        scope.report.append(names.unknown(name.span, name.text, scope.machines, "machine"))
