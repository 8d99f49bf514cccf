"""Rows that begin at any address, by loads as wide as those of rows that begin where such a load can.

The lanes of a chunk of such a row begin up to 15 bytes before it, at a multiple of 16: a lane that meets the row loads
all of its neighbours at once, within 16 bytes that hold an element of the row, and those outside of it count for none.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def before_row(row, ODD: tl.constexpr):
    """How many elements before a row, of which ``row`` points to the first, its first wide load begins."""
    if ODD:
        size: tl.constexpr = row.dtype.element_ty.primitive_bitwidth // 8
        return (row.to(tl.int64) % 16 // size).to(tl.int32)
    return 0


@triton.jit
def in_row(place, end, ODD: tl.constexpr):
    """Where places of a chunk are those of a row that ends at ``end``."""
    if ODD:
        return (place >= 0) & (place < end)
    return place < end


@triton.jit
def load_row(row, stride, start, end, other, LANES: tl.constexpr, STEPS: tl.constexpr, WIDE: tl.constexpr, ODD: tl.constexpr):  # fmt: skip
    """The places of a row from ``start`` on as ``lane_places`` has them, ``other`` outside of the row."""
    lane = tl.arange(0, STEPS)[None, :, None] * (LANES * WIDE) + tl.arange(0, LANES)[:, None, None] * WIDE
    within = lane + tl.arange(0, WIDE)[None, None, :]
    if ODD:
        if stride == 1:
            # the mask is that of a lane: one of elements would take its load apart
            inside = tl.broadcast_to(lane < end - start, (LANES, STEPS, WIDE))
            first = tl.multiple_of(row + start, 16)
            x = tl.load(first + within, mask=inside, other=other, eviction_policy="evict_first")
        else:
            place = start + within
            x = tl.load(row + place * stride, mask=(place >= 0) & (place < end), other=other, eviction_policy="evict_first")  # fmt: skip
        if (start < 0) | (start + LANES * STEPS * WIDE > end):
            x = tl.where((start + within >= 0) & (start + within < end), x, other)
    else:
        x = tl.load(row + (start + within) * stride, mask=start + within < end, other=other, eviction_policy="evict_first")  # fmt: skip
    return x
