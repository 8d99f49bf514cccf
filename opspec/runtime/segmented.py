"""Tiles of places that lie in segments: each begins where its segment does, or a whole tile further on."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def segment_tiles(offsets, stride, count, BLOCK: tl.constexpr, MOST: tl.constexpr):
    """For each of MOST segments how many tiles of BLOCK places those up to its end have; behind the last of ``count``
    it is as many as at its end.

    Segment e holds the places from ``offsets[e]`` up to ``offsets[e + 1]``; the offsets rise.
    """
    e = tl.arange(0, MOST)
    begin = tl.load(offsets + e * stride, mask=e < count, other=0)
    end = tl.load(offsets + (e + 1) * stride, mask=e < count, other=0)
    return tl.cumsum(tl.cdiv(end - begin, BLOCK).to(tl.int32), 0)


@triton.jit
def segment_tile(ends, tile, offsets, stride, BLOCK: tl.constexpr):
    """The segment in which a tile lies, and the first place of the tile; ``ends`` as ``segment_tiles`` gives them."""
    before = ends <= tile
    e = tl.sum(before.to(tl.int32))
    within = tile - tl.max(tl.where(before, ends, 0))
    return e, tl.load(offsets + e * stride).to(tl.int32) + within * BLOCK
