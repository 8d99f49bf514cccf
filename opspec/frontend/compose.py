"""All items that put ops together, checked in an order in which each sees what it names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opspec.diagnostics import Diagnostic
from opspec.frontend import evidence, ledgers, machines, pipelines
from opspec.frontend import syntax as s
from opspec.frontend.faults import names
from opspec.frontend.stages import Scope
from opspec.ir.composition import Evidence, Ledger, MachineBlock, Pipeline, Variant
from opspec.ir.program import Op, Workload
from opspec.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """What was accepted."""

    pipelines: tuple[Pipeline, ...]
    variants: tuple[Variant, ...]
    evidence: tuple[Evidence, ...]
    machines: tuple[MachineBlock, ...]
    ledgers: tuple[Ledger, ...]


def compose(
    items: Iterable[s.Composed],
    ops: Mapping[str, Op | None],
    workloads: Mapping[str, Workload | None],
    report: list[Diagnostic],
    *,
    complete: bool,
) -> Composition:
    """Check machines, pipelines, variants, evidence and ledgers. None stands for what was refused."""
    found = list(items)
    scope = Scope(
        report=report,
        runnable=lambda op, workload: _runnable(ops, workloads, op, workload),
        ops={op: [w.name for w in workloads.values() if w is not None and w.op == op] for op in ops},
        refused=frozenset(
            {k for k, op in ops.items() if op is None} | {k for k, w in workloads.items() if w is None}
        ),
        machines=pipelines.shipped(),
        complete=complete,
    )
    blocks = _machines([d for d in found if isinstance(d, s.MachineDecl)], scope)
    for d in found:
        if isinstance(d, s.PipelineDecl):
            pipelines.pipeline(d, scope)
    for d in found:
        if isinstance(d, s.VariantDecl):
            pipelines.variant(d, scope)
    taken: dict[str, Span] = {}
    proofs: list[Evidence] = []
    counted: list[Ledger] = []
    for d in found:
        if isinstance(d, s.EvidenceDecl | s.LedgerDecl):
            if d.name.text in taken:
                report.append(names.duplicate(d.name.span, d.name.text, taken[d.name.text]))
                continue
            taken[d.name.text] = d.name.span
        match d:
            case s.EvidenceDecl():
                proof = evidence.evidence(d, scope)
                proofs += [proof] if proof is not None else []
            case s.LedgerDecl():
                ledger = ledgers.ledger(d, scope)
                counted += [ledger] if ledger is not None else []
            case _:
                pass
    return Composition(
        pipelines=tuple(p for p in scope.pipelines.values() if p is not None),
        variants=tuple(v for v in scope.variants.values() if v is not None),
        evidence=tuple(proofs),
        machines=blocks,
        ledgers=tuple(counted),
    )


def _machines(nodes: list[s.MachineDecl], scope: Scope) -> tuple[MachineBlock, ...]:
    found: list[MachineBlock] = []
    places: dict[str, Span | None] = dict.fromkeys(pipelines.shipped())
    for d in nodes:
        if d.name.text in places:
            scope.report.append(names.duplicate(d.name.span, d.name.text, places[d.name.text]))
            continue
        block = machines.machine(d, scope, set(places))
        places[d.name.text] = d.name.span
        scope.machines.add(d.name.text)
        found += [block] if block is not None else []
    return tuple(found)


def _runnable(
    ops: Mapping[str, Op | None], workloads: Mapping[str, Workload | None], op: str, workload: str
) -> tuple[Op, Workload] | None:
    found, shape = ops.get(op), workloads.get(workload)
    return (found, shape) if found is not None and shape is not None and shape.op == op else None
