"""Values in as few instructions as their meaning allows, in a finished tile program.

``exp`` of a product with numbers becomes a power of two with one number. ``1 + tanh(u)`` is
``2 / (1 + exp(-2u))``, which is shorter and loses nothing where ``tanh`` is near -1; ``1 + erf(u)``
has a function of its own for the same reasons. A divisor that is known to stay away from the ends of
f32 becomes a reciprocal, which programs that share it compute once. Where a floor, a comparison or an
integer follows (rule 12), the quotient is rounded once, as a division is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from opspec.ir.dtypes import F32, compute_dtype
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Read,
    Reduce,
    Scalar,
    Scan,
    Unary,
    Value,
    map_values,
)
from opspec.schedule.magnitudes import Range, range_of, ranges_of
from opspec.schedule.tile import (
    Collapse,
    Combine,
    Let,
    Locate,
    Loop,
    Multiply,
    Statement,
    TileProgram,
    Write,
    statements,
    values_of,
)
from opspec.schedule.tile import Scan as ScanStatement

LOG2_E = 1.4426950408889634
LOW, HIGH = 2.0**-100, 2.0**122
"""Divisors between these have a reciprocal that is far from the ends of f32, and so has what it lacks."""


def shorten(program: TileProgram) -> TileProgram:
    """The program with its values shortened."""
    exact, known = exact_names(program), ranges_of(program)
    return replace(program, body=tuple(_statement(s, exact, known) for s in program.body))


def exact_names(program: TileProgram) -> frozenset[str]:
    """Variables whose value reaches a floor, a comparison or an integer."""
    found: set[str] = set()
    every = list(statements(program.body))
    while True:
        before = len(found)
        for s in reversed(every):
            match s:
                case Locate(value=value, extreme=extreme):
                    _visit(value, True, found)
                    _visit(extreme, True, found)
                case (
                    Let(var=var)
                    | Collapse(var=var)
                    | Combine(var=var)
                    | ScanStatement(var=var)
                    | Multiply(var=var)
                ):
                    for value in values_of(s):
                        _visit(value, var.name in found, found)
                case _:
                    for value in values_of(s):
                        _visit(value, False, found)
        if len(found) == before:
            return frozenset(found)


def _visit(value: Value, exact: bool, found: set[str]) -> None:
    match value:
        case Read(name=name):
            if exact:
                found.add(name)
        case Compare(a=a, b=b):
            _visit(a, True, found)
            _visit(b, True, found)
        case _:
            inner = _below(value, exact)

            def go(v: Value) -> Value:
                _visit(v, inner, found)
                return v

            map_values(value, go)


def _below(value: Value, exact: bool) -> bool:
    """Whether the last bit of a value's operands matters, where that of the value does if ``exact``."""
    match value:
        case Unary(op="floor" | "ceil" | "round") | Binary(op="floordiv" | "mod") | Compare():
            return True
        case Cast(to=to, implicit=implicit):
            return exact or (not implicit and compute_dtype(to) is not F32)
        case _:
            return exact


def _statement(s: Statement, exact: frozenset[str], known: Mapping[str, Range]) -> Statement:
    def short(value: Value, name: str | None = None) -> Value:
        return shorter(value, exact=name is not None and name in exact, known=known)

    match s:
        case Loop(body=body):
            return replace(s, body=tuple(_statement(x, exact, known) for x in body))
        case Let(var=var, value=value) | Collapse(var=var, value=value) | Combine(var=var, value=value):
            return replace(s, value=short(value, var.name))
        case Write(value=value):
            return replace(s, value=short(value))
        case ScanStatement(var=var, value=value, decay=decay):
            decay = None if decay is None else short(decay, var.name)
            return replace(s, value=short(value, var.name), decay=decay)
        case Multiply(a=a, b=b):
            return replace(s, a=replace(a, value=short(a.value)), b=replace(b, value=short(b.value)))
        case _:
            return s


def shorter(value: Value, *, exact: bool, known: Mapping[str, Range]) -> Value:
    """A value of the same meaning; ``exact``: its last bit matters."""
    match value:
        case Literal() | Extent() | Scalar() | Read() | Reduce() | Scan():
            return value
        case Unary(op="exp", x=x):
            x = _times(shorter(x, exact=exact, known=known), LOG2_E)
            return value if isinstance(x, Literal) else replace(value, op="exp2", x=x)
        case Binary(op="add" | "sub") if not exact and (made := _one_beside(value)) is not None:
            return shorter(made, exact=False, known=known)
    below = _below(value, exact)
    value = map_values(value, lambda v: shorter(v, exact=below, known=known))
    match value:
        case Binary(op="div"):
            return _divided(value, exact, known)
        case Binary(op="mul", a=a, b=b) if not exact:
            return _joined(a, b) or _joined(b, a) or value
        case Unary(op="reciprocal", x=x):
            one = Literal(value=1.0, dtype=F32)
            made = _divided(Binary(op="div", a=one, b=x, dtype=F32), exact, known)
            return value if made.op == "div" else made
    return value


def _one_beside(value: Binary) -> Value | None:
    """``1 + tanh(u)`` and ``1 - tanh(u)`` as quotients, ``1 + erf(u)`` and ``1 - erf(u)`` as one function."""
    match value:
        case Binary(op="add", a=Unary(op="tanh" | "erf") as f, b=Literal(value=1.0)):
            sign = 1.0
        case Binary(op="add" | "sub" as op, a=Literal(value=1.0), b=Unary(op="tanh" | "erf") as f):
            sign = 1.0 if op == "add" else -1.0
        case _:
            return None
    if f.op == "erf":
        return Unary(op="one_plus_erf", x=f.x if sign > 0 else Unary(op="neg", x=f.x, dtype=F32), dtype=F32)
    power = Unary(op="exp", x=_times(f.x, -2.0 * sign), dtype=F32)
    below = Binary(op="add", a=Literal(value=1.0, dtype=F32), b=power, dtype=F32)
    return Binary(op="div_fast", a=Literal(value=2.0, dtype=F32), b=below, dtype=F32)


def _divided(value: Binary, exact: bool, known: Mapping[str, Range]) -> Binary:
    """A quotient by what is known of its divisor."""
    if isinstance(value.b, Literal) and (not exact or _power_of_two(float(value.b.value))):
        return value  # a product with a number
    low, high = range_of(Unary(op="abs", x=value.b, dtype=F32), known)
    if low < LOW:
        return value
    if exact:
        return replace(value, op="div_near") if high <= HIGH else value
    above = range_of(Unary(op="abs", x=value.a, dtype=F32), known)[1]
    # beyond 2**126 the quotient of what is at most 1 is below 2**-126, and any result may be 0 there
    return replace(value, op="div_fast") if high <= HIGH or above <= 1 else value


def _joined(a: Value, b: Value) -> Value | None:
    """``(c * x) * (d / y)`` as ``x / y`` where c * d is 1, and ``c * (d / y)`` as one quotient."""
    match b:
        case Binary(op="div_fast", a=Literal(value=number)):
            factor, rest = _numbers(a)
            if isinstance(rest, Literal) or factor * float(number) == 1:
                return replace(b, a=_times(rest, factor * float(number)))
    return None


def _power_of_two(number: float) -> bool:
    return math.frexp(number)[0] in (0.5, -0.5)


def _numbers(value: Value) -> tuple[float, Value]:
    """The numbers of a product, together, and what is left of it: 1 where nothing is."""
    factor, rest = _split(value)
    return (factor, rest) if 2.0**-60 < abs(factor) < 2.0**60 else (1.0, value)


def _split(value: Value) -> tuple[float, Value]:
    match value:
        case Literal(value=number):
            return float(number), Literal(value=1.0, dtype=F32)
        case Unary(op="neg", x=x):
            factor, rest = _split(x)
            return -factor, rest
        case Binary(op="mul", a=a, b=b):
            (left, a), (right, b) = _split(a), _split(b)
            if isinstance(a, Literal):
                return left * right, b
            return left * right, a if isinstance(b, Literal) else replace(value, a=a, b=b)
        case Binary(op="div", a=a, b=Literal(value=number)) if _power_of_two(float(number)):
            factor, rest = _split(a)
            return factor / float(number), rest
    return 1.0, value


def _times(value: Value, number: float) -> Value:
    """A product with a number that takes up the numbers of the value."""
    factor, rest = _numbers(value)
    if isinstance(rest, Literal):
        return Literal(value=factor * number, dtype=F32)
    if factor * number == 1:
        return rest
    return Binary(op="mul", a=rest, b=Literal(value=factor * number, dtype=F32), dtype=F32)
