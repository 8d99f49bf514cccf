"""Neighbouring axes walked as one, where the strides of a launch's tensors allow it.

A tile holds whole rows or parts of rows. Rows that are short or odd in length leave lanes idle and begin at
addresses from which no 16 bytes can be loaded at once; rows that follow one another without a gap are one
long row.
"""

from __future__ import annotations

import torch

BLOCK = 1024  # elements along memory of the widest tile
LEAST = 128  # and of the narrowest
SHORT = 32  # rows that a tile may hold


def merge(
    extents: tuple[int, ...], *places: tuple[torch.Tensor, int], reduced: bool = False
) -> tuple[int, ...]:
    """Extents of neighbouring axes, each joined to the one inside it where all tensors let it: (4, 7, 9) to
    (1, 1, 252).

    ``extents``: the outermost first. ``places``: every tensor that has these axes, with the position of the
    first. ``reduced``: the axes are folded, for which one axis is always better; else whole rows stay as they are.
    """
    along = any(first + len(extents) == tensor.dim() for tensor, first in places)
    if not reduced and not (_leaves_lanes_idle(extents[-1]) if along else extents[-1] < SHORT):
        return extents
    merged, inner = list(extents), len(extents) - 1
    for outer in reversed(range(inner)):
        if all(_follow(tensor, first, outer, inner, merged) for tensor, first in places):
            merged[inner] *= merged[outer]
            merged[outer] = 1
        else:
            inner = outer
    return tuple(merged)


def _follow(tensor: torch.Tensor, first: int, outer: int, inner: int, extents: list[int]) -> bool:
    """Whether the next index of the outer axis is where the inner one ends."""
    return extents[outer] == 1 or tensor.stride(first + outer) == extents[inner] * tensor.stride(
        first + inner
    )


def _leaves_lanes_idle(extent: int) -> bool:
    """Whether tiles of whole powers of two fit an extent badly, or its rows begin at odd addresses."""
    width = LEAST
    while width < min(extent, BLOCK):
        width *= 2
    return extent % 8 != 0 or 8 * extent < 7 * (extent + -extent % width)


__all__ = ["merge"]
