"""An op's costs at one workload: counts, and time and bound on machines, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import sympy

from opspec.analysis.costs import OpCost, cost
from opspec.analysis.export import workload_dtypes
from opspec.analysis.forms import evaluate, unbound
from opspec.analysis.lengths import shape_numbers
from opspec.analysis.machine import Machine
from opspec.analysis.review.points import value
from opspec.analysis.roofline import block_times, bound_of
from opspec.ir.program import Op, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Weighted means over the shapes of a workload, by boundary.

    ``counts``: flops, flops.tensor, bytes, ai, ai.tensor. ``times``: seconds by machine, a floor.
    ``bounds``: what binds by machine, by the weight of the shapes.
    """

    counts: dict[str, float]
    times: dict[str, float]
    bounds: dict[str, str]


def at_workload(op: Op, workload: Workload, machines: Sequence[Machine]) -> dict[str, At] | None:
    """The numbers of every boundary; None where lengths are data, so that no number is known."""
    costs = cost(op, workload_dtypes(op, workload))
    cases = [(w, filled(costs, shape_numbers(workload, dims, costs))) for w, dims in workload.cases]
    if any(c is None for _, c in cases):
        return None
    known = [(w, c) for w, c in cases if c is not None]
    return {b: _mean(b, known, machines) for b in costs.boundaries}


def filled(costs: OpCost, env: Mapping[str, int | Fraction]) -> OpCost | None:
    """The same costs with numbers for dims; None if something is left open."""
    flops = tuple(replace(t, count=_number(t.count, env)) for t in costs.flops)
    boundaries = {
        name: tuple(
            replace(
                block,
                flops=tuple(replace(t, count=_number(t.count, env)) for t in block.flops),
                bytes=tuple(
                    replace(t, elements=_number(t.elements, env), size=_number(t.size, env))
                    for t in block.bytes
                ),
            )
            for block in blocks
        )
        for name, blocks in costs.boundaries.items()
    }
    left = [t.count for t in flops] + [t.count for bs in boundaries.values() for b in bs for t in b.bytes]
    return None if any(unbound(c) for c in left) else replace(costs, flops=flops, boundaries=boundaries)


def _number(form: sympy.Expr, env: Mapping[str, int | Fraction]) -> sympy.Expr:
    found = value(form, env)
    return evaluate(form, env) if found is None else sympy.Rational(found)


def _mean(boundary: str, cases: Sequence[tuple[float, OpCost]], machines: Sequence[Machine]) -> At:
    total = sum(w for w, _ in cases)

    def mean(values: Sequence[sympy.Expr]) -> float:
        if len(values) == 1:
            return int(values[0]) if values[0].is_Integer else float(values[0])
        return sum(w * float(v) for (w, _), v in zip(cases, values, strict=True)) / total

    counts = {
        "flops": mean([c.total_flops() for _, c in cases]),
        "flops.tensor": mean([c.total_flops("tensor") for _, c in cases]),
        "bytes": mean([c.total_bytes(boundary) for _, c in cases]),
    }
    if counts["bytes"]:
        counts["ai"] = counts["flops"] / counts["bytes"]
        counts["ai.tensor"] = counts["flops.tensor"] / counts["bytes"]
    times: dict[str, float] = {}
    bounds: dict[str, str] = {}
    for machine in machines:
        seconds = 0.0
        votes: dict[str, float] = {}
        for weight, costs in cases:
            blocks = block_times(costs, machine, boundary)
            seconds += weight * float(sum(b.time for b in blocks))
            bound = bound_of(blocks, {}) or ""
            votes[bound] = votes.get(bound, 0.0) + weight
        times[machine.name] = seconds / total
        bounds[machine.name] = max(votes, key=lambda k: votes[k])
    return At(counts=counts, times=times, bounds=bounds)
