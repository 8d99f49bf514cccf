"""Totals about means, in two launches: what each part leaves, and how the parts are joined.

A total of ``(x - mean of x) (y - mean of y)`` needs the means of everything. A part sums about its own means,
and the second launch adds ``n (m_part - m) (k_part - k)`` to each, by the law of ``moments``.
"""

from __future__ import annotations

from dataclasses import dataclass

from opspec.ir.bounds import count
from opspec.ir.dtypes import F32, I64
from opspec.ir.facts import facts_of
from opspec.ir.integers import ONE, Int, greatest, index
from opspec.ir.program import Define
from opspec.ir.values import Binary, BinaryOp, Cast, Extent, Range, Read, Reduce, Unary, Value, free_indices
from opspec.schedule.block import Block
from opspec.schedule.graph import Fold, Graph
from opspec.schedule.moments import find_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Centred:
    """The two sides of a total, the means that are subtracted from them, and the statements that sum the sides."""

    sides: tuple[Value, Value]
    means: tuple[Value, Value]
    sums: tuple[str, str]


def centred_totals(block: Block, graph: Graph) -> dict[str, Centred]:
    """The statements of a block that sum about means of a domain without conditions."""
    defines = {d.name: d for d in block.body}
    found: dict[str, Centred] = {}
    for fold in graph.nodes:
        moment = find_moment(graph, fold) if isinstance(fold, Fold) and not fold.constraints else None
        if moment is None or not {moment.fold, *moment.sums} <= set(defines):
            continue
        value = defines[moment.fold].value
        assert isinstance(value, Reduce)
        body = _spelled_out(value.body, defines)
        assert isinstance(body, Binary)
        pairs = [_sides(_spelled_out(v, defines), {r.index for r in value.ranges}) for v in (body.a, body.b)]
        found[moment.fold] = Centred(
            sides=(pairs[0][0], pairs[1][0]), means=(pairs[0][1], pairs[1][1]), sums=moment.sums
        )
    return found


def _spelled_out(value: Value, defines: dict[str, Define]) -> Value:
    """A value that merely reads a pointwise statement of the block, as what that computes."""
    while isinstance(value, Read) and value.name in defines:
        inner = defines[value.name].value
        if isinstance(inner, Reduce):
            break
        value = inner
    return value


def _sides(difference: Value, over: set[str]) -> tuple[Value, Value]:
    """What varies along the summed axes, and what does not."""
    assert isinstance(difference, Binary)
    a, b = difference.a, difference.b
    return (a, b) if free_indices(a) & over else (b, a)


def points_of(block: Block, parts: Range, steps: Range, inside: Int, others: tuple[Range, ...]) -> Int:
    """The number of points of a part: its steps inside the axis, times the extents of the other axes."""
    context = facts_of(block.op).extended([index(parts.index), parts.upper - 1 - index(parts.index)])
    step = index(steps.index)
    points = count(steps.index, [step, steps.upper - 1 - step, inside], context)
    assert points is not None
    for r in others:
        points = points * r.upper
    return points


def about_own_means(sides: tuple[Value, Value], own: tuple[Value, Value], points: Int) -> Value:
    """The summand of a part: the differences of its points from its own means."""
    inverse = _inverse(points)
    x, y = (
        _binary("sub", side, _binary("mul", total, inverse)) for side, total in zip(sides, own, strict=True)
    )
    return _binary("mul", x, y)


def joined(centred: Centred, part: Value, own: tuple[Value, Value], points: Int) -> Value:
    """What a part adds to the total about the means of everything."""
    inverse = _inverse(greatest(points, ONE))
    moved = [
        _binary("sub", _binary("mul", total, inverse), mean)
        for total, mean in zip(own, centred.means, strict=True)
    ]
    shift = _binary("mul", _binary("mul", number(points), moved[0]), moved[1])
    return _binary("add", part, shift)


def _inverse(points: Int) -> Value:
    """The reciprocal of a number of points, which all results of a part share."""
    return Unary(op="reciprocal", x=number(points), dtype=F32)


def number(value: Int) -> Value:
    """An integer expression as an f32."""
    return Cast(to=F32, x=Extent(value=value, dtype=I64), implicit=True, dtype=F32)


def _binary(op: BinaryOp, a: Value, b: Value) -> Value:
    return Binary(op=op, a=a, b=b, dtype=F32)
