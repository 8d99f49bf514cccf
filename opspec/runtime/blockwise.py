"""Reductions and scans of Triton's interpreter by whole blocks instead of element by element.

The interpreter calls a combine function once for each element, which makes a kernel with a maximum or a scan
slow to check. A combine function works on blocks as well as on scalars, so here a reduction halves its axis
until nothing is left, neighbours together and in order, and a scan doubles the runs that it has combined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as host

Array = np.ndarray[Any, Any]


def combine_by_blocks() -> None:
    """Patch the interpreter of this process; on a GPU nothing changes."""
    host.ReduceOps.generic_reduce = _reduce
    host.ScanOps.generic_scan = _scan


def _combined(ops: Any, left: Sequence[Array], right: Sequence[Array], dtypes: Sequence[Any]) -> list[Array]:
    """The combine function over pairs of blocks."""
    args = [ops.to_tensor(x, d) for part in (left, right) for x, d in zip(part, dtypes, strict=True)]
    with np.errstate(all="ignore"):
        made = ops.combine_fn.fn(*args)
    made = made if isinstance(made, tuple | tl.tuple) else (made,)
    return [np.asarray(m.handle.data).reshape(x.shape) for m, x in zip(made, left, strict=True)]


def _reduce(ops: Any, given: Any) -> list[Any]:
    whole = ops.axis is None
    dtypes = [x.dtype for x in given]
    parts = [x.handle.data.reshape(-1) if whole else x.handle.data for x in given]
    shape, axis = given[0].handle.data.shape, 0 if whole else ops.axis
    every: Callable[[Array, int], Array] = lambda x, k: np.take(x, range(k, x.shape[axis], 2), axis=axis)  # noqa: E731
    while parts[0].shape[axis] > 1:
        parts = _combined(ops, [every(x, 0) for x in parts], [every(x, 1) for x in parts], dtypes)
    out = []
    for x, dtype in zip(parts, dtypes, strict=True):
        kept = x.reshape([1] * len(shape)) if whole else x
        out.append(ops.to_tensor(kept if ops.keep_dims else x.squeeze(axis), dtype))
    return out


def _scan(ops: Any, given: Any) -> list[Any]:
    dtypes, axis = [x.dtype for x in given], ops.axis
    parts = [x.handle.data for x in given]
    place = np.arange(parts[0].shape[axis]).reshape([-1 if k == axis else 1 for k in range(parts[0].ndim)])
    step = 1
    while step < parts[0].shape[axis]:
        made = _combined(ops, [np.roll(x, step, axis) for x in parts], parts, dtypes)
        parts = [np.where(place >= step, m, x) for m, x in zip(made, parts, strict=True)]
        step *= 2
    return [ops.to_tensor(x, dtype) for x, dtype in zip(parts, dtypes, strict=True)]
