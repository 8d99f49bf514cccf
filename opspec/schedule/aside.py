"""Sums of what another fold loads anyhow, made once more by each program along an axis that they lack.

The sum of squares of a row, which scales a product of that row, has no columns. Where the product's tiles are cut
across columns too, each program has the row at hand: nothing more is loaded, and the sum costs one operation per
element of an operand's tile where the product has one per element and column. So it is with a distance whose axes
are weighted, and with the sum of the weights' logs beside it. Else one program would have to walk all columns.
``explain`` names what is made more than once.
"""

from __future__ import annotations

from collections.abc import Iterable

from opspec.ir.integers import Int
from opspec.ir.values import Binary, Read, Value, walk
from opspec.schedule.applied import Applied
from opspec.schedule.graph import Fold, Graph, Load, Node, Point

Place = tuple[str, tuple[Int, ...]]


def stands_aside(graph: Graph, node: Node, axis: str) -> bool:
    """Whether a fold may be made again by each program along an axis that it doesn't have.

    A fold over the same points that has the axis must load all that this one does, and none of the folds along which
    the axis goes may wait for this one in a stream that both walk.
    """
    if not isinstance(node, Fold) or axis in node.axes or _is_product(graph, node):
        return False
    needed = _loaded(graph, node.body)
    if needed is None or not needed:
        return False
    with_axis = [n for n in graph.nodes if isinstance(n, Fold) and axis in n.axes]
    if any(set(n.over) & set(node.over) and node.name in graph.reached(n) for n in with_axis):
        return False
    return any(
        set(node.over) <= set(n.over) and needed <= (_loaded(graph, n.body) or set()) for n in with_axis
    )


def repeats(graph: Graph, grid: Iterable[str]) -> tuple[Applied, ...]:
    """What programs along an axis of the grid make again."""
    found = []
    for node in graph.nodes:
        for axis in grid:
            if isinstance(node, Fold) and axis not in node.axes:
                text = f"each program along {axis} makes it again, from what it loads anyhow"
                found.append(Applied(rule="aside", statement=node.define.origin, text=text))
    return tuple(dict.fromkeys(found))


def _is_product(graph: Graph, fold: Fold) -> bool:
    """Whether a fold sums a product of two values, of which each has an axis that the other lacks."""
    if fold.monoid != "sum" or not isinstance(fold.body, Binary) or fold.body.op != "mul":
        return False
    a, b = graph.axes_of(fold.body.a), graph.axes_of(fold.body.b)
    return set(fold.over) <= a & b and bool(a - b) and bool(b - a)


def _loaded(graph: Graph, value: Value) -> set[Place] | None:
    """Where a value reads, through pointwise values; None if it needs more than that."""
    found: set[Place] = set()
    stack = [v.name for v in walk(value) if isinstance(v, Read)]
    while stack:
        node = graph.by_name[stack.pop()]
        match node:
            case Load(tensor=tensor, at=at):
                found.add((tensor, at))
            case Point():
                stack += graph.deps(node)
            case _:
                return None
    return found
