"""The roofline: how long an op takes at least on a machine, and what binds it.

A bound, never a prediction. Each block of a boundary takes the longest of its
resources plus one launch; blocks follow each other. Without a schedule, contractions
run on the matrix unit of their operand type, or on the vector unit where the machine
has none for it (f32).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal as L

import sympy

from opspec.analysis.costs import BlockCost, OpCost
from opspec.analysis.costs.model import add
from opspec.analysis.forms import evaluate, unbound
from opspec.analysis.lattice.symbols import largest, smallest
from opspec.analysis.machine import Machine

Resource = L["memory", "tensor", "vector", "sfu", "l2", "launch"]
_LAUNCH: tuple[Resource, ...] = ("launch",)
RESOURCES: tuple[Resource, ...] = ("memory", "tensor", "vector", "sfu", "l2", "launch")


def exact(value: float) -> sympy.Rational:
    """A machine's number as the decimal that its file states."""
    fraction = Fraction(repr(float(value)))
    return sympy.Rational(fraction.numerator, fraction.denominator)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTime:
    """Seconds that each resource needs for one block, as closed forms; ``launch`` is one launch."""

    name: str
    seconds: Mapping[Resource, sympy.Expr]

    @property
    def time(self) -> sympy.Expr:
        """The longest resource, and the launch."""
        work = [v for k, v in self.seconds.items() if k != "launch" and v != 0]
        return largest(*work or [sympy.Integer(0)]) + self.seconds["launch"]


def block_times(
    costs: OpCost,
    machine: Machine,
    boundary: str = "",
    *,
    traffic: Mapping[str, sympy.Expr] | None = None,
    graph: bool = False,
) -> tuple[BlockTime, ...]:
    """Times of all blocks of a boundary.

    ``traffic``: bytes through L2 by block, where a schedule gives them. ``graph``: launches
    come from a CUDA graph.
    """
    return tuple(
        _block_time(b, machine, (traffic or {}).get(b.name), graph=graph) for b in costs.boundaries[boundary]
    )


def _block_time(block: BlockCost, machine: Machine, l2: sympy.Expr | None, *, graph: bool) -> BlockTime:
    vector = [t.count / exact(machine.vector) for t in block.flops if t.unit == "vector"]
    tensor: list[sympy.Expr] = []
    for t in block.flops:
        if t.unit == "tensor":
            peak = machine.peak(t.dtype)
            if peak is None:
                vector.append(t.count / exact(machine.vector))
            else:
                tensor.append(t.count / exact(peak[1]))
    seconds: dict[Resource, sympy.Expr] = {
        "memory": add(b.count for b in block.bytes) / exact(machine.bandwidth),
        "tensor": add(tensor),
        "vector": add(vector),
        "sfu": add(t.count for t in block.flops if t.unit == "sfu") / exact(machine.sfu),
        "launch": exact(machine.launch_graph if graph else machine.launch),
    }
    if l2 is not None:
        seconds["l2"] = l2 / exact(machine.l2_bandwidth)
    return BlockTime(name=block.name, seconds=seconds)


def total_time(blocks: tuple[BlockTime, ...]) -> sympy.Expr:
    """Seconds of all blocks in a row."""
    return sympy.Add(*(b.time for b in blocks))


def bound_of(blocks: tuple[BlockTime, ...], env: Mapping[str, int | Fraction]) -> Resource | None:
    """The resource that takes the most time: each block counts for its longest one, and all launches
    for ``launch``. None while dims are open."""
    shares: dict[Resource, sympy.Expr] = {}
    for block in blocks:
        numbers: dict[Resource, sympy.Expr] = {k: evaluate(v, env) for k, v in block.seconds.items()}
        if any(unbound(v) for v in numbers.values()):
            return None
        work: list[Resource] = [k for k in numbers if k != "launch"]
        longest: Resource = max(work, key=lambda k: numbers[k])
        for resource in (longest, *_LAUNCH):
            shares[resource] = shares.get(resource, sympy.Integer(0)) + numbers[resource]
    if not shares:
        return None
    most: Resource = max(list(shares), key=lambda k: shares[k])
    return most


def contraction_dtype(costs: OpCost) -> str | None:
    """The operand type of the op's contractions; of several, the one that comes first. None without any."""
    return next((t.dtype for t in costs.flops if t.unit == "tensor"), None)


def attainable(costs: OpCost, machine: Machine, boundary: str = "") -> sympy.Expr:
    """``min(peak, bandwidth * intensity)`` in FLOP/s: of the matrix unit and ``ai.tensor`` for an op with
    contractions, else of the vector unit and ``ai``."""
    dtype = contraction_dtype(costs)
    peak = machine.peak(dtype) if dtype else None
    flops = costs.total_flops("tensor") if dtype else costs.total_flops()
    roof = exact(peak[1] if peak else machine.vector)
    total = costs.total_bytes(boundary)
    return roof if total == 0 else smallest(roof, exact(machine.bandwidth) * flops / total)
