"""Factors that wait for a reduction multiply last: ``x * rsqrt(mean of squares) * w`` becomes ``x * w * rsqrt(…)``.

A row that is reduced, then multiplied and reduced again stays in registers all the while. What multiplies it without
waiting can be taken into it at once, so that one value an element waits, not two.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Read, Value, walk
from opspec.schedule.applied import Applied
from opspec.schedule.graph import Fold, Graph, Node, Point


def defer_factors(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """The products that are reduced in a new order, where that leaves fewer values to wait for their last factor."""
    waiting: set[str] = set()
    for node in graph.nodes:
        if isinstance(node, Fold) or set(graph.deps(node)) & waiting:
            waiting.add(node.name)
    reduced: set[str] = set()
    for node in reversed(graph.nodes):
        if isinstance(node, Fold) or node.name in reduced:
            reduced |= set(graph.deps(node))
    nodes: list[Node] = []
    applied: list[Applied] = []
    for node in graph.nodes:
        made = _ordered(node.value, waiting) if isinstance(node, Point) and node.name in reduced else None
        if isinstance(node, Point) and made is not None:
            text = "what waits for a reduction multiplies last"
            applied.append(Applied(rule="defer", statement=node.define.origin, text=text))
            nodes.append(replace(node, value=made))
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes)), tuple(applied)


def _ordered(value: Value, waiting: set[str]) -> Value | None:
    """A product with the factors that wait behind the others; None where that is so, or fewer than two do not wait."""
    factors = _factors(value)
    late = [f for f in factors if any(isinstance(v, Read) and v.name in waiting for v in walk(f))]
    early = [f for f in factors if f not in late and any(isinstance(v, Read) for v in walk(f))]
    plain = [f for f in factors if f not in late and f not in early]
    order = [*early, *plain, *late]
    if len(early) < len(("x", "w")) or not late or order == factors:
        return None
    made = order[0]
    for factor in order[1:]:
        made = Binary(op="mul", a=made, b=factor, dtype=F32)
    return made


def _factors(value: Value) -> list[Value]:
    if isinstance(value, Binary) and value.op == "mul" and value.dtype is F32:
        return [*_factors(value.a), *_factors(value.b)]
    return [value]
