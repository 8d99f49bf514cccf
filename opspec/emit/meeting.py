"""How the launches of one op meet: what overlaps, what waits, what L2 still holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opspec.emit.kernel_launch import KernelLaunch
from opspec.emit.signature import (
    Overlap,
)
from opspec.ir.program import Op
from opspec.schedule.graph import Load, Store
from opspec.schedule.plan import Plan


def overlaps(op: Op, plan: Plan, before: Plan | None, later: Sequence[Plan]) -> Overlap:
    """How a kernel meets the launches beside it. Programs of a product leave no room for others on a multiprocessor."""

    def beside(other: Plan | None) -> bool:
        plans = (plan,) if other is None else (plan, other)
        return other is not None and not any(
            v.roles.products or v.split is not None for p in plans for v in p.variants
        )

    waits, lets = beside(before), beside(later[0] if later else None)
    read = [{n.tensor for n in p.graph.nodes if isinstance(n, Load)} for p in (plan, *later)]
    given = {t.name for t in op.tensors}
    written = set() if before is None else {n.tensor for n in before.graph.nodes if isinstance(n, Store)}
    own = {n.tensor for n in plan.graph.nodes if isinstance(n, Store)}
    return Overlap(
        waits=waits,
        lets=lets,
        kept=frozenset(own & read[1] if lets else ()),
        spent=frozenset(written & read[0] - given - set().union(*read[1:]) if waits else ()),
    )


def early(op: Op, plan: Plan, later: Sequence[Plan], before: frozenset[str], overlap: Overlap) -> Overlap:
    """The same, with what a launch made of a part of a block reads that no launch writes: it need not wait for it, and
    what is read for the last time need not stay in L2."""
    given = {t.name for t in op.tensors if t.role == "in"}
    read, left = reads(plan) & given, frozenset[str]().union(*map(reads, later))
    results = {n.tensor for n in plan.graph.nodes if isinstance(n, Store)} & {t.name for t in op.results}
    again = (
        read & before
    ) - left  # where it goes through what another launch has read, its results pass by too
    passed = frozenset(results - left) if again else frozenset()
    return replace(overlap, early=frozenset(read), spent=overlap.spent | again, passed=passed)


def reads(plan: Plan) -> frozenset[str]:
    """The tensors that a kernel loads."""
    return frozenset(n.tensor for n in plan.graph.nodes if isinstance(n, Load))


def runs_backwards(plan: Plan, before: KernelLaunch) -> bool:
    """Whether the programs of a kernel go from the last to the first: those of the launch before it went the other
    way, and what that wrote last, L2 still holds."""
    written = {n.tensor for n in before.plan.graph.nodes if isinstance(n, Store)}
    read = {n.tensor for n in plan.graph.nodes if isinstance(n, Load)}
    products = any(v.roles.products for v in plan.variants)
    return not before.backwards and not products and bool(written & read)
