"""What a contraction is (semantics, rule 17), and the type that its operands have on the matrix unit."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.analysis.costs.numbering import Numbering
from opspec.ir.dtypes import DType, DTypeParam, Storage
from opspec.ir.values import Binary, Cast, Read, Reduce, Unary, Value


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum over a product. ``dtype``: of the operands, ``X`` if generic, ``f32`` if inexact in 16 bits.

    ``further``: for each factor beyond two, whether it carries the summed index.
    """

    dtype: str
    further: tuple[bool, ...]


def contraction_of(value: Reduce, numbering: Numbering) -> Contraction | None:
    """The contraction that a reduction is, or None: a sum of a product of two operands that
    both carry every summed index and have different index sets."""
    if value.monoid != "sum" or not value.ranges:
        return None
    factors = factors_of(value.body)
    if len(factors) < 2:
        return None
    bound = {r.index for r in value.ranges}
    nodes = [numbering.number(f) for f, _ in factors]
    carrying = [k for k, n in enumerate(nodes) if bound <= set(n.args)]
    if len(carrying) < 2:
        return None
    order = sorted(carrying, key=lambda k: (-len(nodes[k].args), k))
    first = order[0]
    second = next((k for k in order if set(nodes[k].args) != set(nodes[first].args)), None)
    if second is None:
        return None
    further = tuple(bool(bound & set(n.args)) for k, n in enumerate(nodes) if k not in (first, second))
    operands = tuple(_stored_in(factors[k][0], numbering) for k in (first, second))
    return Contraction(value.using or _common(*operands), further)


def factors_of(value: Value) -> list[tuple[Value, bool]]:
    """The factors of a product in order of writing; True marks one that divides."""
    match value:
        case Binary(op="mul", a=a, b=b):
            return factors_of(a) + factors_of(b)
        case Binary(op="div", a=a, b=b):
            return [*factors_of(a), (b, True)]
        case Unary(op="neg", x=x):
            return factors_of(x)
        case _:
            return [(value, False)]


def _stored_in(value: Value, numbering: Numbering) -> Storage | None:
    """The storage type that a value has: of a cast, a tensor or an annotated statement; None for
    other values, which are f32."""
    match value:
        case Cast(to=to, implicit=False):
            return to
        case Cast(x=x):
            return _stored_in(x, numbering)
        case Read(name=name) if name not in numbering.entered:
            tensor = numbering.op.tensor(name)
            return tensor.dtype if tensor else None
        case Read(name=name):
            define = numbering.entered[name][0]
            output = define.output and numbering.op.tensor(define.output.tensor)
            return define.storage or (output.dtype if output else None)
        case Unary(op="neg", x=x):
            return _stored_in(x, numbering)
        case _:
            return None


def _common(a: Storage | None, b: Storage | None) -> str:
    """The type on the matrix unit: one of at most 16 bits that holds both exactly, or else the one
    that the matrix unit would round to; f32 where neither operand is narrow."""
    narrow = [t for t in (a, b) if t is not None and _narrow(t)]
    if not narrow:
        return "f32"
    if len(narrow) == 1:
        only = narrow[0]
        return only.name if isinstance(only, DTypeParam) or only.bits == 16 else "bf16"
    left, right = narrow
    if left == right:
        return left.name
    wide = [t for t in narrow if isinstance(t, DTypeParam) or t.bits == 16]
    if len(wide) == 2:
        return "f32"
    if wide:
        return wide[0].name
    kinds = {t.kind for t in narrow if isinstance(t, DType)}
    return "i8" if kinds == {"int"} else "bf16" if len(kinds) == 2 else "f8e4m3"


def _narrow(dtype: Storage) -> bool:
    return isinstance(dtype, DTypeParam) or dtype.bits <= 16
