"""Integer expressions evaluated over whole arrays of index values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import assert_never

import numpy as np

from opspec.ir.integers import Atom, Datum, Dim, FloorDiv, Greatest, Index, Int, Least, Mod
from opspec.reference.rounding import Array

Lookup = Callable[[str, tuple[Array, ...]], Array]


def extent(value: Int, dims: Mapping[str, int]) -> int:
    """An integer expression of dims alone."""
    return value.evaluate(dims)


def over(value: Int, dims: Mapping[str, int], indices: Mapping[str, Array], read: Lookup) -> Array:
    """``value`` at every point: ``indices`` maps names to broadcastable int64 arrays.

    ``read`` answers an integer tensor at arrays of positions. Division by zero, which
    only points outside every domain can meet, gives 0.
    """
    total: Array = np.zeros((), dtype=np.int64)
    for monomial, coefficient in value.terms:
        product: Array = np.asarray(coefficient, dtype=np.int64)
        for atom, power in monomial:
            product = product * _atom(atom, dims, indices, read) ** power
        total = total + product
    return total


def _atom(atom: Atom, dims: Mapping[str, int], indices: Mapping[str, Array], read: Lookup) -> Array:
    def inner(value: Int) -> Array:
        return over(value, dims, indices, read)

    match atom:
        case Dim(name):
            return np.asarray(dims[name], dtype=np.int64)
        case Index(name):
            return indices[name]
        case FloorDiv(num, den) | Mod(num, den):
            below = inner(den)
            safe = np.where(below == 0, 1, below)
            whole = inner(num) // safe if isinstance(atom, FloorDiv) else inner(num) % safe
            return np.where(below == 0, 0, whole)
        case Datum(tensor, indices_):
            return read(tensor, tuple(inner(i) for i in indices_))
        case Least(args):
            return reduce(np.minimum, [inner(a) for a in args])
        case Greatest(args):
            return reduce(np.maximum, [inner(a) for a in args])
        case _:
            assert_never(atom)
