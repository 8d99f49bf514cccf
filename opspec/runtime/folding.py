"""Folds and scans in which NaN stays NaN, and scans that leave their own point out or decay."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def maximum(a, b):
    """The larger of two values; NaN if either is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller of two values; NaN if either is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def is_nan(x):
    """Whether an f32 value is NaN."""
    return x != x


@triton.jit
def is_greatest(x, m):
    """Where elements are their maximum m, which is NaN where one is NaN.

    One comparison an element: only m itself is not up to the number below m, and only NaN is not up to +inf, which
    stands for it where m is NaN.
    """
    if x.numel <= m.numel:
        return (x == m) | is_nan(x)
    return ~(x <= _below(m))


@triton.jit
def is_least(x, m):
    """Where elements are their minimum m, which is NaN where one is NaN."""
    if x.numel <= m.numel:
        return (x == m) | is_nan(x)
    return ~(x >= -_below(-m))


@triton.jit
def _below(m):
    """The greatest number below m; of -inf NaN, and of NaN +inf."""
    bits = (m + tl.full((), 0.0, tl.float32)).to(tl.int32, bitcast=True)  # -0 becomes 0
    bits = tl.where(m > 0, bits - 1, tl.where(m == 0, -(2**31) + 1, bits + 1))
    bits = tl.where(m == float("-inf"), 0x7FC00000, bits)
    return tl.where(m != m, 0x7F800000, bits).to(tl.float32, bitcast=True)


@triton.jit
def lane_places(LANES: tl.constexpr, STEPS: tl.constexpr, WIDE: tl.constexpr):
    """Places of a chunk of a stream, [LANES, STEPS, WIDE]: in each step WIDE neighbours a lane, which one load brings."""
    step = tl.arange(0, STEPS)[None, :, None] * (LANES * WIDE)
    return step + tl.arange(0, LANES)[:, None, None] * WIDE + tl.arange(0, WIDE)[None, None, :]


@triton.jit
def unless_full(mask, FULL: tl.constexpr):
    """What is inside of a tile: all of one that is known to be full when Triton compiles, which then needs no mask."""
    if FULL:
        return tl.full(mask.shape, True, tl.int1)
    return mask


@triton.jit
def first_of_lanes(hit, start, nowhere, ODD: tl.constexpr = False):
    """The first place of each lane of a chunk, [LANES, STEPS, WIDE], where ``hit`` holds, ``nowhere`` if at none.

    With ODD the first chunk begins before the row, with what is no less than anything in it: place 0 is as good. A place within its lane is a constant of the binary, so that no thread computes those of all its elements.
    """
    LANES: tl.constexpr = hit.shape[0]
    STEPS: tl.constexpr = hit.shape[1]
    WIDE: tl.constexpr = hit.shape[2]
    far: tl.constexpr = LANES * STEPS * WIDE
    within = tl.arange(0, STEPS)[None, :, None] * (LANES * WIDE) + tl.arange(0, WIDE)[None, None, :]
    first = tl.min(tl.min(tl.where(hit, within, far), axis=2), axis=1)
    place = start + tl.arange(0, LANES) * WIDE + first
    if ODD:
        place = tl.maximum(place, 0)
    return tl.where(first < far, place, nowhere)


@triton.jit
def first_of_rows(hit, at, nowhere, WIDE: tl.constexpr, FULL: tl.constexpr):
    """The first place of each row of a tile, [M, N], where ``hit`` holds, ``nowhere`` if at none; ``at``: the places.

    Those of a row of wide loads are told apart as in ``first_of_lanes``.
    """
    if not FULL:
        return tl.min(tl.where(hit, at, nowhere), axis=1)
    ROWS: tl.constexpr = hit.shape[0]
    far: tl.constexpr = hit.shape[1]
    STEPS: tl.constexpr = 1 if far < 1024 else far // 1024 if far < 4096 else 4
    LANES: tl.constexpr = far // (STEPS * WIDE)
    within = tl.arange(0, STEPS)[:, None, None] * (LANES * WIDE) + tl.arange(0, WIDE)[None, None, :]
    parts = tl.where(tl.reshape(hit, (ROWS, STEPS, LANES, WIDE)), within[None, :, :, :], far)
    first = tl.min(tl.min(parts, axis=3), axis=1)
    first = tl.min(tl.where(first < far, tl.arange(0, LANES)[None, :] * WIDE + first, far), axis=1)
    return tl.where(first < far, first, nowhere)


@triton.jit
def _multiply(a, b):
    """The product, as a combine function."""
    return a * b


@triton.jit
def reduce_max(x, axis: tl.constexpr):
    """Maximum along an axis; NaN if any element is NaN."""
    return tl.reduce(x, axis, maximum)


@triton.jit
def reduce_min(x, axis: tl.constexpr):
    """Minimum along an axis; NaN if any element is NaN."""
    return tl.reduce(x, axis, minimum)


@triton.jit
def reduce_prod(x, axis: tl.constexpr):
    """Product along an axis."""
    return tl.reduce(x, axis, _multiply)


@triton.jit
def reduce_any(x, axis: tl.constexpr):
    """Whether any element along an axis is true."""
    return tl.max(x.to(tl.int32), axis) != 0


@triton.jit
def reduce_all(x, axis: tl.constexpr):
    """Whether every element along an axis is true."""
    return tl.min(x.to(tl.int32), axis) != 0


@triton.jit
def _add_both(a, b, c, d):
    """Two sums side by side, as a combine function."""
    return a + c, b + d


@triton.jit
def sum_both(x, y, axis: tl.constexpr):
    """The sums of two blocks of one shape along an axis."""
    x, y = tl.broadcast(x, y)
    return tl.reduce((x, y), axis, _add_both)


@triton.jit
def _either(a, b):
    """Whether one of two is true, as a combine function of integers."""
    return a | b


@triton.jit
def scan_max(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running maximum along an axis; NaN from the first NaN on."""
    return tl.associative_scan(x, axis, maximum, reverse)


@triton.jit
def scan_min(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running minimum along an axis; NaN from the first NaN on."""
    return tl.associative_scan(x, axis, minimum, reverse)


@triton.jit
def scan_any(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether an element up to each point along an axis is true."""
    return tl.associative_scan(x.to(tl.int32), axis, _either, reverse) != 0


@triton.jit
def scan_all(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether every element up to each point along an axis is true."""
    return tl.cumprod(x.to(tl.int32), axis, reverse) != 0


@triton.jit
def _sum_pair(a, b, c, d):  # noqa: ARG001 - the last point of the earlier run is not the last of both
    return a + c, a + d


@triton.jit
def _prod_pair(a, b, c, d):  # noqa: ARG001 - as above
    return a * c, a * d


@triton.jit
def _max_pair(a, b, c, d):  # noqa: ARG001 - as above
    return maximum(a, c), maximum(a, d)


@triton.jit
def _min_pair(a, b, c, d):  # noqa: ARG001 - as above
    return minimum(a, c), minimum(a, d)


@triton.jit
def sum_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running sum along an axis with and without the point itself: pairs of a run's sum and that but its last."""
    return tl.associative_scan((x, tl.zeros_like(x)), axis, _sum_pair, reverse)


@triton.jit
def prod_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running product along an axis with and without the point itself."""
    return tl.associative_scan((x, tl.zeros_like(x) + 1), axis, _prod_pair, reverse)


@triton.jit
def max_before(x, none, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running maximum along an axis with and without the point itself, ``none`` at the first."""
    return tl.associative_scan((x, tl.zeros_like(x) + none), axis, _max_pair, reverse)


@triton.jit
def min_before(x, none, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running minimum along an axis with and without the point itself, ``none`` at the first."""
    return tl.associative_scan((x, tl.zeros_like(x) + none), axis, _min_pair, reverse)


@triton.jit
def any_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether an element up to each point along an axis is true, with and without the point itself."""
    whole, before = max_before(x.to(tl.int32), 0, axis, reverse)
    return whole != 0, before != 0


@triton.jit
def all_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether every element up to each point along an axis is true, with and without the point itself."""
    whole, before = min_before(x.to(tl.int32), 1, axis, reverse)
    return whole != 0, before != 0


@triton.jit
def decayed(s, a, x):
    """``s`` decayed by ``a``, and ``x`` added; a state of 0 is none, whatever a product of factors became."""
    return tl.where(s == 0.0, x, s * a + x)


@triton.jit
def _decay_pair(a, s, b, x):
    return a * b, decayed(s, b, x)


@triton.jit
def scan_decay(x, a, axis: tl.constexpr, reverse: tl.constexpr = False):
    """The product of the factors ``a`` up to each point along an axis, and the decayed sum of ``x`` there."""
    return tl.associative_scan((a, x), axis, _decay_pair, reverse)


@triton.jit
def _decay_before_pair(a, s, p, q, b, x, r, y):  # noqa: ARG001 - the last point of the earlier run is not the last of both
    return a * b, decayed(s, b, x), a * r, decayed(s, r, y)


@triton.jit
def decay_before(x, a, axis: tl.constexpr, reverse: tl.constexpr = False):
    """As ``scan_decay``, with the point itself and then without it: two factors, each with its sum."""
    first = tl.zeros_like(x)
    return tl.associative_scan((a, x, first + 1.0, first), axis, _decay_before_pair, reverse)
