"""Pointwise values over a box: reads by position, guards, and the rules of ``pointwise``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import numpy as np

from opspec.ir.dtypes import DType, DTypeParam, Storage
from opspec.ir.integers import Int
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
    Select,
    Unary,
    Value,
)
from opspec.reference import pointwise
from opspec.reference.bounded import Bounded, known
from opspec.reference.boxes import Field
from opspec.reference.casts import cast
from opspec.reference.extents import over
from opspec.reference.rounding import Array, round_float

Number = float | int | bool


class Values:
    """What is known while an op runs: ``tensors`` as they stand, ``defines`` so far."""

    def __init__(
        self, dims: Mapping[str, int], scalars: Mapping[str, Array], dtypes: Mapping[str, DType]
    ) -> None:
        self.dims, self.scalars, self.dtypes = dims, scalars, dtypes
        self.tensors: dict[str, Field] = {}
        self.defines: dict[str, Field] = {}

    def dtype(self, storage: Storage) -> DType:
        """The concrete type that a storage type stands for in this run."""
        return self.dtypes[storage.name] if isinstance(storage, DTypeParam) else storage

    def lookup(self, name: str, positions: tuple[Array, ...]) -> Array:
        """Integers of a tensor or statement inside an index expression."""
        data, _ = self.gather(name, positions)
        return data.value.astype(np.int64)

    def gather(self, name: str, positions: tuple[Array, ...]) -> tuple[Bounded, Array]:
        """Elements at ``positions`` (clipped where outside), and where they were inside."""
        field = self.defines.get(name) or self.tensors[name]
        value = field.data.value
        inside: Array = np.ones((), dtype=bool)
        clipped = []
        for position, start, n in zip(positions, field.origin, value.shape, strict=True):
            local = position - start
            inside = inside & (local >= 0) & (local < n)
            clipped.append(np.clip(local, 0, max(n - 1, 0)))
        if value.size == 0:
            shape = np.broadcast_shapes(*(p.shape for p in positions))
            return known(np.zeros(shape, dtype=value.dtype)), np.zeros(shape, dtype=bool)
        at = tuple(clipped)
        if field.mask is not None:
            inside = inside & field.mask[at]
        error, terms = field.data.error, field.data.terms
        return Bounded(
            np.asarray(value[at]),
            np.asarray(error[at]) if error.ndim else error,
            None if terms is None else np.asarray(terms[at]),
        ), inside

    def value(self, value: Value, indices: Mapping[str, Array], strict: bool) -> Bounded:
        """A pointwise value over a box. ``strict``: a floor, comparison or integer follows."""
        match value:
            case Literal(value=number, dtype=dtype):
                return known(np.asarray(_constant(dtype, number)))
            case Extent(value=integer):
                return known(over(integer, self.dims, indices, self.lookup))
            case Scalar(name=name):
                return known(np.asarray(self.scalars[name]))
            case Read(name=name, indices=at, otherwise=otherwise):
                return self.read(name, at, otherwise, indices, strict)
            case Unary(op=op, x=x):
                strict_x = strict or op in ("floor", "ceil", "round")
                return pointwise.unary(op, self.value(x, indices, strict_x), precise=strict)
            case Binary(op=op, a=a, b=b):
                inner = strict or op in ("floordiv", "mod")
                left, right = self.value(a, indices, inner), self.value(b, indices, inner)
                return pointwise.binary(op, left, right, precise=strict)
            case Compare(op=op, a=a, b=b):
                return pointwise.compare(op, self.value(a, indices, True), self.value(b, indices, True))
            case Select(condition=condition, a=a, b=b):
                decided = self.value(condition, indices, strict)
                return pointwise.select(
                    decided, self.value(a, indices, strict), self.value(b, indices, strict)
                )
            case Cast(x=x, to=to, mode=mode):
                target = self.dtype(to)
                return cast(self.value(x, indices, strict or target.kind != "float"), target, mode)
            case Reduce() | Scan():
                raise ValueError("a reduction below the root of a statement")
            case _:
                assert_never(value)

    def read(
        self,
        name: str,
        at: tuple[Int, ...],
        otherwise: Value | None,
        indices: Mapping[str, Array],
        strict: bool,
    ) -> Bounded:
        """Elements at integer expressions, ``otherwise`` where those lie outside."""
        positions = tuple(over(i, self.dims, indices, self.lookup) for i in at)
        data, inside = self.gather(name, positions)
        if otherwise is None:
            return data
        return pointwise.select(known(inside.astype(np.int64)), data, self.value(otherwise, indices, strict))


def _constant(dtype: DType, number: Number) -> Array:
    if dtype.kind == "float":
        return round_float("f32", np.asarray(float(number)))
    return np.asarray(int(number), dtype=np.int64)
