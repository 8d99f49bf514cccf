"""Types of values: conversion of literals, mixed arithmetic, casts."""

from __future__ import annotations

from dataclasses import replace

from opspec.frontend.faults import values as faults
from opspec.frontend.scope import OpScope
from opspec.ir.dtypes import BOOL, DTYPES, F32, I32, I64, DType, Storage, choices, compute_dtype
from opspec.ir.integers import Int
from opspec.ir.values import Binary, BinaryOp, Cast, CastMode, Extent, Literal, Value
from opspec.source import Span

MODES: dict[str, tuple[CastMode, ...]] = {"float": ("sat", "nonsat"), "int": ("sat", "wrap")}


def is_weak(value: Value) -> bool:
    """Whether it is an integer as written, which takes the type of its surroundings."""
    return isinstance(value, Literal) and value.dtype is I64


def to_float(value: Value, scope: OpScope, span: Span) -> Value:
    """The value as f32: literals directly, integers by an implicit cast."""
    if value.dtype is F32:
        return value
    if value.dtype is BOOL:
        scope.fail(
            faults.mismatch(
                value.span or span,
                "a truth value stands where a number is needed",
                "write `where(condition, 1, 0)`",
            )
        )
    if isinstance(value, Literal):
        return replace(value, value=float(value.value), dtype=F32)
    return Cast(to=F32, x=value, implicit=True, dtype=F32, span=value.span)


def to_bool(value: Value, scope: OpScope, span: Span) -> Value:
    """The value if it is a truth value."""
    if value.dtype is not BOOL:
        scope.fail(
            faults.mismatch(
                value.span or span,
                "a number stands where a truth value is needed",
                "compare it: `x != 0`",
            )
        )
    return value


def widen(value: Value, dtype: DType) -> Value:
    """An integer as another integer type; a literal directly."""
    if value.dtype is dtype:
        return value
    if isinstance(value, Literal):
        return replace(value, dtype=dtype)
    return Cast(to=dtype, x=value, implicit=True, dtype=dtype, span=value.span)


def promote(values: list[Value], scope: OpScope, span: Span) -> list[Value]:
    """The values in the one type that they compute in together."""
    kinds = {v.dtype for v in values}
    if kinds == {BOOL}:
        return values
    if F32 in kinds or BOOL in kinds:
        return [to_float(v, scope, span) for v in values]
    strong = {v.dtype for v in values if not is_weak(v)}
    target = I32 if strong == {I32} and all(_fits(v) for v in values) else I64
    return [widen(v, target) for v in values]


def _fits(value: Value) -> bool:
    return not isinstance(value, Literal) or -(2**31) <= value.value < 2**31


def whole(value: Value) -> Int | None:
    """The value as an integer of dims and indices alone (data stays a value)."""
    match value:
        case Extent(value=v):
            return v
        case Literal(value=v, dtype=dtype) if dtype is I64:
            return Int.of(int(v))
        case _:
            return None


def literal(value: float | bool, span: Span) -> Literal:
    """A literal in the type that it was written in."""
    dtype = BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F32
    return Literal(value=value, dtype=dtype, span=span)


def extent(value: Int, span: Span) -> Value:
    """An integer expression as a value."""
    c = value.constant
    return literal(c, span) if c is not None else Extent(value=value, dtype=I64, span=span)


def binary(op: BinaryOp, a: Value, b: Value, span: Span) -> Value:
    """An operation on two values of one type."""
    return Binary(op=op, a=a, b=b, dtype=a.dtype, span=span)


def cast(to: Storage, mode: str | None, x: Value, scope: OpScope, span: Span, name_span: Span) -> Value:
    """An explicit cast, with its mode checked."""
    first = choices(to)[0]
    narrow = any(d.ambiguous_overflow for d in choices(to))
    allowed = MODES.get(first.kind, ()) if narrow else ()
    if mode is None and narrow:
        scope.fail(faults.mode(name_span, to.name, first.kind))
    if mode is not None and mode not in allowed:
        scope.fail(faults.wrong_mode(name_span, to.name, first.kind, mode, allowed))
    if first.kind == "bool":
        scope.fail(faults.mismatch(span, "there is no cast to `bool`", "compare it: `x != 0`"))
    if x.dtype is BOOL:
        to_float(x, scope, span)
    if is_weak(x):
        x = to_float(x, scope, span) if first.kind == "float" else widen(x, I64)
    chosen: CastMode = "ieee"
    if mode is not None:
        chosen = next(m for m in allowed if m == mode)
    return Cast(to=to, mode=chosen, x=x, dtype=compute_dtype(to), span=span)


def store(value: Value, storage: Storage, scope: OpScope, span: Span, name: str) -> Value:
    """The value as it must be to be stored: the right kind, and modes said where they matter."""
    first = choices(storage)[0]
    if first.kind == "bool":
        if value.dtype is not BOOL:
            scope.fail(
                faults.mismatch(value.span or span, f"`{name}` stores truth values, and this is a number")
            )
        return value
    if value.dtype is BOOL:
        scope.fail(
            faults.mismatch(
                value.span or span,
                f"`{name}` stores `{storage.name}`, and this is a truth value",
                "write `where(condition, 1, 0)`",
            )
        )
    exact = isinstance(value, Cast) and value.to == storage
    if first.kind == "float":
        value = value if value.dtype is F32 else to_float(value, scope, span)
        if any(d.ambiguous_overflow for d in choices(storage)) and not exact:
            scope.fail(faults.mode(value.span or span, storage.name, "float"))
        return value
    if value.dtype is F32:
        scope.fail(
            faults.mismatch(
                value.span or span,
                f"`{name}` stores `{storage.name}`, and this is a float",
                f"say how it becomes an integer: `{storage.name}{'.sat' if first.bits <= 8 else ''}(round(…))`",
            )
        )
    if first.bits <= 8 and not exact and not (isinstance(value, Literal)):
        scope.fail(faults.mode(value.span or span, storage.name, "int"))
    return widen(value, compute_dtype(storage))


def storage(name: str, scope: OpScope) -> Storage | None:
    """The dtype or dtype parameter of that name."""
    return scope.dtypes.get(name) or DTYPES.get(name)
