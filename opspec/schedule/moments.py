"""Sums about a mean, derived: the law of Chan, Golub and LeVeque (1979).

A sum over n of ``(x - m) (y - k)``, where m is the mean of x and k that of y over the same points, needs the
means first. But the triple (count, sums, co-moment) of a part of the points is enough to join it to another:

    M(A and B) = M(A) + M(B) + count(A) (m(A) - m) (k(A) - k) + count(B) (m(B) - m) (k(B) - k)

with m and k the joint means. With y = x every term is a square, so that nothing cancels, which a difference
of ``sum(x * x)`` and a squared mean does. A sum is such a co-moment by what it is made of: two differences,
each between a value and the sum of that value over the same domain, divided by the number of its points.
"""

from __future__ import annotations

from dataclasses import dataclass

from opspec.ir.bounds import Facts, count, prove
from opspec.ir.dtypes import F32
from opspec.ir.facts import facts_of
from opspec.ir.integers import ONE, Int, index
from opspec.ir.values import Binary, Cast, Extent, Literal, Read, Unary, Value
from opspec.schedule.graph import Fold, Graph
from opspec.schedule.rewrites import spelled_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """``fold`` is the sum of ``(x - mean of x) (y - mean of y)``.

    ``sides`` are x and y, ``sums`` the folds that sum them over the same domain.
    """

    fold: str
    sides: tuple[Value, Value]
    sums: tuple[str, str]

    @property
    def text(self) -> str:
        """What is carried, and what a part adds when it is brought to the joint means."""
        if self.sums[0] == self.sums[1]:
            return (
                "squares about the mean online beside the sum by Chan's law: a part adds n * (m_part - m)^2"
            )
        return (
            "products about two means online beside the sums by Chan's law: "
            "a part adds n * (m_part - m) * (k_part - k)"
        )


def find_moment(graph: Graph, fold: Fold) -> Moment | None:
    """What makes a fold a sum about means; None where it is none."""
    nodes = graph.by_name
    body = spelled_out(fold.body, nodes)
    if fold.monoid != "sum" or fold.dtype is not F32 or not isinstance(body, Binary) or body.op != "mul":
        return None
    found = [_deviation(graph, fold, side) for side in (body.a, body.b)]
    if found[0] is None or found[1] is None or found[0][2] != found[1][2]:
        return None
    (x, of_x, _), (y, of_y, _) = found[0], found[1]
    return Moment(fold=fold.name, sides=(x, y), sums=(of_x, of_y))


def _deviation(graph: Graph, fold: Fold, side: Value) -> tuple[Value, str, bool] | None:
    """The value of a side, the fold that sums it, and whether it is the mean that is subtracted."""
    side = spelled_out(side, graph.by_name)
    if not isinstance(side, Binary) or side.op != "sub":
        return None
    for x, mean, plain in ((side.a, side.b, True), (side.b, side.a, False)):
        name = _mean_of(graph, fold, x, mean)
        if name is not None:
            return x, name, plain
    return None


def _mean_of(graph: Graph, fold: Fold, x: Value, mean: Value) -> str | None:
    """The fold that sums x over the domain of ``fold``, if ``mean`` is it divided by the number of points."""
    mean = spelled_out(mean, graph.by_name)
    if not isinstance(mean, Binary) or mean.op not in ("div", "mul"):
        return None
    pairs: list[tuple[Value, Value | None]] = [(mean.a, mean.b)]
    if mean.op == "mul":
        pairs = [(mean.a, _inverse(graph, mean.b)), (mean.b, _inverse(graph, mean.a))]
    for total, divisor in pairs:
        name = None if divisor is None else _sum_of(graph, fold, x, total)
        if name is not None and divisor is not None and _counts(graph, fold, divisor):
            return name
    return None


def _inverse(graph: Graph, value: Value) -> Value | None:
    """What a value is the reciprocal of."""
    match spelled_out(value, graph.by_name):
        case Unary(op="reciprocal", x=x):
            return x
        case Binary(op="div", a=Literal(value=1), b=b):
            return b
    return None


def _sum_of(graph: Graph, fold: Fold, x: Value, total: Value) -> str | None:
    nodes = graph.by_name
    total = spelled_out(total, nodes)
    node = nodes.get(total.name) if isinstance(total, Read) else None
    if not isinstance(node, Fold) or node.monoid != "sum" or not same_domain(node, fold):
        return None
    return node.name if spelled_out(node.body, nodes) == spelled_out(x, nodes) else None


def same_domain(a: Fold, b: Fold) -> bool:
    """Whether two folds go over the same points."""
    return set(a.over) == set(b.over) and set(a.constraints) == set(b.constraints)


def _counts(graph: Graph, fold: Fold, value: Value) -> bool:
    """Whether a value is the number of points of a fold's domain."""
    value = spelled_out(value, graph.by_name)
    if isinstance(value, Cast) and value.implicit:
        value = spelled_out(value.x, graph.by_name)
    match value:
        case Read(name=name):
            node = graph.by_name[name]
            return (
                isinstance(node, Fold)
                and node.monoid == "sum"
                and isinstance(node.body, Literal)
                and node.body.value == 1
                and same_domain(node, fold)
            )
        case Extent(value=given):
            points = number_of_points(graph, fold)
            return points is not None and _equal(given, points, facts_of(graph.block.op))
        case Literal(value=number):
            points = number_of_points(graph, fold)
            return points is not None and points.constant is not None and number == points.constant
    return False


def number_of_points(graph: Graph, fold: Fold) -> Int | None:
    """The number of points that a fold goes over as one expression, where there is one."""
    extents = {a.name: a.extent for a in graph.block.axes}
    facts = facts_of(graph.block.op)
    points = ONE
    for axis in fold.over:
        mine = [c for c in fold.constraints if axis in c.free_indices()]
        if any((c.free_indices() & set(fold.over)) - {axis} for c in mine):
            return None
        box = [index(axis), extents[axis] - 1 - index(axis)]
        others = {name for c in mine for name in c.free_indices()} - {axis}
        context = facts.extended([b for n in others for b in (index(n), extents[n] - 1 - index(n))])
        size = count(axis, [*box, *mine], context)
        if size is None:
            return None
        points = points * size
    return points


def _equal(a: Int, b: Int, facts: Facts) -> bool:
    return a == b or (prove(a - b, facts) and prove(b - a, facts))
