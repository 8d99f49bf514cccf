"""Axes that every operand of a kernel has side by side, in one order: a launch may walk them as one.

``y[b, c, h, w] = f(x[b, c, h, w])`` over contiguous tensors is a map over one axis of B*C*H*W points, and a sum
over c and s of ``x[n, c, s]`` one over C*S. A kernel needs no other text for that: with extents 1, 1, 1
and B*C*H*W it is the kernel of that one axis. So the launcher looks at the strides and decides. What this
file finds is where it may: the kernel means the same with extents A and B as with 1 and A*B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opspec.ir.dtypes import I4, choices
from opspec.ir.integers import Dim, Int, dim
from opspec.ir.values import Read, integers, walk
from opspec.schedule.graph import Fold, Graph, Load, Node, Prefix, Store, node_integers, node_values
from opspec.schedule.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacent:
    """Neighbouring axes, the outermost first: their dims, and the tensors that have them with the position
    of the first. ``reduced``: whether they are folded."""

    axes: tuple[str, ...]
    dims: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    reduced: bool


def adjacent_axes(plan: Plan) -> tuple[Adjacent, ...]:
    """The groups of axes of a kernel that may be walked as one where strides allow it."""
    graph = plan.graph
    tensors = plan.variants[0].program.tensors
    if any(v.roles.products for v in plan.variants) or any(
        d is I4 for t in tensors for d in choices(t.dtype)
    ):
        return ()
    inner = {a: b for a, b in _neighbours(graph) if _are_one(graph, a, b)}
    out = []
    for first in inner:
        if first in inner.values():
            continue
        axes = [first]
        while axes[-1] in inner:
            axes.append(inner[axes[-1]])
        if not any(v.roles.dims(axes[-1]) for v in plan.variants):
            continue  # one index a program, which fills no tile
        dims = tuple(_dim_of(graph.block.axis(a).extent) for a in axes)
        places = dict.fromkeys((n.tensor, _position(n, first)) for n in _accesses(graph) if first in n.axes)
        reduced = any(isinstance(n, Fold) and first in n.over for n in graph.nodes)
        out.append(Adjacent(axes=tuple(axes), dims=dims, places=tuple(places), reduced=reduced))
    return tuple(out)


def _accesses(graph: Graph) -> Iterator[Load | Store]:
    for node in graph.nodes:
        if isinstance(node, Load | Store):
            yield node


def _neighbours(graph: Graph) -> dict[tuple[str, str], None]:
    """Pairs of bare indices at neighbouring positions of some access."""
    found: dict[tuple[str, str], None] = {}
    for node in _accesses(graph):
        for a, b in zip(node.at, node.at[1:], strict=False):
            if a.index is not None and b.index is not None and a.index != b.index:
                found[a.index, b.index] = None
    return found


def _position(node: Load | Store, axis: str) -> int:
    return next(i for i, at in enumerate(node.at) if at.index == axis)


def _dim_of(extent: Int) -> str:
    return extent.atom.name if isinstance(extent.atom, Dim) else ""


def _are_one(graph: Graph, a: str, b: str) -> bool:
    """Whether extents of 1 and A*B mean the same as A and B, whatever the tensors hold."""
    outer, inner = (_dim_of(graph.block.axis(x).extent) for x in (a, b))
    if not outer or not inner or outer == inner:
        return False
    others = [x.extent for x in graph.block.axes if x.name not in (a, b)]
    product = dim(outer) * dim(inner)
    moved = {outer: Int.of(1), inner: product}

    def fixed(value: Int) -> bool:
        return value == value.substitute(lambda atom: moved.get(atom.name) if isinstance(atom, Dim) else None)

    return all(map(fixed, others)) and all(
        _has_both(graph, node, a, b) and all(map(fixed, _integers(node))) for node in graph.nodes
    )


def _integers(node: Node) -> Iterator[Int]:
    """The integer expressions of a node: its addresses first, those inside its values last."""
    yield from node_integers(node)
    for value in node_values(node):
        for part in walk(value):
            if not isinstance(part, Read):
                yield from integers(part)


def _has_both(graph: Graph, node: Node, a: str, b: str) -> bool:
    """Whether a node has both axes or neither, and uses them for nothing but its addresses and its domain."""
    pair = {a, b}
    match node:
        case Fold(over=over, extreme=extreme):
            if len(pair & set(over)) == 1 or (extreme is not None and pair & set(over)):
                return False
        case Prefix(along=along):
            if along in pair:
                return False
    if len(pair & node.axes) == 1:
        return False
    addresses = node.at if isinstance(node, Load | Store) else ()
    if any(i.free_indices() & pair for i in list(_integers(node))[len(addresses) :]):
        return False
    if not isinstance(node, Load | Store) or not pair & node.axes:
        return True
    using = [k for k, i in enumerate(addresses) if i.free_indices() & pair]
    if len(using) != 2 or using[0] + 1 != using[1]:
        return False
    whole = graph.block.tensor(node.tensor).extents
    return all(
        addresses[k].index == x and whole[k] == graph.block.axis(x).extent
        for k, x in zip(using, (a, b), strict=True)
    )
