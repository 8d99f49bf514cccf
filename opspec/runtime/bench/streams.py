"""Small Triton kernels that show what the card can do: plain streams, exponentials, an empty launch.

Their times are the roofs that an operator is judged by, so they do nothing but the one thing: one tile per
program, whole vectors, no mask (sizes are multiples of the tile).
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def empty_kernel():
    """Nothing: the cost of a launch."""


@triton.jit
def read_kernel(source, sums, BLOCK: tl.constexpr):
    """Read a tile; the sum written for each keeps the loads alive."""
    tile = tl.program_id(0).to(tl.int64)
    x = tl.load(source + tile * BLOCK + tl.arange(0, BLOCK))
    tl.store(sums + tile, tl.sum(x.to(tl.float32), 0))


@triton.jit
def write_kernel(target, value, BLOCK: tl.constexpr):
    """Write a tile."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    data = (tl.arange(0, BLOCK) + value).to(target.dtype.element_ty)
    tl.store(target + place, data)


@triton.jit
def copy_kernel(source, target, BLOCK: tl.constexpr):
    """Read a tile and write it elsewhere."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + place, tl.load(source + place))


@triton.jit
def mix_kernel(first, second, target, BLOCK: tl.constexpr):
    """Read two tiles and write one."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + place, tl.load(first + place) + tl.load(second + place))


@triton.jit
def exp_kernel(values, REPEATS: tl.constexpr, BLOCK: tl.constexpr):
    """A chain of base-2 exponentials on each element, held in (0, 1) by the sign."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(values + place)
    for _ in range(REPEATS):
        x = tl.exp2(-x)
    tl.store(values + place, x)
