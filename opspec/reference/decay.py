"""Decayed sums: ``s[t] = a[t] * s[t - 1] + x[t]``, with the radius that evaluation by segments leaves.

A kernel forms products of neighbouring factors and combines sums of segments. Where such a product
leaves the range of f32 upwards, or a factor is not finite, nothing is known of what follows; one that
is too small for f32 loses its term, which the radius allows for.
"""

from __future__ import annotations

import numpy as np

from opspec.reference.bounded import HUGE, TINY, UNIT, Bounded, operand, settle
from opspec.reference.rounding import Array


def decayed(
    x: Bounded, a: Bounded, mask: Array | None, shape: tuple[int, ...], axis: int, *, reverse: bool
) -> Bounded:
    """The decayed running sum of ``x`` along ``axis``; masked points neither add nor decay."""
    x, a = operand(x), operand(a)
    inside = np.ones(shape, dtype=bool) if mask is None else np.broadcast_to(mask, shape)
    parts = [np.broadcast_to(v, shape) for v in (x.value, x.error, a.value, a.error)]
    rows = [np.moveaxis(np.flip(v, axis) if reverse else v, axis, 0) for v in (*parts, inside)]
    with np.errstate(all="ignore"):
        value, error, certain = _walk(*rows)
    value, error, certain = (np.moveaxis(v, 0, axis) for v in (value, error, certain))
    if reverse:
        value, error, certain = (np.flip(v, axis) for v in (value, error, certain))
    return settle(value, error, certain)


def _walk(x: Array, dx: Array, a: Array, da: Array, inside: Array) -> tuple[Array, Array, Array]:
    """Value, radius and certainty, point by point along the first axis."""
    s, e, size, most, n = (np.zeros(x.shape[1:]) for _ in range(5))
    product = np.zeros(x.shape[1:])  # the greatest product of factors over a stretch that ends here
    known, begun = np.ones(x.shape[1:], dtype=bool), np.zeros(x.shape[1:], dtype=bool)
    out = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape, dtype=bool)
    for t in range(x.shape[0]):
        here = inside[t]
        own, wide = np.where(begun, a[t], 0.0), np.where(begun, np.abs(a[t]) + da[t], 0.0)
        product = np.where(here, wide * np.maximum(product, 1.0), product)
        # an infinite state meets products that may have become 0
        fine = (product <= HUGE) & np.isfinite(dx[t]) & (np.isfinite(s) | np.isnan(s))
        known = known & (fine | ~here)
        error = wide * e + np.where(begun, da[t], 0.0) * np.abs(s) + dx[t]
        e = np.where(here, error, e)
        size = np.where(here, np.where(begun, wide * size, 0.0) + np.abs(x[t]) + dx[t], size)
        s = np.where(here, np.where(begun, own * s, 0.0) + x[t], s)
        most, n, begun = np.fmax(most, size), n + here, begun | here
        rounded = np.where(n > 1, 2 * n * UNIT * size + n * TINY * np.maximum(most, 1.0), 0.0)
        out[0][t], out[1][t], out[2][t] = s, np.where(known, e + rounded, np.inf), known
    return out
