"""Copies that give the rows of operands an alignment at which whole tiles can be moved.

Rows of an odd length begin at any address, and then every element is loaded by itself. A block product
reads an operand many times, so that one copy with padded rows costs less than it saves. All operands of
a product are copied in one launch: where each had its own, the device would run empty between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import torch
import triton

from opspec.runtime import launch
from opspec.runtime.rows import SLOTS, copy_rows

if TYPE_CHECKING:
    from opspec.runtime.calls import Call

BLOCK = 2048  # elements of a row that one program copies: lengths that vary take one binary
AXES = 4  # leading axes of a tensor
UNIT, LINE = 16, 128  # bytes: what one access moves, and what memory does
UNUSED = (None, None, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0)  # the arguments of a slot without a tensor


def copies_pay(rows: int, columns: int, *tensors: torch.Tensor, least: int = 512) -> bool:
    """Whether a product of so many rows and columns is worth copies of those operands that no descriptor takes.

    Each element is used ``rows`` or ``columns`` times, and together as often as a square product of ``least``
    rows must use those that are copied. Only rows that are odd in length or begin at an odd address can be
    helped: with unit stride, of elements of at most two bytes, on a device that has descriptors.
    """
    if min(rows, columns) < least // 4 or not all(_copyable(t) for t in tensors):
        return False
    if not launch.has_tensor_memory(tensors[0].device):
        return False
    copied = sum(t.numel() for t in tensors if not launch.describable(t))
    every = sum(t.numel() for t in tensors)
    return bool(2 * rows * columns * every >= least * (rows + columns) * copied)


def _copyable(tensor: torch.Tensor) -> bool:
    whole = tensor.numel() > 0 and tensor.stride(-1) == 1
    return bool(whole and tensor.element_size() <= 2 and tensor.dim() <= AXES + 1)


def aligned_rows(call: Call, tensor: torch.Tensor) -> torch.Tensor:
    """As ``all_aligned_rows``, of one tensor."""
    return all_aligned_rows(call, tensor)[0]


def all_aligned_rows(call: Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Each tensor as it is where a descriptor takes it, else a copy of it whose rows begin at multiples of
    16 bytes (of 128 where they are long), made by the device; 0 stands behind the end of a row."""
    found = list(tensors)
    odd = [i for i, tensor in enumerate(tensors) if not launch.describable(tensor)]
    for first in range(0, len(odd), SLOTS):
        taken = [_Rows.of(call, tensors[i]) for i in odd[first : first + SLOTS]]
        _start(call, taken)
        for i, rows in zip(odd[first : first + SLOTS], taken, strict=True):
            found[i] = rows.copy
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of ``last`` elements and their copy; ``axes``: extent and stride of the axes that count them."""

    tensor: torch.Tensor
    copy: torch.Tensor
    axes: tuple[tuple[int, int], ...]
    last: int

    @classmethod
    def of(cls, call: Call, tensor: torch.Tensor) -> _Rows:
        """The rows of a tensor, and room for them."""
        *lead, last = tensor.shape
        size = tensor.element_size()
        unit = (LINE if last * size >= 8 * LINE else UNIT) // size
        copy = call.workspace((*lead, triton.cdiv(last, unit) * unit), tensor.dtype)
        return cls(tensor=tensor, copy=copy, axes=_joined(tensor.shape[:-1], tensor.stride()[:-1]), last=last)

    @property
    def programs(self) -> int:
        """How many programs copy them."""
        return int(prod(extent for extent, _ in self.axes) * triton.cdiv(self.copy.shape[-1], BLOCK))

    def arguments(self) -> tuple[torch.Tensor | int | None, ...]:
        """What a slot of the kernel takes."""
        axes = ((1, 0),) * (AXES - len(self.axes)) + self.axes
        extents, strides = zip(*axes, strict=True)
        units = self.copy.shape[-1] * self.copy.element_size() // UNIT
        return self.tensor, self.copy, self.programs, *extents[1:], self.last, units, *strides


def _joined(extents: Sequence[int], strides: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Axes as extent and stride, neighbours with no gap between them as one, and none of one index."""
    found: list[tuple[int, int]] = []
    for extent, stride in zip(extents, strides, strict=True):
        if extent == 1:
            continue
        if found and found[-1][1] == extent * stride:
            found[-1] = found[-1][0] * extent, stride
        else:
            found.append((extent, stride))
    return tuple(found)


def _start(call: Call, taken: Sequence[_Rows]) -> None:
    """One launch for all of them, whose programs they share."""
    slots = [a for rows in taken for a in rows.arguments()] + [*UNUSED] * (SLOTS - len(taken))
    axes = max(1, *(len(rows.axes) for rows in taken))
    options = {"MANY": len(taken), "AXES": axes, "BLOCK": BLOCK, "num_warps": 4}
    index = launch.index_type(*(t for rows in taken for t in (rows.tensor, rows.copy)))
    call.start(copy_rows, sum(rows.programs for rows in taken), options, *slots, INDEX=index)


__all__ = ["aligned_rows", "all_aligned_rows", "copies_pay"]
