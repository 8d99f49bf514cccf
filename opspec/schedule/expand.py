"""Sums that are linear in what their own stream gives, taken apart so that one sweep is enough.

    sum_v exp(x - r) (x - r - (y - t))        with r, t values of the row that need sums over v themselves

is exp(m - r) times (A + D S), with m and k the maxima of x and y, and

    S = sum_v exp(x - m)      A = sum_v exp(x - m) (x - m - (y - k))      D = m - r - (k - t)

S and A move on with m and k (``laws``, ``shifts``), and what is left of r and t is used behind the stream. Each
term of A is a distance from a maximum, so offsets common to a row cancel before anything is rounded: for x and y
near 1000 no digit is lost that the sum as written has. Only sums linear in row values are taken apart: there each
of these enters with the weight that its own rounding has in the sum as written, which is not so for squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opspec.ir.bounds import prove
from opspec.ir.dtypes import F32
from opspec.ir.facts import facts_of
from opspec.ir.integers import index
from opspec.ir.values import Binary, Literal, Read, Select, Unary, Value
from opspec.schedule.applied import Applied
from opspec.schedule.domain import nonempty
from opspec.schedule.graph import Fold, Graph, Node, Point, Store
from opspec.schedule.moments import same_domain
from opspec.schedule.operands import product_sides
from opspec.schedule.rewrites import spelled_out

if TYPE_CHECKING:
    from sympy import Expr, Symbol


def expand_sums(graph: Graph) -> tuple[Graph, tuple[Applied, ...]]:
    """Take such sums apart."""
    applied: list[Applied] = []
    for node in graph.nodes:
        if isinstance(node, Fold) and (made := _expand(graph, node)) is not None:
            graph = made
            text = (
                f"a sum over {', '.join(node.over)} of distances from a maximum, and what the row adds to it"
            )
            applied.append(Applied(rule="expand", statement=node.define.origin, text=text))
    return graph, tuple(applied)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The sum of ``exp(x - m)`` times ratios times (value - shift), times ``scale``, plus ``rest``."""

    weights: Fold
    terms: tuple[tuple[float, Value, Value], ...]
    scale: Value
    rest: Value


def _expand(graph: Graph, node: Fold) -> Graph | None:
    if node.monoid != "sum" or node.dtype is not F32 or node.using is not None:
        return None
    sides = product_sides(graph, node)
    if sides is not None and graph.axes_of(sides.a) != graph.axes_of(sides.b):
        return None
    parts = _apart(graph, node)
    if parts is None:
        return None
    over = set(node.over)

    def read(name: str, axes: frozenset[str]) -> Read:
        return Read(name=name, indices=tuple(index(a) for a in sorted(axes)), dtype=F32)

    weights = parts.weights
    axes = graph.axes_of(weights.body)
    weight = Point(
        name=f"{node.name}.weight",
        value=spelled_out(weights.body, graph.by_name),
        axes=axes,
        define=node.define,
    )
    total: Value | None = None
    for ratio, value, shift in parts.terms:
        term: Value = Binary(op="sub", a=value, b=shift, dtype=F32)
        if abs(ratio) != 1 or (total is None and ratio < 0):
            term = Binary(op="mul", a=Literal(value=ratio, dtype=F32), b=term, dtype=F32)
            total = term if total is None else Binary(op="add", a=total, b=term, dtype=F32)
        else:
            op = "add" if ratio > 0 else "sub"
            total = term if total is None else Binary(op=op, a=total, b=term, dtype=F32)  # type: ignore[arg-type]
    assert total is not None
    body = Binary(op="mul", a=read(weight.name, axes), b=total, dtype=F32)
    inner = graph.axes_of(total) | axes | {n for c in node.constraints for n in c.free_indices()}
    summed = replace(node, name=f"{node.name}.apart", body=body, axes=frozenset(inner - over))
    scaled = Binary(op="mul", a=read(summed.name, summed.axes), b=parts.scale, dtype=F32)
    if isinstance(parts.scale, Unary) and parts.scale.op == "reciprocal":
        scaled = Binary(op="div", a=scaled.a, b=parts.scale.x, dtype=F32)
    whole: Value = Binary(op="add", a=parts.rest, b=scaled, dtype=F32)
    extents = {a: graph.block.axis(a).extent for a in node.over}
    if node.constraints or not all(prove(e - 1, facts_of(graph.block.op)) for e in extents.values()):
        test = nonempty(node.over, extents, node.constraints)
        if test is None:
            return None
        whole = Select(condition=test, a=whole, b=Literal(value=0.0, dtype=F32), dtype=F32)
    nodes: list[Node] = []
    for n in graph.nodes:
        if n.name == weights.name:
            nodes += [weight, replace(weights, body=read(weight.name, axes))]
        elif n.name == node.name:
            known = replace(graph, nodes=(*nodes, summed, *graph.nodes))
            nodes += [
                summed,
                Point(name=node.name, value=whole, axes=known.axes_of(whole), define=node.define),
            ]
        else:
            nodes.append(n)
    made = replace(graph, nodes=tuple(nodes))
    # the sum of weights moves on first
    stores = (n.name for n in made.nodes if isinstance(n, Store))
    return replace(made, nodes=made.ordered((weights.name, *stores)))


class _Reader:
    """Values to SymPy: what varies along the sum, and what is one for the row, as symbols."""

    def __init__(self, graph: Graph, over: set[str]) -> None:
        self.graph = graph
        self.nodes = graph.by_name
        self.over = over
        self.symbols: dict[Value | str, Symbol] = {}
        self.values: dict[Symbol, Value] = {}

    def of(self, value: Value) -> Expr:
        """The expression; what has no spelling is a symbol of its own."""
        import sympy

        value = spelled_out(value, self.nodes)
        match value:
            case Literal(value=number) if math.isfinite(number):
                return sympy.Rational(number)
            case Unary(op="exp", x=x):
                return sympy.exp(self.of(x))
            case Unary(op="neg", x=x):
                return -self.of(x)
            case Unary(op="reciprocal", x=x):
                return 1 / self.of(x)
            case Unary(op="log", x=x) if not self.graph.axes_of(x) & self.over:
                return sympy.log(self.of(x))
            case Binary(op="add", a=a, b=b):
                return self.of(a) + self.of(b)
            case Binary(op="sub", a=a, b=b):
                return self.of(a) - self.of(b)
            case Binary(op="mul", a=a, b=b):
                return self.of(a) * self.of(b)
            case Binary(op="div", a=a, b=b):
                return self.of(a) / self.of(b)
        return self.symbol(value)

    def symbol(self, value: Value) -> Symbol:
        """The symbol of a value; of what a statement gives, one, in whatever order its indices are written."""
        import sympy

        key = value.name if isinstance(value, Read) else value
        if key not in self.symbols:
            self.symbols[key] = sympy.Symbol(f"u{len(self.symbols)}", real=True)
            self.values[self.symbols[key]] = value
        return self.symbols[key]

    def varying(self) -> dict[Symbol, Value]:
        """The symbols that vary along the sum."""
        return {s: v for s, v in self.values.items() if self.graph.axes_of(v) & self.over}

    def value(self, e: Expr) -> Value | None:
        """An expression of symbols as a value."""
        import sympy

        match e:
            case sympy.Symbol():
                return self.values.get(e)
            case sympy.Number():
                return Literal(value=float(e), dtype=F32)
            case sympy.exp():
                inner = self.value(e.args[0])
                return None if inner is None else Unary(op="exp", x=inner, dtype=F32)
            case sympy.log():
                inner = self.value(e.args[0])
                return None if inner is None else Unary(op="log", x=inner, dtype=F32)
            case sympy.Pow(args=(base, sympy.Integer(p=-1))):
                inner = self.value(base)
                return None if inner is None else Unary(op="reciprocal", x=inner, dtype=F32)
            case sympy.Add() | sympy.Mul():
                op, sign = ("add", "sub") if isinstance(e, sympy.Add) else ("mul", "")
                result: Value | None = None
                for part in sorted(e.args, key=lambda a: (a.could_extract_minus_sign(), str(a))):
                    minus = op == "add" and result is not None and part.could_extract_minus_sign()
                    found = self.value(-part if minus else part)
                    if found is None:
                        return None
                    chosen = sign if minus else op
                    result = found if result is None else Binary(op=chosen, a=result, b=found, dtype=F32)  # type: ignore[arg-type]
                return result
        return None


def _apart(graph: Graph, node: Fold) -> _Parts | None:
    """The parts of a sum, if it is an exponential of a value times something linear, and the row has a say in both."""
    import sympy

    reader = _Reader(graph, set(node.over))
    f = reader.of(node.body)
    varying = reader.varying()
    powers = [a for a in sympy.Mul.make_args(f) if isinstance(a, sympy.exp)]
    exponent = sympy.expand(sum((p.args[0] for p in powers), sympy.Integer(0)))
    linear = sympy.expand(sympy.Mul(*(a for a in sympy.Mul.make_args(f) if a not in powers)))
    inside = exponent.free_symbols & set(varying)
    if len(inside) != 1 or not linear.free_symbols & set(varying):
        return None
    (x,) = inside
    row = sympy.expand(exponent - x)
    if row.free_symbols & set(varying) or not row.free_symbols:
        return None
    found = _weights(graph, node, reader, x)
    if found is None:
        return None
    weights, m = found
    try:
        polynomial = sympy.Poly(linear, *varying)
    except sympy.PolynomialError:
        return None
    if polynomial.total_degree() != 1:
        return None
    factors = [(s, polynomial.coeff_monomial(s)) for s in varying]
    factors = [(s, c) for s, c in factors if c != 0]
    first = factors[0][1]
    terms: list[tuple[float, Value, Value]] = []
    rest = linear
    for symbol, factor in factors:
        ratio = sympy.cancel(factor / first)
        top = _maximum(graph, node, varying[symbol])
        if top is None or not ratio.is_number:
            return None
        terms.append((float(ratio), varying[symbol], top))
        rest = rest - factor * (symbol - reader.of(top))
    # as a symbol, so that it stays one exponential: that of m and that of -r alone may overflow
    left = sympy.expand(row + reader.of(m))
    moved = reader.value(left)
    if moved is None:
        return None
    scale = first if left == 0 else first * reader.symbol(Unary(op="exp", x=moved, dtype=F32))
    total = reader.of(Read(name=weights.name, indices=tuple(map(index, sorted(weights.axes))), dtype=F32))
    rest = sympy.expand(sympy.cancel(sympy.expand(rest) / first) * sympy.cancel(scale * total))
    values = reader.value(scale), reader.value(rest)
    if values[0] is None or values[1] is None or not _waits(graph, node, values[1]):
        return None
    return _Parts(weights=weights, terms=tuple(terms), scale=values[0], rest=values[1])


def _waits(graph: Graph, node: Fold, value: Value) -> bool:
    """Whether a value of the row needs a sum over the same axes, so that the sum as written needs another sweep."""
    stack, seen = (
        list(graph.deps(Point(name="", value=value, axes=frozenset(), define=node.define))),
        set[str](),
    )
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        found = graph.by_name[name]
        if isinstance(found, Fold) and set(found.over) & set(node.over):
            return True
        stack += graph.deps(found)
    return False


def _maximum(graph: Graph, node: Fold, value: Value) -> Read | None:
    """The maximum of a value over the domain of a sum, if the block has it."""
    for n in graph.nodes:
        if not isinstance(n, Fold) or n.monoid != "max" or not same_domain(n, node) or n.axes - node.axes:
            continue
        if spelled_out(n.body, graph.by_name) == value:
            return Read(name=n.name, indices=tuple(index(a) for a in sorted(n.axes)), dtype=F32)
    return None


def _weights(graph: Graph, node: Fold, reader: _Reader, x: Symbol) -> tuple[Fold, Read] | None:
    """The sum of ``exp(x - m)``, m the maximum of x, over the domain of another sum."""
    value = reader.varying()[x]
    m = _maximum(graph, node, value)
    if m is None:
        return None
    nodes = graph.by_name
    for n in graph.nodes:
        if not isinstance(n, Fold) or n.monoid != "sum" or not same_domain(n, node) or n.axes - node.axes:
            continue
        body = spelled_out(n.body, nodes)
        if not isinstance(body, Unary) or body.op != "exp":
            continue
        inner = spelled_out(body.x, nodes)
        if not isinstance(inner, Binary) or inner.op != "sub":
            continue
        sides = spelled_out(inner.a, nodes), spelled_out(inner.b, nodes)
        if sides[0] == value and isinstance(sides[1], Read) and sides[1].name == m.name:
            return n, m
    return None
