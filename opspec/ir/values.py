"""Tensor values: a typed expression tree of our own.

Nothing here is ever handed to a computer-algebra system: ``(a + b) - a`` is not
``b`` in floating point. Casts and roundings are barriers.

Normal form after the front end: a ``Reduce`` or ``Scan`` stands only at the root
of a ``Define``; everything below it is pointwise. ``Read`` names either a tensor
of the op or another ``Define``, whose own indices it then fills in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal as L
from typing import assert_never

from opspec.ir.dtypes import DType, Storage
from opspec.ir.integers import ZERO, Int
from opspec.source import Span

UnaryOp = L[  # "exp2" and "one_plus_erf" are made by the scheduler alone
    "neg", "not", "abs", "round", "floor", "ceil",
    "exp", "exp2", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "one_plus_erf", "reciprocal",
]  # fmt: skip
BinaryOp = L[  # "div_fast" and "div_near" are made by the scheduler alone
    "add", "sub", "mul", "div", "div_fast", "div_near", "min", "max", "floordiv", "mod", "and", "or",
]  # fmt: skip
CompareOp = L["lt", "le", "gt", "ge", "eq", "ne"]
Monoid = L["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]
CastMode = L["ieee", "sat", "nonsat", "wrap"]

TRANSCENDENTAL = frozenset({"exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "reciprocal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An index and its half-open interval ``lower <= index < upper``."""

    index: str
    lower: Int = ZERO
    upper: Int


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A number or truth value written in the spec. ``dtype`` f32, i32, i64 or bool."""

    value: float | int | bool
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """An integer expression of dims and indices used as a value (i64)."""

    value: Int
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A scalar parameter of the op, already in its compute type."""

    name: str
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """``name[indices]`` in its compute type.

    ``otherwise``: the value outside the tensor (``x[i - 1] else 0``), None where the
    read is proven in range or stands in a branch that a ``Select`` guards.
    """

    name: str
    indices: tuple[Int, ...]
    otherwise: Value | None = None
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    """A function of one value."""

    op: UnaryOp
    x: Value
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """An operation on two values of the same compute type, which is the result's."""

    op: BinaryOp
    a: Value
    b: Value
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A comparison of two values of the same compute type; the result is bool."""

    op: CompareOp
    a: Value
    b: Value
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """``where(condition, a, b)``; reads in the branch not taken are not made."""

    condition: Value
    a: Value
    b: Value
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Round ``x`` to storage type ``to``, once, to nearest even; the result computes on.

    ``dtype`` is the compute type of ``to``. ``implicit`` marks the conversion of an
    integer operand to f32 in mixed arithmetic, which the user did not write.
    """

    to: Storage
    mode: CastMode = "ieee"
    x: Value
    implicit: bool = False
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce:
    """Combine ``body`` over ``ranges`` where every constraint is ``>= 0``.

    ``ranges`` and ``constraints`` are complete: domains inherited from what is read
    are already in them. ``using``: operand type of the multiply (``bf16``, ``tf32``…).
    ``empty``: the declared identity of a max, min or arg-reduction over nothing.
    ``guarded_empty``: proven that the domain can't be empty for any shape allowed.
    """

    monoid: Monoid
    ranges: tuple[Range, ...]
    constraints: tuple[Int, ...] = ()
    body: Value
    using: str | None = None
    empty: Value | None = None
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Running reduction of ``body`` along one index of the statement (inclusive).

    ``decay``: of a sum, what was combined before is multiplied by it: ``s[t] = decay[t] s[t-1] + body[t]``.
    """

    monoid: Monoid
    index: str
    reverse: bool = False
    body: Value
    decay: Value | None = None
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


Value = Literal | Extent | Scalar | Read | Unary | Binary | Compare | Select | Cast | Reduce | Scan


def operands(value: Value) -> tuple[Value, ...]:
    """The values directly below, in order of writing."""
    match value:
        case Literal() | Extent() | Scalar():
            return ()
        case Read(otherwise=otherwise):
            return () if otherwise is None else (otherwise,)
        case Unary(x=x) | Cast(x=x):
            return (x,)
        case Binary(a=a, b=b) | Compare(a=a, b=b):
            return (a, b)
        case Select(condition=condition, a=a, b=b):
            return (condition, a, b)
        case Reduce(body=body, empty=empty):
            return (body,) if empty is None else (body, empty)
        case Scan(body=body, decay=decay):
            return (body,) if decay is None else (body, decay)
        case _:
            assert_never(value)


def walk(value: Value) -> Iterator[Value]:
    """The value and everything below it, outermost first."""
    yield value
    for child in operands(value):
        yield from walk(child)


def integers(value: Value) -> Iterator[Int]:
    """The integer expressions directly in this node (not in its operands)."""
    match value:
        case Extent(value=v):
            yield v
        case Read(indices=indices):
            yield from indices
        case Reduce(ranges=ranges, constraints=constraints):
            for r in ranges:
                yield r.lower
                yield r.upper
            yield from constraints
        case _:
            return


def map_values(value: Value, change: Callable[[Value], Value]) -> Value:
    """The node with ``change`` applied to each operand; itself if nothing changed."""
    updates: dict[str, object] = {}
    for f in fields(value):
        old = getattr(value, f.name)
        if isinstance(old, Value):
            new = change(old)
            if new is not old:
                updates[f.name] = new
    return replace(value, **updates) if updates else value  # type: ignore[arg-type]


def map_integers(value: Value, change: Callable[[Int], Int]) -> Value:
    """The whole tree with ``change`` applied to each integer expression."""
    value = map_values(value, lambda v: map_integers(v, change))
    match value:
        case Extent(value=v):
            return replace(value, value=change(v))
        case Read(indices=indices):
            return replace(value, indices=tuple(change(i) for i in indices))
        case Reduce(ranges=ranges, constraints=constraints):
            return replace(
                value,
                ranges=tuple(replace(r, lower=change(r.lower), upper=change(r.upper)) for r in ranges),
                constraints=tuple(change(c) for c in constraints),
            )
        case _:
            return value


def free_indices(value: Value) -> frozenset[str]:
    """Indices that the value depends on; those that a ``Reduce`` binds are not free."""
    found: set[str] = set()
    for integer in integers(value):
        found |= integer.free_indices()
    for child in operands(value):
        found |= free_indices(child)
    if isinstance(value, Scan):
        found.add(value.index)
    if isinstance(value, Reduce):
        found -= {r.index for r in value.ranges}
    return frozenset(found)
