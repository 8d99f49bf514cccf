"""An op at a workload on a machine: seconds by resource, for each grouping into kernels."""

from __future__ import annotations

from collections.abc import Callable

from opspec.analysis.costs import OpCost, cost
from opspec.analysis.export import workload_dtypes
from opspec.analysis.lengths import shape_numbers
from opspec.analysis.machine import Machine
from opspec.analysis.report.model import Reading
from opspec.analysis.review.numbers import filled
from opspec.analysis.roofline import block_times, bound_of
from opspec.ir.program import Op, Workload

Cases = tuple[tuple[float, OpCost], ...]


def cases_of(op: Op, workload: Workload) -> Cases | None:
    """(weight, costs in numbers) of every shape; None where lengths are data."""
    costs = cost(op, workload_dtypes(op, workload))
    found = [(weight, filled(costs, shape_numbers(workload, dims, costs))) for weight, dims in workload.cases]
    known = tuple((w, c) for w, c in found if c is not None)
    return known if len(known) == len(found) else None


def read(
    cases: Cases,
    machine: Machine,
    boundary: str = "",
    *,
    change: Callable[[OpCost], OpCost] = lambda c: c,
    graph: bool = False,
) -> Reading:
    """Weighted means over the shapes. ``change`` alters the costs first; ``graph``: launched from a CUDA graph."""
    total = sum(w for w, _ in cases)
    terms: dict[str, float] = {}
    votes: dict[str, float] = {}
    flops = tensor = size = time = 0.0
    launches = 0
    for weight, plain in cases:
        costs, share = change(plain), weight / total
        blocks = block_times(costs, machine, boundary, graph=graph)
        launches = len(blocks)
        flops += share * float(costs.total_flops())
        tensor += share * float(costs.total_flops("tensor"))
        size += share * float(costs.total_bytes(boundary))
        time += share * sum(float(b.time) for b in blocks)
        for block in blocks:
            for resource, seconds in block.seconds.items():
                terms[resource] = terms.get(resource, 0.0) + share * float(seconds)
        bound = bound_of(blocks, {}) or ""
        votes[bound] = votes.get(bound, 0.0) + weight
    return Reading(
        boundary=boundary,
        launches=launches,
        flops=flops,
        tensor=tensor,
        size=size,
        terms=terms,
        time=time,
        bound=max(votes, key=lambda k: votes[k]) if votes else "",
    )
