"""Named rewrites of reductions. Each is listed by ``opspec explain`` and has its own test.

``share``: nodes that compute the same value are one node (rule 15 counts them once, too).

``pull``: a factor that does not depend on the reduced index leaves the sum, by
distributivity: ``sum_t (e_t / z) v_t = (sum_t e_t v_t) / z``. It is done where the factor
would otherwise force another sweep (it is itself a reduction over the same axis), or where
it stands between a contraction and the matrix unit. Where the sum may be empty the factor
is guarded, so that ``0 / 0`` can't replace the 0 of an empty sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opspec.ir.bounds import prove
from opspec.ir.dtypes import F32
from opspec.ir.facts import facts_of
from opspec.ir.integers import index
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    integers,
    map_values,
    walk,
)
from opspec.schedule.applied import Applied
from opspec.schedule.domain import nonempty
from opspec.schedule.graph import Fold, Graph, Load, Node, Point, Prefix, Store, node_values


def share_loads(graph: Graph) -> Graph:
    """Let a load that is made anyway, under weaker conditions, serve every access to the same elements."""
    loads = [n for n in graph.nodes if isinstance(n, Load)]
    same: dict[str, str] = {}
    for strict in loads:
        for weak in loads:
            if weak is not strict and weak.name not in same and _serves(weak, strict):
                same[strict.name] = weak.name
                break
    if not same:
        return graph

    def rename(value: Value) -> Value:
        value = map_values(value, rename)
        return (
            replace(value, name=same[value.name]) if isinstance(value, Read) and value.name in same else value
        )

    nodes = tuple(_renamed(n, rename) for n in graph.nodes if n.name not in same)
    data = {k: same.get(v, v) for k, v in graph.data.items()}
    shared = replace(graph, nodes=nodes, data=data)
    return replace(shared, nodes=shared.ordered(n.name for n in nodes if isinstance(n, Store)))


def _serves(weak: Load, strict: Load) -> bool:
    return (
        (weak.tensor, weak.at, weak.otherwise, weak.axes)
        == (strict.tensor, strict.at, strict.otherwise, strict.axes)
        and set(weak.guard) <= set(strict.guard)
        and set(weak.constraints) <= set(strict.constraints)
    )


def share_equal(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Make one node of those that compute the same value over the same axes."""
    same: dict[str, str] = {}
    seen: dict[object, str] = {}
    nodes: list[Node] = []
    applied: list[Applied] = []

    def rename(value: Value) -> Value:
        value = map_values(value, rename)
        if isinstance(value, Read) and value.name in same:
            return replace(value, name=same[value.name])
        return value

    for node in graph.nodes:
        new = _renamed(node, rename)
        key: object = None
        match new:
            case Point(value=value, axes=axes):
                key = ("point", value, axes)
            case Fold(monoid=monoid, over=over, body=body, constraints=constraints, using=using, empty=empty):
                body = spelled_out(body, {n.name: n for n in nodes})
                key = (monoid, frozenset(over), body, frozenset(constraints), using, empty)
            case Prefix():
                key = replace(new, name="", define=graph.block.body[0])
        if key is not None and key in seen:
            same[node.name] = seen[key]
            if isinstance(node, Fold):
                first = graph.by_name[seen[key]]
                assert isinstance(first, Fold)
                text = f"reuses the {node.monoid} of {first.define.origin}"
                applied.append(Applied(rule="share", statement=node.define.origin, text=text))
            continue
        if key is not None:
            seen[key] = node.name
        nodes.append(new)
    data = {k: same.get(v, v) for k, v in graph.data.items()}
    return replace(graph, nodes=tuple(nodes), data=data), tuple(applied)


def spelled_out(value: Value, nodes: dict[str, Node]) -> Value:
    """A value that merely reads a point, as what that point computes."""
    while isinstance(value, Read) and isinstance(node := nodes.get(value.name), Point):
        value = node.value
    return value


def _renamed(node: Node, rename: Callable[[Value], Value]) -> Node:
    match node:
        case Load(guard=guard, otherwise=otherwise):
            other = None if otherwise is None else rename(otherwise)
            return replace(node, guard=tuple(map(rename, guard)), otherwise=other)
        case Point(value=value) | Store(value=value):
            return replace(node, value=rename(value))
        case Fold(body=body, empty=empty, extreme=extreme):
            return replace(
                node,
                body=rename(body),
                empty=None if empty is None else rename(empty),
                extreme=None if extreme is None else rename(extreme),
            )
        case Prefix(body=body, decay=decay):
            return replace(node, body=rename(body), decay=None if decay is None else rename(decay))


Factor = tuple[Value, bool]  # (value, divides)


def pull_factors(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Move factors out of sums where that saves a sweep or frees the matrix unit."""
    applied: list[Applied] = []
    nodes: list[Node] = []
    current = graph
    for node in graph.nodes:
        made = _pull(current, node) if isinstance(node, Fold) and node.monoid == "sum" else None
        if made is None:
            nodes.append(node)
            continue
        fold, point, text = made
        applied.append(Applied(rule="pull", statement=point.define.origin, text=text))
        nodes += [fold, point]
        current = replace(
            current, nodes=(*nodes, *(n for n in graph.nodes if n.name not in {m.name for m in nodes}))
        )
    return replace(graph, nodes=tuple(nodes)), tuple(applied)


def _pull(graph: Graph, node: Fold) -> tuple[Fold, Point, str] | None:
    over = set(node.over)
    blockers = _folds_over(graph, over, node)
    factors = _factors(graph, node.body, over, False)
    # a function of an extreme scales each term into range: outside the sum it would come too late
    early = {n for n in blockers if graph.by_name[n].monoid in ("max", "min")}  # type: ignore[union-attr]
    outside = [
        (f, divides)
        for f, divides in factors
        if not graph.axes_of(f) & over
        and (not early & _first_folds(graph, f) or (isinstance(f, Read) and f.name in early))
    ]
    inside = [f for f in factors if f not in outside]
    needed = any(blockers & _reached(graph, f[0]) for f in outside)
    frees = len([f for f, d in inside if not d]) == 2 and all(not d for _, d in inside) and bool(outside)
    if not outside or not inside or not (needed or frees) or _literal_only(outside):
        return None
    if not covers(graph, inside, over):
        return None
    body = _product(inside)
    kept = replace(
        node, name=f"{node.name}.sum", body=body, axes=graph.axes_of(body) | _constraint_axes(node) - over
    )
    kept = replace(kept, axes=frozenset(kept.axes - over))
    indices = tuple(index(a) for a in sorted(kept.axes))
    result = _product([(Read(name=kept.name, indices=indices, dtype=F32), False), *outside])
    extents = {a: graph.block.axis(a).extent for a in node.over}
    facts = facts_of(graph.block.op)
    if node.constraints or not all(prove(e - 1, facts) for e in extents.values()):
        test = nonempty(node.over, extents, node.constraints)
        if test is None:
            return None
        result = Select(condition=test, a=result, b=Literal(value=0.0, dtype=F32), dtype=F32)
    names = ", ".join(sorted({_label(f) for f, _ in outside}))
    axes = set(kept.axes)
    for f, _ in outside:
        axes |= graph.axes_of(f)
    for c in node.constraints:
        axes |= c.free_indices() - over
    point = Point(name=node.name, value=result, axes=frozenset(axes), define=node.define)
    return kept, point, f"{names} leaves the sum over {', '.join(node.over)}"


def covers(graph: Graph, inside: list[Factor], over: set[str]) -> bool:
    """Whether the factors that stay still depend on every reduced axis."""
    found: set[str] = set()
    for f, _ in inside:
        found |= graph.axes_of(f)
    return over <= found


def _constraint_axes(node: Fold) -> frozenset[str]:
    found: set[str] = set()
    for c in node.constraints:
        found |= c.free_indices()
    return frozenset(found)


def _literal_only(factors: list[Factor]) -> bool:
    return all(isinstance(f, Literal) for f, _ in factors)


def _label(value: Value) -> str:
    return value.name.split(".load")[0] if isinstance(value, Read) else "a factor"


def _factors(graph: Graph, value: Value, over: set[str], divides: bool) -> list[Factor]:
    """Flatten products and quotients, through points that mix what is and isn't reduced."""
    match value:
        case Binary(op="mul", a=a, b=b) if value.dtype is F32:
            return _factors(graph, a, over, divides) + _factors(graph, b, over, divides)
        case Binary(op="div", a=a, b=b):
            return _factors(graph, a, over, divides) + _factors(graph, b, over, not divides)
        case Unary(op="reciprocal", x=x):
            return _factors(graph, x, over, not divides)
        case Read(name=name):
            node = graph.by_name.get(name)
            if isinstance(node, Point) and node.axes & over:
                inner = _factors(graph, node.value, over, divides)
                if any(not graph.axes_of(f) & over for f, _ in inner):
                    return inner
    return [(value, divides)]


def _product(factors: list[Factor]) -> Value:
    numerators = [f for f, d in factors if not d]
    result: Value = numerators[0] if numerators else Literal(value=1.0, dtype=F32)
    for f in numerators[1:]:
        result = Binary(op="mul", a=result, b=f, dtype=F32)
    for f, divides in factors:
        if divides:
            result = Binary(op="div", a=result, b=f, dtype=F32)
    return result


def _folds_over(graph: Graph, over: set[str], node: Fold) -> frozenset[str]:
    return frozenset(
        n.name for n in graph.nodes if isinstance(n, Fold) and set(n.over) & over and n.name != node.name
    )


def _first_folds(graph: Graph, value: Value) -> frozenset[str]:
    """The folds that a value uses without another fold between."""
    nodes, found, seen = graph.by_name, set[str](), set[str]()
    stack = [p.name for p in walk(value) if isinstance(p, Read)]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            node = nodes[name]
            if isinstance(node, Fold):
                found.add(name)
            elif not isinstance(node, Load):
                stack += graph.deps(node)
    return frozenset(found)


def _reached(graph: Graph, value: Value) -> frozenset[str]:
    """Every node that a value depends on, directly or not."""
    nodes, found = graph.by_name, set[str]()
    stack = [p.name for p in walk(value) if isinstance(p, Read)]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            node = nodes[name]
            if not isinstance(node, Load):
                stack += graph.deps(node)
    return frozenset(found)


def invert_divisors(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Multiply by the reciprocal of what is the same for a whole launch, instead of dividing each element.

    Not where a floor, a rounding, a comparison or an integer follows: there the last bit matters (rule 12).
    """
    exact: set[str] = set()
    for node in reversed(graph.nodes):
        if node.name in exact or any(_wants_exact(v) for v in node_values(node)):
            exact |= set(graph.deps(node))
            exact |= {node.name} if any(_wants_exact(v) for v in node_values(node)) else set()
    applied: list[Applied] = []

    def change(value: Value) -> Value:
        value = map_values(value, change)
        if (
            isinstance(value, Binary)
            and value.op == "div"
            and _of_launch(value.b)
            and not _of_launch(value.a)
        ):
            inverse = Unary(op="reciprocal", x=value.b, dtype=F32)
            return Binary(op="mul", a=value.a, b=inverse, dtype=F32, span=value.span)
        return value

    nodes: list[Node] = []
    for node in graph.nodes:
        changed = change(node.value) if isinstance(node, Point) and node.name not in exact else None
        if isinstance(node, Point) and changed is not None and changed != node.value:
            text = "multiplies by the reciprocal of what a launch has once"
            applied.append(Applied(rule="invert", statement=node.define.origin, text=text))
            nodes.append(replace(node, value=changed))
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes)), tuple(applied)


def _of_launch(value: Value) -> bool:
    """Whether a value is made of dims, scalars and numbers alone, and more than a number."""
    parts = list(walk(value))
    if any(isinstance(v, Read) or any(i.free_indices() for i in integers(v)) for v in parts):
        return False
    return any(isinstance(v, Extent | Scalar) for v in parts)


def _wants_exact(value: Value) -> bool:
    for v in walk(value):
        match v:
            case Unary(op="floor" | "ceil" | "round"):
                return True
            case Compare(a=a) if a.dtype.kind == "float":
                return True
            case Cast(implicit=False):
                return True
            case Binary(op="floordiv" | "mod"):
                return True
    return False
