"""Online laws, derived.

For a running maximum (or minimum) ``m`` over a stream and a sum of ``f(x; m)`` over the
same stream, SymPy is asked for the factor ``g`` with ``f(x; m_new) = g(m_old, m_new) f(x; m_old)``.
It is a law (rule 22 of the semantics) only if

- ``g`` is free of every ``x``, and depends on the two states through the step ``d = |m_new - m_old|`` alone;
- ``g(0) = 1`` and ``g`` does not increase with ``d >= 0``, so that it is finite and can't overflow
  for any pair of states that the monoid can reach;
- ``f`` vanishes where the compared expression is the monoid's identity, so that points seen
  before the first finite state have no mass.

Nothing here knows an operator: ``exp(s - m)`` passes, ``exp(s - min)`` and ``x * m`` do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from opspec.ir.dtypes import BOOL, F32
from opspec.ir.values import Binary, Compare, Literal, Read, Select, Unary, Value, map_values
from opspec.schedule.graph import Fold, Graph, Point, Prefix, node_values

if TYPE_CHECKING:
    from sympy import Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """``fold`` may run beside ``state``: at each step its accumulator is scaled by ``factor``.

    ``factor`` is a value over two reads, named ``old`` and ``new``. ``at_identity_nan``: where the
    state ends at its identity over a non-empty domain, IEEE arithmetic gives NaN. ``pure``: the summand
    depends on the state and the compared expression alone, so that it is 0 wherever that is the identity.
    """

    fold: str
    state: str
    factor: Value
    text: str
    at_identity_nan: bool
    pure: bool = False


OLD, NEW = "old", "new"
INFINITY = {"max": float("-inf"), "min": float("inf")}


def between_states(factor: Value, old: Value, new: Value) -> Value:
    """A law's factor between two states."""
    if isinstance(factor, Read) and factor.name in (OLD, NEW):
        return old if factor.name == OLD else new
    return map_values(factor, lambda v: between_states(v, old, new))


def find_law(graph: Graph, fold: Fold, state: Fold) -> Law | str:
    """The law that lets ``fold`` run beside ``state``, or the reason why there is none."""
    if fold.monoid != "sum":
        return f"a {fold.monoid} can't be rescaled"
    if state.monoid not in ("max", "min"):
        return f"`{state.define.origin}` is a {state.monoid}, not a running extreme"
    translation = Translation(graph, state)
    found = _derive(translation, fold.body, state.monoid)
    if isinstance(found, str):
        return found
    factor, text, nan, pure = found
    nan = nan and translation.bare
    return Law(fold=fold.name, state=state.name, factor=factor, text=text, at_identity_nan=nan, pure=pure)


def finite(state: Read, monoid: str) -> Select:
    """A running extreme, 0 where it is still the identity."""
    identity = Literal(value=INFINITY[monoid], dtype=F32)
    at_identity = Compare(op="eq", a=state, b=identity, dtype=BOOL)
    return Select(condition=at_identity, a=Literal(value=0.0, dtype=F32), b=state, dtype=F32)


def finite_state(value: Value) -> Read | None:
    """The extreme that ``value`` is, made finite as ``finite`` does it."""
    match value:
        case Select(b=Read() as state) if value in [finite(state, m) for m in INFINITY]:
            return state
        case _:
            return None


class Translation:
    """Values to SymPy, with the state, the compared expression and opaque leaves as symbols."""

    def __init__(self, graph: Graph, state: Fold) -> None:
        from sympy import Symbol

        self.nodes = graph.by_name
        self.state = state
        self.m = Symbol("m", real=True)
        self.s = Symbol("s", real=True)
        self.leaves: dict[Value, Expr] = {}
        self.compared = _core(self.nodes, state.body)
        self.bare = False  # whether the state is used where it may be the identity

    def of(self, value: Value) -> Expr | None:
        """The expression, or None where the state hides behind something opaque."""
        import sympy

        value = _core(self.nodes, value)
        if value == self.compared:
            return self.s
        match value:
            case Read(name=name) if name == self.state.name:
                self.bare = True
                return self.m
            case Select() if (state := finite_state(value)) is not None and state.name == self.state.name:
                return self.m
            case Read(name=name) if isinstance(self.nodes[name], Point) and self._mentions(value):
                return self.of(self.nodes[name].value)  # type: ignore[union-attr]
            case Literal(value=number):
                # exactly: SymPy tells 1.0 from 1
                return sympy.Rational(number) if math.isfinite(number) else sympy.Float(number)
            case Unary(op=op, x=x) if op in ("exp", "neg", "reciprocal"):
                inner = self.of(x)
                if inner is None:
                    return None
                return {"exp": sympy.exp, "neg": lambda e: -e, "reciprocal": lambda e: 1 / e}[op](inner)
            case Binary(op=op, a=a, b=b) if op in ("add", "sub", "mul", "div"):
                left, right = self.of(a), self.of(b)
                if left is None or right is None:
                    return None
                if op == "add":
                    return left + right
                if op == "sub":
                    return left - right
                return left * right if op == "mul" else left / right
            case _:
                if self._mentions(value):
                    return None
                return self.leaves.setdefault(value, sympy.Symbol(f"u{len(self.leaves)}", real=True))

    def _mentions(self, value: Value) -> bool:
        """Whether the value depends on the state or on the compared expression."""
        from opspec.ir.values import walk

        if _core(self.nodes, value) == self.compared:
            return True
        for part in walk(value):
            if isinstance(part, Read):
                if part.name == self.state.name or part == self.compared:
                    return True
                node = self.nodes[part.name]
                if isinstance(node, Point) and self._mentions(node.value):
                    return True
                if isinstance(node, Prefix) and any(map(self._mentions, node_values(node))):
                    return True
        return False


def _core(nodes: Mapping[str, object], value: Value) -> Value:
    """Follow points that merely rename another node."""
    while isinstance(value, Read) and isinstance(node := nodes.get(value.name), Point):
        if not isinstance(node.value, Read):
            break
        value = node.value
    return value


def _derive(translation: Translation, body: Value, monoid: str) -> tuple[Value, str, bool, bool] | str:
    import sympy

    f = translation.of(body)
    if f is None:
        return "the state stands behind a cast, a comparison or a function that SymPy is not shown"
    m, s = translation.m, translation.s
    if m not in f.free_symbols:
        return "the summand does not use the state"
    return _law_of(f, m, s, tuple(sorted(f.free_symbols - {m, s}, key=str)), monoid, sympy.S.NegativeInfinity)


@lru_cache(maxsize=1024)
def _law_of(
    f: Expr, m: Expr, s: Expr, others: tuple[Expr, ...], monoid: str, _: Expr
) -> tuple[Value, str, bool, bool] | str:
    import sympy

    d = sympy.Symbol("d", positive=True)
    step = d if monoid == "max" else -d
    ratio = sympy.powsimp(sympy.cancel(f.subs(m, m + step) / f))
    if ratio.free_symbols - {d}:
        ratio = sympy.powsimp(sympy.expand(ratio))
    if ratio.free_symbols - {d}:
        names = ", ".join(sorted(str(v) for v in ratio.free_symbols - {d}))
        return f"f(x; m_new) / f(x; m_old) still depends on {names}"
    if ratio.subs(d, 0) != 1 or not sympy.diff(ratio, d).is_nonpositive:
        return "the factor grows as the state moves, so it could overflow"
    identity = sympy.S.NegativeInfinity if monoid == "max" else sympy.S.Infinity
    if not f.has(s) or sympy.limit(f, s, identity) != 0:
        return "the summand does not vanish where the state is still the identity"
    old, new = sympy.Symbol(OLD, real=True), sympy.Symbol(NEW, real=True)
    g = sympy.expand(ratio.subs(d, new - old if monoid == "max" else old - new), deep=True, power_exp=False)
    factor = _value_of(g)
    if factor is None:
        return f"the factor {g} has no kernel expression"
    return factor, _spell(factor), True, not others


def _spell(value: Value) -> str:
    """A factor in words of the two states."""
    match value:
        case Read(name=name):
            return f"m_{name}"
        case Literal(value=number):
            return f"{number:g}"
        case Unary(op=op, x=x):
            return f"{op}({_spell(x)})"
        case Binary(op="mul", a=a, b=b):
            inner = [
                f"({_spell(v)})" if isinstance(v, Binary) and v.op != "mul" else _spell(v) for v in (a, b)
            ]
            return "*".join(inner)
        case Binary(op=op, a=a, b=b):
            return f"{_spell(a)} {'-' if op == 'sub' else '+'} {_spell(b)}"
    return "?"


def _value_of(e: Expr) -> Value | None:
    """A factor as a value; sums put their positive terms first."""
    import sympy

    match e:
        case sympy.Symbol():
            return Read(name=e.name, indices=(), dtype=F32)
        case sympy.Number():
            return Literal(value=float(e), dtype=F32)
        case sympy.exp():
            inner = _value_of(e.args[0])
            return None if inner is None else Unary(op="exp", x=inner, dtype=F32)
        case sympy.Add():
            terms = sorted(e.args, key=lambda t: (t.could_extract_minus_sign(), str(t)))
            result = _value_of(terms[0])
            for term in terms[1:]:
                minus = term.could_extract_minus_sign()
                part = _value_of(-term if minus else term)
                if part is None or result is None:
                    return None
                result = Binary(op="sub" if minus else "add", a=result, b=part, dtype=F32)
            return result
        case sympy.Mul():
            result = None
            for factor in e.args:
                part = _value_of(factor)
                if part is None:
                    return None
                result = part if result is None else Binary(op="mul", a=result, b=part, dtype=F32)
            return result
    return None


__all__ = ["INFINITY", "NEW", "OLD", "Law", "Translation", "find_law", "finite", "finite_state"]
