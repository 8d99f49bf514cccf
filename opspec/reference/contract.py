"""Sums over products: the operands of a multiply, and a matrix product where one fits.

The matrix product is only a faster way to the same numbers: it needs finite operands
and a domain that one operand's indices describe; everything else takes the dense way.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Read, Reduce, Unary, Value
from opspec.reference.bounded import UNIT, Bounded, operand
from opspec.reference.combine import summed
from opspec.reference.rounding import Array

WORTHWHILE = 1 << 15
"""Points of a box from which a matrix product is taken."""


def factors(value: Value) -> tuple[Value, ...]:
    """The operands of nested multiplications, in order of writing; the value itself otherwise."""
    if isinstance(value, Binary) and value.op == "mul":
        return factors(value.a) + factors(value.b)
    return (value,)


def operands(value: Reduce) -> tuple[Value, ...]:
    """The values that a sum multiplies. One that divides the product is a factor, too, where operands may be rounded
    (rule 10): it may divide an operand before that is rounded."""
    if value.using is None:
        return factors(value.body)
    product, divisors = value.body, list[Value]()
    while isinstance(product, Binary) and product.op == "div" and product.a.dtype is F32:
        divisors.append(product.b)
        product = product.a
    found = factors(product)
    if len(found) < 2:
        return factors(value.body)
    return (*found, *(Unary(op="reciprocal", x=d, dtype=F32) for d in divisors))


def is_raw(value: Value, computed: Container[str]) -> bool:
    """Whether it is a tensor element as stored and no value ``computed`` before."""
    return isinstance(value, Read) and value.name not in computed


def contract(
    a: Bounded, b: Bounded, mask: Array | None, shape: tuple[int, ...], axes: tuple[int, ...]
) -> Bounded | None:
    """``sum(a * b)`` over ``axes`` of a box of ``shape`` by matrix products, or None if it doesn't fit."""
    if int(np.prod(shape, dtype=np.int64)) < WORTHWHILE or a.integral or b.integral:
        return None
    a, b = operand(a), operand(b)
    if mask is not None:
        if _within(mask.shape, a.value.shape, len(shape)):
            a = _masked(a, mask)
        elif _within(mask.shape, b.value.shape, len(shape)):
            b = _masked(b, mask)
        else:
            return None
    if not all(np.isfinite(x).all() for x in (a.value, a.error, b.value, b.error)):
        return None
    layout = _Layout.of(_padded(a.value, shape).shape, _padded(b.value, shape).shape, shape, axes)
    if layout is None:
        return None
    value = layout.multiply(_padded(a.value, shape), _padded(b.value, shape))
    size = layout.multiply(np.abs(_padded(a.value, shape)), np.abs(_padded(b.value, shape)))
    error: Array = np.zeros(())
    if not (a.exact and b.exact):
        reach = layout.multiply(*(_padded(np.abs(x.value) + x.error, shape) for x in (a, b)))
        error = np.maximum(reach - size, 0.0)
    n = np.asarray(np.prod([shape[k] for k in axes], dtype=np.int64))
    return summed(value, error + UNIT * size, size, n, Bounded(value, error))


def _padded(x: Array, shape: tuple[int, ...]) -> Array:
    return x.reshape((1,) * (len(shape) - x.ndim) + x.shape)


def _within(inner: tuple[int, ...], outer: tuple[int, ...], rank: int) -> bool:
    inner, outer = ((1,) * (rank - len(s)) + s for s in (inner, outer))
    return all(i in (1, o) for i, o in zip(inner, outer, strict=True))


def _masked(x: Bounded, mask: Array) -> Bounded:
    return Bounded(np.where(mask, x.value, 0.0), np.where(mask, x.error, 0.0))


class _Layout:
    """Which axes are batch, rows, columns and summed, and the transposes that make them so."""

    def __init__(
        self, batch: list[int], rows: list[int], columns: list[int], summed_: list[int], rank: int
    ) -> None:
        self.batch, self.rows, self.columns, self.summed, self.rank = batch, rows, columns, summed_, rank

    @staticmethod
    def of(
        a: tuple[int, ...], b: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> _Layout | None:
        batch, rows, columns, inner = [], [], [], []
        for k, n in enumerate(shape):
            has_a, has_b = a[k] == n, b[k] == n
            if k in axes:
                if not (has_a and has_b):
                    return None
                inner.append(k)
            elif has_a and has_b:
                batch.append(k)
            elif has_a:
                rows.append(k)
            elif has_b:
                columns.append(k)
            else:
                return None
        return _Layout(batch, rows, columns, inner, len(shape))

    def multiply(self, a: Array, b: Array) -> Array:
        """Batched ``a @ b``, transposed back to the order of the axes that stay."""
        kept = [*self.batch, *self.rows, *self.columns]
        left = a.transpose(*self.batch, *self.rows, *self.summed, *self.columns)
        right = b.transpose(*self.batch, *self.summed, *self.columns, *self.rows)
        nb, nr, ns = len(self.batch), len(self.rows), len(self.summed)
        lead, tall = left.shape[:nb], left.shape[nb : nb + nr]
        deep = int(np.prod(left.shape[nb + nr : nb + nr + ns], dtype=np.int64))
        wide = right.shape[nb + ns : nb + ns + len(self.columns)]
        product = left.reshape(*lead, int(np.prod(tall, dtype=np.int64)), deep) @ right.reshape(
            *lead, deep, int(np.prod(wide, dtype=np.int64))
        )
        full = product.reshape(*lead, *tall, *wide)
        return full.transpose(*(kept.index(k) for k in sorted(kept)))
