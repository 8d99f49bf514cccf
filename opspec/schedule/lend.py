"""Rows for a matrix unit where a chain of products has none of its own.

One new token that attends over a cache multiplies a vector by a matrix, twice: a product of
rows and columns would be there if the vector had rows. Two rewrites give it some. Both only
run where products follow each other (a single matrix-vector product reads its matrix once
either way) and no product has rows yet.

``group``: an index that is only used as itself and as ``h // G`` is split into ``h = j * G + g``.
The ``G`` members of a group read the same matrix, so ``g`` are rows.

``pad``: an axis of extent 1 is given to a vector operand. A block of it is as wide as the unit's
least tile; all rows but one are masked.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.bounds import equal
from opspec.ir.facts import facts_of
from opspec.ir.integers import Atom, Dim, FloorDiv, Index, Int, Mod, index
from opspec.ir.values import Read, Value, integers, map_integers, walk
from opspec.schedule.applied import Applied
from opspec.schedule.axis_order import axis_order, grid_axes
from opspec.schedule.block import Axis
from opspec.schedule.graph import Fold, Graph, Load, Node, Point, Prefix, Store, node_integers, node_values
from opspec.schedule.operands import Sides, product_sides
from opspec.schedule.products import find_products

ONE = Int.of(1)


def lend_rows(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Give the vector products of a chain rows; the graph itself where there is nothing to lend."""
    order = axis_order(graph)
    grid = grid_axes(graph, order)
    inner = tuple(a for a in order if a not in grid)
    if any(isinstance(n, Prefix) for n in graph.nodes) or find_products(graph, grid, inner):
        return graph, ()
    wanting = _chained(graph, grid)
    if not wanting:
        return graph, ()
    grouped = _split_group(graph, grid)
    if grouped is not None:
        return grouped
    return _pad(graph, wanting)


def _chained(graph: Graph, grid: tuple[str, ...]) -> list[tuple[Fold, Sides]]:
    """Folds that would be products if a vector had rows, if one of them uses another."""
    found: list[tuple[Fold, Sides]] = []
    for node in graph.nodes:
        if not isinstance(node, Fold):
            continue
        sides = product_sides(graph, node)
        if sides is None or sides.cast is None:
            continue
        left, right = (graph.axes_of(v) - set(node.over) for v in (sides.a, sides.b))
        if (not left - right - set(grid)) != (not right - left - set(grid)):
            found.append((node, sides))
    names = {fold.name for fold, _ in found}
    return found if any(names & graph.reached(fold) for fold, _ in found) else []


# pad -----------------------------------------------------------------------
def _pad(graph: Graph, wanting: list[tuple[Fold, Sides]]) -> tuple[Graph, tuple[Applied, ...]]:
    """Give an axis of extent 1 to the vector that the first product of the chain reads."""
    fold, sides = wanting[0]
    left, right = (graph.axes_of(v) - set(fold.over) for v in (sides.a, sides.b))
    vector = sides.a if len(left) < len(right) else sides.b
    source = _first_load(graph, vector, set(fold.over))
    if source is None:
        return graph, ()
    name = _fresh(graph, "row")
    given = {source}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name in given or set(graph.deps(node)) & given:
            given.add(node.name)
            nodes.append(replace(node, axes=node.axes | {name}))
        else:
            nodes.append(node)
    block = replace(graph.block, axes=(*graph.block.axes, Axis(name=name, extent=ONE)))
    text = f"{source.split('.load')[0]} is one row of a block product's tile"
    applied = Applied(rule="pad", statement=fold.define.origin, text=text)
    return replace(graph, block=block, nodes=tuple(nodes)), (applied,)


def _first_load(graph: Graph, value: Value, over: set[str]) -> str | None:
    """A load that a value depends on and that carries a summed index."""
    stack = [v.name for v in walk(value) if isinstance(v, Read)]
    seen: set[str] = set()
    while stack:
        name = stack.pop(0)
        node = graph.by_name[name]
        if isinstance(node, Load) and node.axes & over:
            return name
        if name not in seen and isinstance(node, Point):
            stack += graph.deps(node)
        seen.add(name)
    return None


# group ---------------------------------------------------------------------
def _split_group(graph: Graph, grid: tuple[str, ...]) -> tuple[Graph, tuple[Applied, ...]] | None:
    """Split a grid axis that is used as itself and as ``h // G``."""
    for axis in grid:
        divisors = {
            a.den
            for node in graph.nodes
            for i in node_integers(node)
            for a in i.atoms()
            if isinstance(a, FloorDiv) and a.num.index == axis
        }
        if len(divisors) != 1 or not _plain(graph, axis):
            continue
        (size,) = divisors
        whole = _groups(graph, axis, size)
        if whole is not None:
            return _split(graph, axis, size, whole)
    return None


def _plain(graph: Graph, axis: str) -> bool:
    """Whether an axis is a number in addresses only, nowhere a value or a condition on data."""
    in_values = any(
        axis in i.free_indices() for n in graph.nodes for v in node_values(n) for i in _integers(v)
    )
    return not in_values and not any(axis in i.free_indices() for d in graph.data for i in d.indices)


def _integers(value: Value) -> list[Int]:
    return [i for part in walk(value) if not isinstance(part, Read) for i in integers(part)]


def _groups(graph: Graph, axis: str, size: Int) -> Int | None:
    """How many whole groups of ``size`` an axis has, where that is known to be exact."""
    facts = facts_of(graph.block.op)
    extent = graph.block.axis(axis).extent
    for node in graph.nodes:
        if not isinstance(node, Load):
            continue
        tensor = graph.block.tensor(node.tensor)
        for i, e in zip(node.at, tensor.extents, strict=True):
            if isinstance(i.atom, FloorDiv) and i.atom.num.index == axis and equal(e * size, extent, facts):
                return e
    return None


def _split(graph: Graph, axis: str, size: Int, whole: Int) -> tuple[Graph, tuple[Applied, ...]]:
    outer, member = _fresh(graph, f"{axis}_group"), _fresh(graph, f"{axis}_member")
    joined = index(outer) * size + index(member)

    def change(i: Int) -> Int:
        return i.substitute(atom)

    def atom(a: Atom) -> Int | None:
        match a:
            case FloorDiv(num, den) if num.index == axis and den == size:
                return index(outer)
            case Mod(num, den) if num.index == axis and den == size:
                return index(member)
            case Index(name) if name == axis:
                return joined
            case Dim() | Index() | FloorDiv() | Mod() | _:
                return None

    def axes_in(found: frozenset[str], parts: tuple[Int, ...]) -> frozenset[str]:
        if axis not in found:
            return found
        used = {n for i in parts for n in i.free_indices()} & {outer, member}
        return found - {axis} | used

    nodes: list[Node] = []
    axes: dict[str, frozenset[str]] = {}
    current = graph.by_name
    for node in graph.nodes:
        match node:
            case Load():
                at, constraints = tuple(map(change, node.at)), tuple(map(change, node.constraints))
                own = axes_in(node.axes, (*at, *constraints))
                new: Node = replace(node, at=at, constraints=constraints, axes=own)
            case Store():
                at, constraints = tuple(map(change, node.at)), tuple(map(change, node.constraints))
                own = axes_in(node.axes, (*at, *constraints))
                value = map_integers(node.value, change)
                new = replace(node, at=at, constraints=constraints, axes=own, value=value)
            case Fold():
                constraints = tuple(map(change, node.constraints))
                own = _inherited(graph, node, axis, axes, current) | axes_in(
                    frozenset({axis}) & _used(node.constraints), constraints
                )
                new = replace(node, constraints=constraints, axes=own - set(node.over))
            case Point() | Prefix():
                new = replace(node, axes=_inherited(graph, node, axis, axes, current))
        axes[new.name] = new.axes
        nodes.append(new)
    kept = tuple(a for a in graph.block.axes if a.name != axis)
    made = (Axis(name=outer, extent=whole), Axis(name=member, extent=size))
    text = f"{axis} = {outer} * {size} + {member}: a group reads {axis} // {size} once"
    applied = Applied(rule="group", statement=nodes[-1].define.origin, text=text)  # type: ignore[union-attr]
    split = replace(graph, block=replace(graph.block, axes=(*kept, *made)), nodes=tuple(nodes))
    return split, (applied,)


def _used(parts: tuple[Int, ...]) -> frozenset[str]:
    return frozenset(n for i in parts for n in i.free_indices())


def _inherited(
    graph: Graph, node: Node, axis: str, axes: dict[str, frozenset[str]], current: dict[str, Node]
) -> frozenset[str]:
    """A node's axes with the split one replaced by what its operands carry of it."""
    if axis not in node.axes:
        return node.axes
    found = node.axes - {axis}
    for dep in graph.deps(node):
        if axis in current[dep].axes:
            found |= axes[dep] - current[dep].axes
    return found


def _fresh(graph: Graph, name: str) -> str:
    op = graph.block.op
    taken = {a.name for a in graph.block.axes} | set(op.dims) | {t.name for t in graph.block.tensors}
    taken |= {s.name for s in op.scalars}
    k, out = 1, name
    while out in taken:
        k += 1
        out = f"{name}_{k}"
    return out


__all__ = ["lend_rows"]
