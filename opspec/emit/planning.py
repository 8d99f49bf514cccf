"""The kernel blocks of a module's ops, scheduled: what their launches need of blocks and limits comes later."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opspec.diagnostics import Diagnostic
from opspec.emit.names import RESERVED, escape
from opspec.emit.signature import (
    identifiers,
    pointer,
    stride,
)
from opspec.ir.program import Boundary, Kernel, Module, Op
from opspec.schedule.parted import with_parts
from opspec.schedule.plan import Plan, schedule_kernel
from opspec.schedule.serial import reduced, serial
from opspec.schedule.totals import Typical, typical_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryPlans:
    """The kernel blocks of one boundary, scheduled.

    ``op``, ``boundary``: with blocks that were taken apart into parts as kernels of their own; ``alone``: whether all
    blocks are as they were written. ``whole``: by position, the block that small shapes launch in place of so many.
    """

    op: Op
    boundary: Boundary
    alone: bool
    plans: tuple[Plan, ...]
    whole: dict[int, tuple[Plan, int]]
    warnings: tuple[Diagnostic, ...]


def plan_module(module: Module) -> tuple[BoundaryPlans, ...]:
    """Schedule every kernel of a module outside of boundaries that are for analysis. Raises ``Failure``."""
    found = []
    for spoken in module.ops:
        typical = typical_of(module.workloads_of(spoken.name))
        op = with_parts(spoken, typical)
        for boundary in op.boundaries:
            if not boundary.analysis:
                single = next(b for b in spoken.boundaries if b.name == boundary.name)
                found.append(_plan(op, boundary, spoken, single, typical))
    return tuple(found)


def _plan(op: Op, boundary: Boundary, spoken: Op, single: Boundary, typical: Typical) -> BoundaryPlans:
    """The plans of a boundary, ``single`` as it was written in the op as it was ``spoken``."""
    plans = tuple(
        schedule_kernel(op, boundary, each, typical=typical, reserved=reserved(op))
        for each in boundary.kernels
    )
    names = [k.name for k in boundary.kernels]
    whole = {
        k: (_whole_plan(spoken, single, each.whole, typical), names[k:].index(each.whole.name) + 1)
        for k, each in enumerate(boundary.kernels)
        if each.whole is not None
    }
    return BoundaryPlans(
        op=op,
        boundary=boundary,
        alone=len(plans) == len(single.kernels),
        plans=plans,
        whole=whole,
        warnings=tuple(w for p in plans for w in warnings(p, typical)),
    )


def warnings(plan: Plan, typical: Typical) -> list[Diagnostic]:
    """What leaves a device idle at a workload, said once a kernel."""
    split = any(v.split is not None for v in plan.variants)
    found = serial(plan.graph, typical) or (None if split else reduced(plan.graph, typical))
    return [] if found is None else [found]


def _whole_plan(op: Op, boundary: Boundary, kernel: Kernel, typical: Typical) -> Plan:
    """A block as it was before it was taken apart, under a name of its own."""
    own = replace(kernel, name=f"{kernel.name}_whole")
    kernels = tuple(own if k.name == kernel.name else k for k in boundary.kernels)
    boundary = replace(boundary, kernels=kernels)
    return schedule_kernel(op, boundary, own, typical=typical, reserved=reserved(op))


def reserved(op: Op) -> set[str]:
    """Identifiers that a block variable must not take."""
    taken = set(RESERVED) | set(identifiers(op).values()) | set(op.dims)
    taken |= {pointer(t.name) for t in op.tensors}
    taken |= {stride(t, i) for t in op.tensors for i in range(len(t.extents))}
    # a block variable may carry the name of the tensor that it holds
    return taken - {escape(t.name) for t in op.tensors}
