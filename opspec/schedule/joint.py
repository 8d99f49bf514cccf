"""Two axes as one: where a kernel reads ``g * K + k`` only, whose values are all places of an axis of C = G * K.

A tile along that one axis lies side by side in memory, however short K is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from opspec.ir.bounds import prove
from opspec.ir.facts import facts_of
from opspec.ir.integers import Index, Int, floor_div, index, mod
from opspec.ir.program import Define
from opspec.ir.values import Extent, Range, Read, Reduce, Value, map_values
from opspec.schedule.block import Block
from opspec.schedule.graph import Graph, Load, Store
from opspec.schedule.totals import bound_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """``outer * step + inner`` as one axis ``name``; ``step`` is the extent of ``inner``."""

    name: str
    outer: str
    inner: str
    step: Int
    extent: Int

    @property
    def place(self) -> Int:
        """The place along the joint axis in terms of both."""
        return index(self.outer) * self.step + index(self.inner)

    def integer(self, value: Int) -> Int:
        """An integer expression over the joint axis."""
        if value == self.place:
            return index(self.name)

        def change(atom: object) -> Int | None:
            if atom == Index(self.outer):
                return floor_div(index(self.name), self.step)
            return mod(index(self.name), self.step) if atom == Index(self.inner) else None

        return value.substitute(change)

    def indices(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names of indices with one for both."""
        return tuple(self.name if n == self.outer else n for n in names if n != self.inner)


def find_joint(block: Block, graph: Graph, outer: Iterable[str], inner: Iterable[str]) -> Joint | None:
    """An axis of both, where some tensor has all its places along one axis of its own."""
    outer, inner, facts = set(outer), set(inner), facts_of(block.op)
    for node in graph.nodes:
        if not isinstance(node, Load | Store):
            continue
        for at, extent in zip(node.at, block.tensor(node.tensor).extents, strict=True):
            names = at.free_indices()
            if len(names) != 2 or len(names & outer) != 1 or len(names & inner) != 1:
                continue
            (g,), (k,) = names & outer, names & inner
            whole = block.axis(g).extent * block.axis(k).extent
            joint = Joint(
                name=_name(block, extent), outer=g, inner=k, step=block.axis(k).extent, extent=extent
            )
            if at == joint.place and prove(extent - whole, facts) and prove(whole - extent, facts):
                return joint
    return None


def _name(block: Block, extent: Int) -> str:
    """A letter for the axis: that of its dim where it is free."""
    taken = {*block.op.dims, *(t.name for t in block.tensors), *(s.name for s in block.op.scalars)}
    taken |= {*(a.name for a in block.axes), *(d.name for d in block.body)}
    text = str(extent).lower()
    name = text if text.isidentifier() else "joint"
    while name in taken:
        name += "_"
    return name


def join_axes(body: tuple[Define, ...], joint: Joint) -> tuple[Define, ...] | None:
    """Statements over the joint axis; None where one has but one of both axes, or is not stored along it."""
    pair = {joint.outer, joint.inner}
    local = {d.name for d in body}
    if any(len(pair & set(d.indices)) == 1 or pair & bound_in(d) for d in body):
        return None
    out = []
    for d in body:
        ranges = tuple(
            Range(index=joint.name, upper=joint.extent) if r.index == joint.outer else r
            for r in d.ranges
            if r.index != joint.inner
        )
        output = d.output
        if output is not None:
            output = replace(output, at=tuple(map(joint.integer, output.at)))
            if any(joint.name in i.free_indices() and i != index(joint.name) for i in output.at):
                return None
        value = over(d.value, joint.integer, joint.indices, local)
        out.append(
            replace(
                d,
                ranges=ranges,
                constraints=tuple(map(joint.integer, d.constraints)),
                value=value,
                output=output,
            )
        )
    return tuple(out)


def over(
    value: Value,
    integer: Callable[[Int], Int],
    indices: Callable[[tuple[str, ...]], tuple[str, ...]],
    local: set[str],
) -> Value:
    """A value with its integer expressions changed, and the bare indices at which it reads ``local`` statements."""

    def change(value: Value) -> Value:
        value = map_values(value, change)
        match value:
            case Read(name=name, indices=at) if name in local:
                return replace(value, indices=tuple(map(index, indices(tuple(i.index or "" for i in at)))))
            case Read(indices=at):
                return replace(value, indices=tuple(map(integer, at)))
            case Extent(value=v):
                return replace(value, value=integer(v))
            case Reduce(constraints=constraints):
                return replace(value, constraints=tuple(map(integer, constraints)))
        return value

    return change(value)


def at_place(value: Value, names: set[str], joint: Joint) -> Value:
    """A value that reads what others have along the joint axis, where it goes along both."""
    value = map_values(value, lambda v: at_place(v, names, joint))
    if not isinstance(value, Read) or value.name not in names:
        return value
    at = [joint.place if i.index == joint.outer else i for i in value.indices if i.index != joint.inner]
    return replace(value, indices=tuple(at))
