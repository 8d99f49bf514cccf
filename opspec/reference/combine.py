"""One rule per monoid: reductions and scans over the axes of a dense box with a mask.

Masked points take the identity. A sum over nothing is 0 and a product 1; the others
report where their domain is empty, for the caller to fill in or refuse.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from opspec.ir.values import Monoid
from opspec.reference.bounded import UNIT, Bounded, operand, settle
from opspec.reference.rounding import Array

Axes = tuple[int, ...]


def counted(mask: Array | None, shape: tuple[int, ...], axes: Axes) -> Array:
    """How many points of the domain each result combines."""
    if mask is None:
        whole = np.prod([shape[a] for a in axes], dtype=np.int64)
        return np.broadcast_to(whole, tuple(n for i, n in enumerate(shape) if i not in axes))
    return np.asarray(np.broadcast_to(mask, shape).sum(axis=axes, dtype=np.int64))


def reduce(monoid: Monoid, x: Bounded, mask: Array | None, shape: tuple[int, ...], axes: Axes) -> Bounded:
    """Combine ``x``, broadcast to ``shape``, over ``axes`` where ``mask`` holds.

    Arg-reductions give the position in row-major order over ``axes``; where nothing is
    combined the value is unspecified, except for sum, prod, any and all.
    """
    x = operand(x)
    value, error = np.broadcast_to(x.value, shape), np.broadcast_to(x.error, shape)
    n = counted(mask, shape, axes)
    with np.errstate(all="ignore"):
        match monoid:
            case "sum":
                return summed(
                    _sum(value, mask, axes), _sum(error, mask, axes), _sum(np.abs(value), mask, axes), n, x
                )
            case "prod":
                return _product(value, error, mask, axes, n, integral=x.integral)
            case "max" | "min":
                return _extreme(monoid == "max", value, error, mask, axes)
            case "any" | "all":
                return _truth(monoid == "any", value, error, mask, axes)
            case "argmax" | "argmin":
                return _position(monoid == "argmax", value, error, mask, axes)
            case _:
                assert_never(monoid)


def _filled(x: Array, mask: Array | None, identity: float) -> Array:
    return x if mask is None else np.where(mask, x, np.asarray(identity, dtype=x.dtype))


def _sum(x: Array, mask: Array | None, axes: Axes) -> Array:
    return np.asarray(_filled(x, mask, 0).sum(axis=axes))


def summed(value: Array, error: Array, size: Array, n: Array, x: Bounded) -> Bounded:
    """Close a sum of ``n`` terms with total magnitude ``size``: n·2⁻²⁴·Σ|terms| (rule 23)."""
    if x.integral:
        return Bounded(value, error)
    steps = np.where(n > 1, n, 0)
    with np.errstate(all="ignore"):
        own = np.where(np.isfinite(value), steps * UNIT * (size + error), 0.0)
    return settle(value, error + own, np.isfinite(error))


def _product(
    value: Array, error: Array, mask: Array | None, axes: Axes, n: Array, *, integral: bool
) -> Bounded:
    result = np.asarray(_filled(value, mask, 1).prod(axis=axes))
    reach = _filled(np.abs(value) + error, mask, 1).prod(axis=axes)
    growth = 0.0 if integral else np.where(n > 1, n, 0) * UNIT
    gap = reach * (1.0 + growth) - np.abs(result)
    gap = np.where(gap > 4e-16 * n * reach, gap, 0.0)
    unsure = _filled((error > 0) & (np.abs(value) <= error), mask, 0).any(axis=axes)
    certain = np.asarray(~unsure & np.isfinite(_filled(error, mask, 0).sum(axis=axes)))
    return settle(result, gap, certain)


def _extreme(greatest: bool, value: Array, error: Array, mask: Array | None, axes: Axes) -> Bounded:
    if value.dtype.kind in "iub":
        limits = np.iinfo(np.int64)
        identity: float = limits.min if greatest else limits.max
    else:
        identity = -np.inf if greatest else np.inf
    pick = np.max if greatest else np.min
    if 0 in value.shape:
        shape = tuple(n for i, n in enumerate(value.shape) if i not in axes)
        return Bounded(np.full(shape, identity, dtype=value.dtype), np.zeros(()))
    result = np.asarray(pick(_filled(value, mask, identity), axis=axes))
    if not error.any():
        return Bounded(result, np.zeros(()))
    high = pick(_filled(value + error, mask, identity), axis=axes)
    low = pick(_filled(value - error, mask, identity), axis=axes)
    gap = np.where((high == result) & (low == result), 0.0, np.maximum(high - result, result - low))
    unknown = np.asarray(_filled(np.isinf(error), mask, 0).any(axis=axes))
    return Bounded(result, np.where(unknown, np.inf, np.where(np.isnan(gap), 0.0, gap)))


def _truth(either: bool, value: Array, error: Array, mask: Array | None, axes: Axes) -> Bounded:
    identity = 0 if either else 1
    pick = np.any if either else np.all
    truth = _filled(value != 0, mask, identity)
    result = np.asarray(pick(truth, axis=axes))
    high = pick(_filled((value != 0) | (error > 0), mask, identity), axis=axes)
    low = pick(_filled((value != 0) & (error == 0), mask, identity), axis=axes)
    return Bounded(result.astype(np.int64), (high != low).astype(np.float64))


def _position(greatest: bool, value: Array, error: Array, mask: Array | None, axes: Axes) -> Bounded:
    """Lowest position of the extreme; NaN counts as the most extreme value."""
    kept = tuple(i for i in range(value.ndim) if i not in axes)
    shape = tuple(value.shape[i] for i in kept)
    inside = np.ones(value.shape, dtype=bool) if mask is None else np.broadcast_to(mask, value.shape)

    def flat(x: Array) -> Array:
        moved = x.transpose(*kept, *axes)
        return moved.reshape(*shape, int(np.prod([value.shape[a] for a in axes], dtype=np.int64)))

    v, e, m = flat(value if greatest else -value), flat(error), flat(inside)
    if v.shape[-1] == 0:
        return Bounded(np.zeros(shape, dtype=np.int64), np.zeros(()))
    lowest = -np.inf if v.dtype.kind == "f" else np.iinfo(np.int64).min
    nan = m & np.isnan(v)
    clean = np.where(m & ~nan, v, lowest)
    best = clean.max(axis=-1, keepdims=True)
    hit = np.where(nan.any(axis=-1, keepdims=True), nan, m & (clean == best))
    place = hit.argmax(axis=-1)
    if not e.any():
        return Bounded(place, np.zeros(()))
    surely = np.where(m & ~nan, v - e, -np.inf).max(axis=-1, keepdims=True)
    rivals = m & (np.isinf(e) | (v + e >= surely)) & ((e > 0) | (v + e > surely) | hit)
    rivals = np.where(nan.any(axis=-1, keepdims=True), nan, rivals)
    away = np.abs(np.arange(v.shape[-1]) - place[..., None])
    return Bounded(place, np.where(rivals, away, 0).max(axis=-1).astype(np.float64))


def scan(
    monoid: Monoid, x: Bounded, mask: Array | None, shape: tuple[int, ...], axis: int, *, reverse: bool
) -> Bounded:
    """Inclusive running reduction of ``x`` along ``axis``; masked points add nothing."""
    x = operand(x)
    value, error = np.broadcast_to(x.value, shape), np.broadcast_to(x.error, shape)
    inside = np.ones(shape, dtype=bool) if mask is None else np.broadcast_to(mask, shape)
    if reverse:
        value, error, inside = (np.flip(a, axis) for a in (value, error, inside))
    with np.errstate(all="ignore"):
        result = _running(monoid, value, error, inside, axis, integral=x.integral)
    if not reverse:
        return result
    return Bounded(np.flip(result.value, axis), np.flip(np.broadcast_to(result.error, shape), axis))


def _running(
    monoid: Monoid, value: Array, error: Array, inside: Array, axis: int, *, integral: bool
) -> Bounded:
    n = inside.cumsum(axis=axis)
    spread = _filled(error, inside, 0)
    certain = np.isfinite(spread.cumsum(axis=axis))
    match monoid:
        case "sum":
            total = _filled(value, inside, 0).cumsum(axis=axis)
            size = _filled(np.abs(value), inside, 0).cumsum(axis=axis)
            return summed(total, spread.cumsum(axis=axis), size, n, Bounded(value, error))
        case "prod":
            result = _filled(value, inside, 1).cumprod(axis=axis)
            reach = _filled(np.abs(value) + error, inside, 1).cumprod(axis=axis)
            growth = 0.0 if integral else np.where(n > 1, n, 0) * UNIT
            gap = reach * (1.0 + growth) - np.abs(result)
            return settle(result, np.where(gap > 4e-16 * n * reach, gap, 0.0), certain)
        case "max" | "min":
            pick = np.maximum if monoid == "max" else np.minimum
            if value.dtype.kind in "iub":
                limits = np.iinfo(np.int64)
                identity: float = limits.min if monoid == "max" else limits.max
            else:
                identity = -np.inf if monoid == "max" else np.inf
            ends = [
                pick.accumulate(_filled(v, inside, identity), axis=axis)
                for v in (value, value + error, value - error)
            ]
            gap = np.maximum(np.abs(ends[1] - ends[0]), np.abs(ends[0] - ends[2]))
            return settle(ends[0], np.where(ends[1] == ends[2], 0.0, gap), certain)
        case "any" | "all":
            pick = np.maximum if monoid == "any" else np.minimum
            truth = pick.accumulate(
                _filled((value != 0).astype(np.int64), inside, int(monoid == "all")), axis=axis
            )
            return Bounded(truth, (spread.cumsum(axis=axis) > 0).astype(np.float64))
        case "argmax" | "argmin":
            raise NotImplementedError(f"a scan of {monoid}")
        case _:
            assert_never(monoid)
