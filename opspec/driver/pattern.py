"""What kind of computation a scheduled kernel is: its folds in order, and traits that set relatives apart.

Two kernels share a pattern if their steps are equal: the same folds over the same axes by place, run beside each
other by a law or one after the other, with or without a map over what was folded. Axes get letters in the order in
which they are folded, so that no name of a spec has a say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opspec.ir.dtypes import choices
from opspec.ir.integers import Datum, FloorDiv, Int
from opspec.ir.values import Binary, Read, Value, walk
from opspec.schedule.graph import Fold, Graph, Load, Point, Prefix, Store
from opspec.schedule.laws import Law, find_law
from opspec.schedule.moments import find_moment
from opspec.schedule.plan import Plan
from opspec.schedule.products import Product

_EXTREMES = ("max", "min")
_NARROW = (4, 8)


@dataclass(frozen=True, slots=True)
class Pattern:
    """``steps``: the skeleton that relatives share; ``traits``: in what they may differ."""

    steps: tuple[str, ...]
    traits: tuple[str, ...]

    @property
    def text(self) -> str:
        """The skeleton in words."""
        return "; ".join(self.steps)


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products: axes of the first operand alone, of the second alone, of both, and the summed ones.

    ``unit``: a matrix unit runs it.
    """

    fold: str
    statement: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    batch: tuple[str, ...]
    over: tuple[str, ...]
    operands: tuple[Value, Value]
    unit: bool

    @property
    def one_sided(self) -> bool:
        """Whether an operand has no axis of its own: each element of the other one is used once."""
        return not (self.rows and self.columns)


def pattern_of(plan: Plan) -> Pattern:
    """The pattern of a kernel."""
    graph = plan.graph
    products = {c.fold: c for c in contractions(plan)}
    walked = [n for n in graph.nodes if isinstance(n, Fold | Prefix)]
    folds = [n for n in walked if isinstance(n, Fold)]
    letters: dict[str, str] = {}
    for node in walked:
        for axis in node.over if isinstance(node, Fold) else (node.along,):
            letters.setdefault(axis, chr(ord("a") + len(letters) % 26))
    steps: dict[str, int] = {}
    for node in walked:
        if isinstance(node, Prefix):
            text = f"running {node.monoid} along {letters[node.along]}{_manner(node)}"
        else:
            over = " and ".join(sorted(letters[a] for a in node.over))
            text = f"{_kind(node, products)} over {over}{_after(graph, node, folds)}"
        steps[text] = steps.get(text, 0) + 1
    free = {a for c in products.values() for a in (*c.rows, *c.columns)}
    stored = {a for n in graph.nodes if isinstance(n, Store) for a in n.axes}
    folded = {a for f in folds for a in f.over}
    mapped = sorted(letters[a] for a in (stored - free) & folded)
    lines = [text if n == 1 else f"{n} times {text}" for text, n in steps.items()]
    if mapped:
        lines.append(f"a map over {' and '.join(mapped)}")
    return Pattern(tuple(lines) or ("a map",), tuple(_traits(plan, products)))


def _manner(node: Prefix) -> str:
    """How a scan differs from the plain one."""
    how = ["that forgets"] if node.decay is not None else []
    how += ["from the end"] if node.reverse else []
    how += ["without the point itself"] if node.exclusive else []
    return f" {', '.join(how)}" if how else ""


def _kind(fold: Fold, products: dict[str, Contraction]) -> str:
    found = products.get(fold.name)
    if found is None:
        return str(fold.monoid)
    return "product with a vector" if found.one_sided else "product"


def _after(graph: Graph, fold: Fold, folds: list[Fold]) -> str:
    """How a fold stands to an earlier one over an axis of its own that it depends on."""
    if fold.extreme is not None:
        return " beside its extreme"
    for state in folds[: folds.index(fold)][::-1]:
        if set(state.over) & set(fold.over) and _depends(graph, fold, state.name):
            if find_moment(graph, fold) is not None:
                return " about a mean of it"
            law = state.monoid in _EXTREMES and isinstance(find_law(graph, fold, state), Law)
            return f" beside the {state.monoid}" if law else f" after the {state.monoid}"
    return ""


def _depends(graph: Graph, node: Fold, name: str) -> bool:
    nodes, open_, seen = graph.by_name, [*graph.deps(node)], set[str]()
    while open_:
        dep = open_.pop()
        if dep == name:
            return True
        if dep not in seen:
            seen.add(dep)
            open_ += graph.deps(nodes[dep])
    return False


def contractions(plan: Plan) -> list[Contraction]:
    """The folds that are sums of products of two operands with different axes."""
    graph = plan.graph
    units: dict[str, Product] = plan.variants[-1].roles.products
    found: list[Contraction] = []
    for fold in graph.nodes:
        if not isinstance(fold, Fold) or fold.monoid != "sum":
            continue
        pair = _factors(graph, fold)
        if pair is None:
            continue
        a, b = (graph.axes_of(x) for x in pair)
        order = [x.name for x in plan.block.axes]
        over = set(fold.over)

        def listed(axes: frozenset[str] | set[str], order: list[str] = order) -> tuple[str, ...]:
            return tuple(x for x in order if x in axes)

        found.append(
            Contraction(
                fold=fold.name,
                statement=fold.define.origin,
                rows=listed(a - b),
                columns=listed(b - a),
                batch=listed((a & b) - over),
                over=listed(over),
                operands=pair,
                unit=fold.name in units and units[fold.name].unit,
            )
        )
    return found


def _factors(graph: Graph, fold: Fold) -> tuple[Value, Value] | None:
    """The two factors with the most axes that both carry a summed one, if their axes differ."""
    factors = [f for f in _product(fold.body) if graph.axes_of(f) & set(fold.over)]
    widest = sorted(factors, key=lambda f: -len(graph.axes_of(f)))[:2]
    if len(widest) < 2 or graph.axes_of(widest[0]) == graph.axes_of(widest[1]):
        return None
    a, b = (f for f in factors if f in widest)
    return a, b


def _product(value: Value) -> Iterator[Value]:
    if isinstance(value, Binary) and value.op == "mul":
        yield from _product(value.a)
        yield from _product(value.b)
    else:
        yield value


def _traits(plan: Plan, products: dict[str, Contraction]) -> Iterator[str]:
    """What sets a kernel apart from others of its pattern."""
    graph, block = plan.graph, plan.block
    loads = [n for n in graph.nodes if isinstance(n, Load)]
    limits: list[Int] = [
        c for n in graph.nodes if isinstance(n, Load | Fold | Prefix | Store) for c in n.constraints
    ]
    at = [i for n in loads for i in n.at]
    if products and all(c.unit for c in products.values()):
        yield "the matrix unit"
    if any(isinstance(x, Datum) for i in at for x in i.atoms()):
        yield "gathered reads"
    if any(_shares(i) for i in at):
        yield "grouped operands"
    if any(len(c.free_indices()) > 1 and not c.tensors() for c in limits):
        yield "a restricted domain"
    by_data = [c for c in limits if c.tensors()]
    if any(-c in by_data for c in by_data):
        yield "elements picked by data"
    if any(-c not in by_data for c in by_data) or any(a.extent.tensors() for a in block.axes):
        yield "lengths from data"
    if any(n.otherwise is not None for n in loads):
        yield "reads past an edge"
    if any(
        not isinstance(o, Read) or isinstance(graph.by_name[o.name], Point)
        for c in products.values()
        for o in c.operands
    ):
        yield "computed operands"
    if products and any(_behind(graph, n) for n in graph.nodes if isinstance(n, Store)):
        yield "an epilogue"
    stored = {n.tensor for n in graph.nodes if isinstance(n, Store)}
    if any(t.role == "inout" for t in block.tensors if t.name in stored):
        yield "updates in place"
    held = [d for n in loads for d in choices(block.tensor(n.tensor).dtype) if d.kind != "bool"]
    yield from (f"{bits}-bit storage" for bits in _NARROW if any(d.bits == bits for d in held))
    if len(stored) > 1:
        yield "several results"


def _shares(i: Int) -> bool:
    """Whether a coordinate is a quotient of an axis: several of its steps read the same element."""
    atoms = [a for monomial, _ in i.terms for a, _ in monomial]
    return any(isinstance(a, FloorDiv) and a.num.free_indices() for a in atoms)


def _behind(graph: Graph, store: Store) -> bool:
    """Whether a fold is followed by a map on its way to a store."""
    nodes, value = graph.by_name, store.value
    while isinstance(value, Read) and isinstance(point := nodes[value.name], Point):
        value = point.value
    if isinstance(value, Read):
        return False
    open_ = [p.name for p in walk(value) if isinstance(p, Read)]
    while open_:
        node = nodes[open_.pop()]
        if isinstance(node, Fold | Prefix):
            return True
        if isinstance(node, Point):
            open_ += graph.deps(node)
    return False
