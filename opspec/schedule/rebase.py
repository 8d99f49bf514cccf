"""``rebase``: a sum about the extreme of several streams, taken about that of its own and brought over once.

``exp(a_i - m)`` with ``m = max(max_i a_i, max_t s_t)`` needs all of both streams before its first term, so that each
is walked twice. By the law ``f(x; m) = g(own, m) f(x; own)`` the sum is taken about the extreme of its own stream,
beside which it runs online, and one factor a row brings it to the joint extreme. No stream waits for another then.

Where its own extreme is the monoid's identity a sum has no mass (it is taken about 0), and the factor is what IEEE
arithmetic makes of it: 0 beside a finite joint extreme, NaN where that is the identity as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from opspec.ir.dtypes import F32
from opspec.ir.integers import index
from opspec.ir.values import Binary, Read, Unary, Value, map_values, walk
from opspec.schedule.applied import Applied
from opspec.schedule.graph import Fold, Graph, Node, Point
from opspec.schedule.laws import between_states, find_law, finite


def rebase_sums(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Bring every such sum to the extreme of its own stream; the graph itself where there is none."""
    applied: list[Applied] = []
    for joint, states in list(_joint_extremes(graph)):
        made = {n.name: _rebased(graph, n, joint, states) for n in graph.nodes if isinstance(n, Fold)}
        new = {name: pair for name, pair in made.items() if pair is not None}
        nodes: list[Node] = []
        for node in graph.nodes:
            nodes += new.get(node.name, (node,))
        graph = _shared(replace(graph, nodes=tuple(nodes)), [own for own, _ in new.values()])
        for statement in dict.fromkeys(own.define.origin for own, _ in new.values()):
            text = f"runs about the extreme of its own stream, which {joint.define.origin} joins once"
            applied.append(Applied(rule="rebase", statement=statement, text=text))
    return graph, tuple(applied)


def _joint_extremes(graph: Graph) -> Iterator[tuple[Point, tuple[Fold, ...]]]:
    """Points that are the extreme of extremes over streams of their own, none of which is empty."""
    nodes = graph.by_name
    for node in graph.nodes:
        if not isinstance(node, Point) or not isinstance(node.value, Binary):
            continue
        op = node.value.op
        parts = list(_parts(node.value, op))
        read = [nodes[v.name] for v in parts if isinstance(v, Read)]
        folds = [p for p in read if isinstance(p, Fold) and p.monoid == op and p.dtype is F32]
        if op not in ("max", "min") or len(folds) < len(parts):
            continue
        # over nothing an extreme has no value: without a condition its domain has a point
        whole = all(f.empty is None and not f.constraints and f.axes == node.axes for f in folds)
        over = [a for f in folds for a in f.over]
        if whole and len(set(over)) == len(over):
            yield node, tuple(folds)


def _parts(value: Value, op: str) -> Iterator[Value]:
    if isinstance(value, Binary) and value.op == op:
        yield from _parts(value.a, op)
        yield from _parts(value.b, op)
    else:
        yield value


def _rebased(graph: Graph, node: Fold, joint: Point, states: tuple[Fold, ...]) -> tuple[Fold, Point] | None:
    """A sum about the extreme of its own stream, and what makes of it the one about the joint extreme."""
    state = next((s for s in states if s.over == node.over), None)
    if state is None or node.monoid != "sum" or node.constraints:
        return None
    body = _about(graph, node.body, joint.name, state)
    if body == node.body:
        return None
    own = replace(node, name=f"{node.name}.own", body=body)
    law = find_law(replace(graph, nodes=(*graph.nodes, own)), own, state)
    if isinstance(law, str):
        return None
    rows = tuple(index(a) for a in sorted(state.axes))
    before, after = (Read(name=n, indices=rows, dtype=F32) for n in (state.name, joint.name))
    total = Read(name=own.name, indices=tuple(index(a) for a in sorted(own.axes)), dtype=F32)
    value = Binary(op="mul", a=total, b=between_states(law.factor, before, after), dtype=F32)
    return own, Point(name=node.name, value=value, axes=own.axes | state.axes, define=node.define)


def _about(graph: Graph, value: Value, joint: str, state: Fold) -> Value:
    """``value`` with the state, made finite, for the joint one; points between are written out."""
    if isinstance(value, Read):
        if value.name == joint:
            return finite(replace(value, name=state.name), state.monoid)
        node = graph.by_name[value.name]
        if isinstance(node, Point) and joint in graph.reached(node):
            return _about(graph, node.value, joint, state)
        return value
    return map_values(value, lambda v: _about(graph, v, joint, state))


def _shared(graph: Graph, sums: list[Fold]) -> Graph:
    """The graph with each exponential that several of ``sums`` take as one point before the first of them."""
    counts: Counter[Value] = Counter()
    for s in sums:
        counts.update(v for v in {*walk(s.body)} if isinstance(v, Unary) and v.op == "exp")
    reads: dict[Value, Read] = {}
    nodes: list[Node] = []

    def change(value: Value) -> Value:
        return reads[value] if value in reads else map_values(value, change)

    for node in graph.nodes:
        if node not in sums or not isinstance(node, Fold):
            nodes.append(node)
            continue
        for value in walk(node.body):
            if counts[value] > 1 and value not in reads:
                axes = graph.axes_of(value)
                name = f"{node.name}.e"
                reads[value] = Read(name=name, indices=tuple(index(a) for a in sorted(axes)), dtype=F32)
                nodes.append(Point(name=name, value=value, axes=axes, define=node.define))
        nodes.append(replace(node, body=change(node.body)))
    return replace(graph, nodes=tuple(nodes))


__all__ = ["rebase_sums"]
