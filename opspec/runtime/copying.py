"""Copies that give the rows of an operand an alignment at which whole tiles can be moved.

Rows of an odd length begin at any address, and then every element is loaded by itself. A block product
reads an operand many times, so that one copy with padded rows costs less than it saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton

from opspec.runtime.device import copy_rows
from opspec.runtime.launch import describable, index_type

if TYPE_CHECKING:
    from opspec.runtime.calls import Call

STEP = 16  # elements of the narrowest row: what Triton calls aligned, so that all copies are one binary
ROW = 2048  # elements of a row that one program copies


def copies_pay(rows: int, columns: int, *tensors: torch.Tensor, least: int = 512) -> bool:
    """Whether a product of so many rows and columns is worth copies of operands that no descriptor takes.

    Each element is used ``rows`` or ``columns`` times. Only rows that are odd in length or begin at an odd
    address can be helped: with unit stride, of elements of at most two bytes.
    """
    if min(rows, columns) < least:
        return False
    return all(t.numel() and t.stride(-1) == 1 and t.element_size() <= 2 and t.dim() <= 5 for t in tensors)


def aligned_rows(call: Call, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it whose rows begin at multiples of 16 elements, made by the device."""
    if describable(tensor):
        return tensor
    *lead, last = tensor.shape
    width = triton.cdiv(last, STEP) * STEP
    copy = call.workspace((*lead, width), tensor.dtype)
    extents = [1] * (4 - len(lead)) + lead
    strides = [0] * (4 - len(lead)) + list(tensor.stride()[:-1])
    rows = extents[0] * extents[1] * extents[2] * extents[3]
    options = {"BLOCK": ROW, "num_warps": 4}
    grid = rows * triton.cdiv(width, ROW)
    index = index_type(tensor, copy)
    call.start(copy_rows, grid, options, tensor, copy, *extents[1:], last, width, *strides, INDEX=index)
    return copy


__all__ = ["aligned_rows", "copies_pay"]
