"""Exponentials beside a block product, as few instructions as they can be.

A multiprocessor has 16 units for exponentials and 128 for everything else, and beside a matrix unit
both are what a chain waits for. ``exp(s - m)`` costs a subtraction, a multiplication by log2(e), and
three more instructions that keep denormal results; ``exp2(s * log2(e) - m * log2(e))`` costs a fused
multiply-add. It is used for terms of sums whose greatest term is 1 (that is what ``m`` is for): there a
term below 2**-126 is no different from 0. Where ``s = y * r`` with one positive r for a launch, r joins
log2(e), and the running maximum is taken over y: rounding is monotone, so ``max(y * r) = max(y) * r``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from opspec.ir.dtypes import F32
from opspec.ir.integers import index
from opspec.ir.values import Binary, Cast, Extent, Literal, Read, Unary, Value, integers, map_values, walk
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    Collapse,
    Combine,
    Let,
    Loop,
    Multiply,
    Statement,
    TileProgram,
    Var,
    assigned,
    statements,
    values_of,
)

LOG2_E = Literal(value=1.4426950408889634, dtype=F32)


def fold_exponentials(program: TileProgram, names: Names) -> TileProgram:
    """The program with the exponentials of online sums in base 2."""
    made: dict[str, Var] = {}
    body = tuple(_statement(s, program, names, made) for s in program.body)
    used = {v.name for v in _assigned(body)}
    kept = tuple(v for v in program.vars if v.name in used)
    return replace(program, body=body, vars=(*kept, *made.values()))


def _statement(s: Statement, program: TileProgram, names: Names, made: dict[str, Var]) -> Statement:
    if not isinstance(s, Loop):
        return s
    body = [_statement(x, program, names, made) for x in s.body]
    if any(isinstance(x, Multiply) for x in statements(tuple(body))):
        outside = {n for x in _outside(program.body, s) for n in _reads([x])}
        for term in [x for x in body if isinstance(x, Let | Collapse)]:
            if term.var.name not in outside:
                body = _fold(body, term, names, made)
    return replace(s, body=tuple(body))


def _fold(
    body: list[Statement], power: Let | Collapse, names: Names, made: dict[str, Var]
) -> list[Statement]:
    """The loop with one exponential in base 2; the loop itself where it is none of an online sum."""
    match power.value:
        case Unary(op="exp", x=Binary(op="sub", a=term, b=Read(name=state))):
            pass
        case _:
            return body
    shift = next((s for s in body if isinstance(s, Let) and s.var.name == state), None)
    axes = power.axes if isinstance(power, Collapse) else power.var.axes
    summed = power.monoid == "sum" if isinstance(power, Collapse) else _only_summed(body, power.var.name)
    if shift is None or not set(shift.var.axes) < set(axes) or not summed:
        return body
    coefficient: Value = LOG2_E
    if isinstance(term, Read) and (source := _let_of(body, term.name)) is not None:
        factor, inner = _scaled(source.value)
        if factor is not None and _positive(factor):
            body = _raise_maximum(body, source, factor, inner)
            term, coefficient = inner, _mul(factor, LOG2_E)
    if state not in made:
        made[state] = Var(name=names.fresh(f"{state}_log2"), axes=shift.var.axes, dtype=F32)
    scaled = made[state]
    read = Read(name=scaled.name, indices=tuple(index(a) for a in scaled.axes), dtype=F32)
    known = any(isinstance(x, Let) and x.var == scaled for x in body)
    out: list[Statement] = []
    for s in body:
        if isinstance(s, Let | Collapse) and s.var.name == power.var.name:
            out.append(replace(s, value=_exp2(_sub(_mul(term, coefficient), read))))
        elif isinstance(s, Let) and (old := _rescale(s, shift)) is not None:
            out.append(replace(s, value=_exp2(_sub(_mul(old, LOG2_E), read))))
        else:
            out.append(s)
        if isinstance(s, Let) and s.var == shift.var and not known:
            out.append(Let(var=scaled, value=_mul(shift.var.read, LOG2_E)))
    return _without_unused(out)


def _rescale(s: Let, shift: Let) -> Value | None:
    """The old state in a factor ``exp(old - new)`` between two states."""
    match s.value:
        case Unary(op="exp", x=Binary(op="sub", a=Read() as old, b=Read(name=name))):
            same = name == shift.var.name and set(s.var.axes) == set(shift.var.axes)
            return old if same else None
    return None


def _exp2(x: Value) -> Value:
    return Unary(op="exp2", x=x, dtype=F32)


def _raise_maximum(body: list[Statement], source: Let, factor: Value, inner: Value) -> list[Statement]:
    """Take the maximum before the multiplication, of which then only the exponential is left."""
    out: list[Statement] = []
    raised: str | None = None
    for s in body:
        match s:
            case Collapse(monoid="max", value=Read(name=name)) if name == source.var.name:
                out.append(replace(s, value=inner))
                raised = s.var.name
            case Let() if raised is not None:
                out.append(replace(s, value=_scale_read(s.value, raised, factor)))
            case _:
                out.append(s)
    return out


def _scale_read(value: Value, name: str, factor: Value) -> Value:
    if isinstance(value, Read) and value.name == name:
        return _mul(value, factor)
    return map_values(value, lambda v: _scale_read(v, name, factor))


def _scaled(value: Value) -> tuple[Value | None, Value]:
    """A factor that a launch has once, and what it multiplies."""
    if isinstance(value, Binary) and value.op == "mul":
        for factor, inner in ((value.b, value.a), (value.a, value.b)):
            if not any(
                isinstance(v, Read) or any(i.free_indices() for i in integers(v)) for v in walk(factor)
            ):
                return factor, inner
    return None, value


def _positive(value: Value) -> bool:
    """Whether a factor is known to be above 0 wherever the loop runs at all."""
    match value:
        case Literal(value=number):
            return number > 0
        case Extent(value=v):
            return all(c > 0 for _, c in v.terms) and bool(v.terms)
        case Unary(op="reciprocal" | "sqrt" | "rsqrt", x=x):
            return _positive(x)
        case Cast(implicit=True, x=x):
            return _positive(x)
        case Binary(op="mul" | "div" | "add", a=a, b=b):
            return _positive(a) and _positive(b)
    return False


def _only_summed(body: Iterable[Statement], name: str) -> bool:
    """Whether a value is used in sums and block products alone."""
    for s in body:
        if name not in _reads([s]):
            continue
        match s:
            case Collapse(monoid="sum") | Combine(monoid="sum") | Multiply():
                pass
            case _:
                return False
    return True


def _let_of(body: Iterable[Statement], name: str) -> Let | None:
    return next((s for s in body if isinstance(s, Let) and s.var.name == name), None)


def _without_unused(body: list[Statement]) -> list[Statement]:
    used = _reads(body)
    return [s for s in body if not (isinstance(s, Let) and s.var.name not in used and len(s.var.axes) > 1)]


def _reads(body: Iterable[Statement]) -> set[str]:
    every = statements(tuple(body))
    return {v.name for s in every for value in values_of(s) for v in walk(value) if isinstance(v, Read)}


def _outside(body: tuple[Statement, ...], loop: Loop) -> Iterator[Statement]:
    """Every statement that is not in a loop."""
    for s in body:
        if s is loop:
            continue
        if isinstance(s, Loop):
            yield from _outside(s.body, loop)
        else:
            yield s


def _assigned(body: Iterable[Statement]) -> Iterator[Var]:
    for s in body:
        if isinstance(s, Loop):
            yield from _assigned(s.body)
        else:
            yield from assigned(s)


def _mul(a: Value, b: Value) -> Value:
    return Binary(op="mul", a=a, b=b, dtype=F32)


def _sub(a: Value, b: Value) -> Value:
    return Binary(op="sub", a=a, b=b, dtype=F32)
