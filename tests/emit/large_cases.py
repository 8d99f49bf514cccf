"""Device functions of kernels over much data; run by the interpreting process."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from opspec.runtime.device import quotients_near

CASES: dict[str, Callable[[], None]] = {}
TILE = 64


@triton.jit
def _quotients(out_ptr, first, divisor, TILE: tl.constexpr):
    at = first + tl.arange(0, TILE)
    tl.store(out_ptr + tl.arange(0, TILE), quotients_near(first, at, divisor))


def quotients_of_a_tile_are_exact() -> None:
    """Groups shorter than the tile, as long, longer, and as long as integers are."""
    out = torch.empty(TILE, dtype=torch.int32)
    for divisor in (1, 2, 3, 7, 10, 31, 32, 33, 63, 64, 65, 127, 1000, (1 << 21) - 1, 1 << 30, (1 << 31) - 1):
        for first in (0, 64, 128, 640, 64 * 99_991, (1 << 31) - 128):
            _quotients[(1,)](out, first, divisor, TILE=TILE)
            right = torch.arange(first, first + TILE, dtype=torch.int64) // divisor
            assert torch.equal(out.to(torch.int64), right), (first, divisor)


CASES["quotients_of_a_tile_are_exact"] = quotients_of_a_tile_are_exact
