"""The order of a kernel's axes, and which of them programs may walk in parallel."""

from __future__ import annotations

from collections.abc import Mapping

from opspec.ir.bounds import prove
from opspec.ir.dtypes import choices
from opspec.ir.facts import facts_of
from opspec.ir.integers import ZERO, Int
from opspec.ir.values import Read, Value, walk
from opspec.schedule.aside import stands_aside
from opspec.schedule.directions import prefixes
from opspec.schedule.graph import Fold, Graph, Load, Point, Prefix, Store
from opspec.schedule.operands import product_sides


def axis_order(graph: Graph) -> tuple[str, ...]:
    """Axes in the order of the results' axes, then of the inputs'; those that no address uses come first."""
    addressed = {
        x for n in graph.nodes if isinstance(n, Load | Store) for i in n.at for x in i.free_indices()
    }
    lent = {x for n in graph.nodes if isinstance(n, Store) for x in n.axes}
    seen = dict.fromkeys(a.name for a in graph.block.axes if a.name in lent - addressed)
    stores: list[Load | Store] = [n for n in graph.nodes if isinstance(n, Store)]
    loads = [n for n in graph.nodes if isinstance(n, Load)]
    for node in (*stores, *sorted(loads, key=lambda n: -len(n.at))):
        for i in node.at:
            for name in sorted(i.free_indices()):
                seen[name] = None
    for axis in graph.block.axes:
        seen[axis.name] = None
    return _bytes_first(graph, tuple(a for a in seen if _used(graph, a)))


def _bytes_first(graph: Graph, order: tuple[str, ...]) -> tuple[str, ...]:
    """Where bytes along the summed index meet 16-bit values, their rows in front of the others' columns.

    A matrix unit takes the operand of the rows from registers, where bytes are widened; that of the columns
    would go back through shared memory.
    """
    for fold in graph.nodes:
        sides = product_sides(graph, fold) if isinstance(fold, Fold) else None
        if sides is None or not isinstance(fold, Fold) or sides.cast is None:
            continue
        over = set(fold.over)
        narrow, wide = (sides.a, sides.b) if _bytes_along(graph, sides.a, over) else (sides.b, sides.a)
        in_16 = all(d.bits == 16 for d in choices(sides.cast))
        if not in_16 or not _bytes_along(graph, narrow, over) or _bytes_along(graph, wide, over):
            continue
        grid = grid_axes(graph, order)
        own = [x for x in order if x in graph.axes_of(narrow) - graph.axes_of(wide) - over]
        others = [x for x in order if x in graph.axes_of(wide) - graph.axes_of(narrow) - over]
        if len(own) == len(others) == 1 and {*own, *others} <= set(grid):
            rest = [x for x in order if x not in own]
            at = rest.index(others[0])
            order = (*rest[:at], *own, *rest[at:])
    return order


def _bytes_along(graph: Graph, value: Value, over: set[str]) -> bool:
    """Whether a value is a load of at most 8 bits an element that lie along a summed index, or a function of
    such a load and of values that change less often."""
    loads = [n for v in walk(value) if isinstance(v, Read) for n in _loads(graph, v.name)]
    along = [n for n in loads if n.at and n.at[-1].index in over]
    return bool(along) and all(
        d.bits <= 8 for n in along for d in choices(graph.block.tensor(n.tensor).dtype)
    )


def _loads(graph: Graph, name: str) -> list[Load]:
    """The loads that a value comes from, through pointwise statements."""
    node = graph.by_name.get(name)
    if isinstance(node, Load):
        return [node]
    if isinstance(node, Point):
        return [n for v in walk(node.value) if isinstance(v, Read) for n in _loads(graph, v.name)]
    return []


def _used(graph: Graph, axis: str) -> bool:
    return any(axis in n.axes or (isinstance(n, Fold) and axis in n.over) for n in graph.nodes)


def grid_axes(graph: Graph, order: tuple[str, ...]) -> tuple[str, ...]:
    """Axes that are free in every fold, scan and store; folds that stand ``aside`` may lack one."""
    bound = {a for n in graph.nodes if isinstance(n, Fold) for a in n.over}
    bound |= {n.along for n in prefixes(graph)}
    roots = [n for n in graph.nodes if isinstance(n, Fold | Prefix | Store)]
    free = [a for a in order if a not in bound]
    return tuple(a for a in free if all(a in n.axes or stands_aside(graph, n, a) for n in roots))


def windows(graph: Graph, grid: tuple[str, ...], inner: tuple[str, ...]) -> set[str]:
    """Axes of taps, reduced and added to a place in parallel (``x[t + r]``): a program walks them one at a time.

    Taps of neighbouring places are loaded from the same rows, which a tile of places then holds in its caches. Places
    that lie further apart than their taps reach share none (``x[64 * p + r]`` with r below 64).
    """
    stored = {a for n in graph.nodes if isinstance(n, Store) for a in n.axes}
    reduced = {a for n in graph.nodes if isinstance(n, Fold) and n.extreme is None for a in n.over}
    found: set[str] = set()
    for load in graph.nodes:
        for i in load.at if isinstance(load, Load) else ():
            split = None if i.tensors() else i.affine(i.free_indices())
            if split is not None and all(k.constant is not None for k in split[0].values()):
                taps, places = set(split[0]) & set(inner), set(split[0]) & set(grid)
                found |= taps if places and not _apart(graph, split[0], taps, places) else set()
    return found & reduced - stored


def _apart(graph: Graph, steps: Mapping[str, Int], taps: set[str], places: set[str]) -> bool:
    """Whether the taps of each place end before those of the next begin."""
    reach = ZERO
    for name in taps:
        reach = reach + steps[name] * (graph.block.axis(name).extent - 1)
    facts = facts_of(graph.block.op)
    return all(prove(step - reach - 1, facts) for step in (steps[name] for name in places))


def fast_axes(graph: Graph) -> tuple[str, ...]:
    """Axes along which some tensor is walked with unit stride when contiguous.

    The tensors of most axes say so, and of these not one that is walked along part of another's loops.
    """
    seen: dict[str, None] = {}
    accesses = [n for n in graph.nodes if isinstance(n, Load | Store)]
    widest = max(len(n.at) for n in accesses)
    accesses = [n for n in accesses if len(n.at) == widest]
    for node in accesses:
        if node.at and not any(node.axes < other.axes for other in accesses):
            split = node.at[-1].affine(node.at[-1].free_indices())
            for name, coefficient in (split[0] if split else {}).items():
                if coefficient.constant == 1:
                    seen[name] = None
    return tuple(seen)
