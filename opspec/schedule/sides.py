"""``sides``: a product of several factors under a sum, brought to two that a matrix unit can take.

``sum[k](x[m, k] * w[k, n] * g[k])`` is a contraction in whatever order its factors are written (rule 17), but only of
two factors can one be rows and the other columns. Each further factor goes to the side that has all of its axes, the
rows where both have them: these come from registers, where they can be computed. A factor that divides is one of
these, and divides its side.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Read, Value
from opspec.schedule.applied import Applied
from opspec.schedule.axis_order import axis_order
from opspec.schedule.graph import Axes, Fold, Graph, Node, Point
from opspec.schedule.operands import product_sides

Factor = tuple[Value, bool]


def gather_sides(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Sums of products of more than two factors as such of two, where two of them have rows and columns."""
    nodes: list[Node] = []
    applied: list[Applied] = []
    for node in graph.nodes:
        body = _two_sides(graph, node) if isinstance(node, Fold) and node.monoid == "sum" else None
        if body is None or not isinstance(node, Fold):
            nodes.append(node)
            continue
        nodes.append(replace(node, body=body))
        text = f"its factors are brought to two sides of the sum over {', '.join(node.over)}"
        applied.append(Applied(rule="sides", statement=node.define.origin, text=text))
    if not applied:
        return graph, ()
    current = replace(graph, nodes=tuple(nodes))
    return replace(current, nodes=current.ordered(current.by_name)), tuple(applied)


def _two_sides(graph: Graph, fold: Fold) -> Value | None:
    """The body as a product of rows and columns; None where it is one already or cannot be."""
    over = frozenset(fold.over)
    if fold.dtype is not F32 or _is_product(graph, fold.body, over):
        return None
    factors = _factors(graph, fold.body, over)
    if len(factors) < 3:
        return None
    axes = [graph.axes_of(f) for f, _ in factors]
    whole = [k for k, (_, divides) in enumerate(factors) if over <= axes[k] and not divides]
    order = sorted(whole, key=lambda k: (-len(axes[k]), k))
    pairs = ((i, j) for n, i in enumerate(order) for j in order[n + 1 :])
    pair = next((p for p in pairs if axes[p[0]] - axes[p[1]] and axes[p[1]] - axes[p[0]]), None)
    if pair is None:
        return None
    walked = axis_order(graph)
    first, second = sorted(pair, key=lambda k: min(map(walked.index, axes[k] - axes[sum(pair) - k])))
    sides: dict[int, list[Factor]] = {first: [], second: []}
    for k, factor in enumerate(factors):
        home = k if k in pair else next((s for s in (first, second) if axes[k] <= axes[s]), None)
        if home is None:
            return None
        sides[home].append(factor)
    a, b = (_side(sides[k]) for k in (first, second))
    made = _times(a, b)
    return made if product_sides(graph, replace(fold, body=made)) is not None else None


def _side(factors: list[Factor]) -> Value:
    """The product of those that multiply, over those that divide."""
    product = reduce(_times, [f for f, divides in factors if not divides])
    return reduce(_over, [f for f, divides in factors if divides], product)


def _over(a: Value, b: Value) -> Value:
    return Binary(op="div", a=a, b=b, dtype=F32)


def _times(a: Value, b: Value) -> Value:
    return Binary(op="mul", a=a, b=b, dtype=F32)


def _is_product(graph: Graph, body: Value, over: Axes) -> bool:
    """Whether a body is two factors already, with all that is summed and with an axis of its own each."""
    if not isinstance(body, Binary) or body.op != "mul":
        return False
    a, b = graph.axes_of(body.a), graph.axes_of(body.b)
    return over <= a & b and bool(a - b) and bool(b - a)


def _factors(graph: Graph, value: Value, over: Axes) -> list[Factor]:
    """The factors of a product, in order of writing, through points that are products of rows and columns; True marks
    one that divides."""
    match value:
        case Binary(op="mul", a=a, b=b) if value.dtype is F32:
            return [*_factors(graph, a, over), *_factors(graph, b, over)]
        case Binary(op="div", a=a, b=b) if value.dtype is F32:
            return [*_factors(graph, a, over), (b, True)]
        case Read(name=name):
            node = graph.by_name.get(name)
            if isinstance(node, Point) and _is_product(graph, node.value, over):
                return _factors(graph, node.value, over)
    return [(value, False)]
