"""Tiles that move through descriptors: which tensors they can move, and how they see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from opspec.runtime.arguments import index_type


def aligned(*tensors: torch.Tensor) -> bool:
    """Whether rows of all tensors can be read 16 bytes at a time: unit stride, the others multiples of 16."""
    for tensor in tensors:
        if tensor.data_ptr() % 16:
            return False
        if any(s != 1 and s % 16 for s, e in zip(tensor.stride(), tensor.shape, strict=True) if e > 1):
            return False
    return True


Moved = tuple[int | None, ...]  # of each axis the extent of a tile; None: a single index


class Units(tuple[int | None, ...]):
    """The tile of a tensor of which several elements move as one integer of type ``moved``: its last extent counts
    these."""

    __slots__ = ()
    moved: ClassVar[torch.dtype]


class Pairs(Units):
    """Of a tensor of bytes: units of two."""

    __slots__ = ()
    moved = torch.int16


class Words(Units):
    """Of a tensor of packed elements: words of eight."""

    __slots__ = ()
    moved = torch.int32


def describable(
    *tensors: torch.Tensor,
    pairs: Sequence[torch.Tensor] = (),
    words: Sequence[torch.Tensor] = (),
    beside: Sequence[torch.Tensor] = (),
) -> bool:
    """Whether tiles of all tensors can be moved by tensor-memory descriptors; those of ``pairs`` in units
    of two elements and those of ``words`` in units of four bytes, of which the last axis then has whole ones.

    That needs an NVIDIA device of capability 9.0 or more (Triton's interpreter takes them too), unit
    stride along the last axis, 16-byte alignment along the others, and offsets that fit 31 bits: of the tensors
    ``beside`` them too, since the indices of such a kernel have 32.
    """
    if not movable(*tensors):
        return False
    if index_type(*tensors, *beside) is not tl.int32:
        return False
    for kind, own in ((Pairs, pairs), (Words, words)):
        if any(t.shape[-1] * t.element_size() % kind.moved.itemsize for t in own):
            return False
    return has_tensor_memory(tensors[0].device)


def movable(*tensors: torch.Tensor) -> bool:
    """Whether all tensors have elements, unit stride along the last axis and 16-byte alignment along the others."""
    for tensor in tensors:
        size = tensor.element_size()
        if tensor.numel() == 0 or tensor.data_ptr() % 16 or tensor.stride(-1) != 1:
            return False
        if any(s <= 0 or s * size % 16 for s in tensor.stride()[:-1]):
            return False
    return True


@cache
def capability(device: torch.device) -> tuple[int, int]:
    """The capability of an NVIDIA device; (0, 0) of any other."""
    if device.type != "cuda" or torch.version.cuda is None:
        return 0, 0
    major, minor = torch.cuda.get_device_capability(device)
    return major, minor


@cache
def has_tensor_memory(device: torch.device) -> bool:
    """Whether a device moves tiles by tensor-memory descriptors, as Triton's interpreter does."""
    return device.type == "cpu" or capability(device) >= (9, 0)


@cache
def can_overlap(device: torch.device) -> bool:
    """Whether a kernel on a device may start before the one that it waits for has ended: NVIDIA's from 9.0 on."""
    return not triton.knobs.runtime.interpret and capability(device) >= (9, 0)


def leading(tile: Moved) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The order of a descriptor's axes, and what its tile then is: single indices come first.

    Only behind such does Triton drop them from a load; else a tile that does not change goes through registers
    on its way to a product.
    """
    order = tuple(sorted(range(len(tile)), key=lambda k: tile[k] is not None))
    return order, tuple(tile[k] or 1 for k in order)


def arranged(tensor: torch.Tensor, tile: Moved) -> tuple[torch.Tensor, tuple[int, ...]]:
    """A tensor as its descriptor sees it, and the tile of that."""
    order, block = leading(tile)
    return (tensor.view(tile.moved) if isinstance(tile, Units) else tensor).permute(order), block


def _descriptor(tensor: torch.Tensor, tile: Moved) -> TensorDescriptor:
    moved, block = arranged(tensor, tile)
    made = TensorDescriptor(moved, list(moved.shape), list(moved.stride()), list(block))
    made.source = tensor  # what a call knows it by
    return made


def describe(
    tensors: Sequence[torch.Tensor],
    tiles: Sequence[Moved | None],
    make: Callable[[torch.Tensor, Moved], Any] = _descriptor,
) -> tuple[Any, ...]:
    """Each tensor as a descriptor of its tile, which ``make`` makes, or as it is where it has none."""
    return tuple(t if tile is None else make(t, tile) for t, tile in zip(tensors, tiles, strict=True))
