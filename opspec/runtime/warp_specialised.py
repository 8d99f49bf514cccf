"""Pieces of kernels whose warps have roles: one brings tiles ahead of two groups of four that multiply them.

Triton's own pipeline lets every warp load, wait and multiply in step, so that a matrix unit rests while sums are
folded or stored. Here each group of four warps goes at its own pace through a ring of slots in shared memory: while
one folds, the other multiplies. A slot is ``filled`` once its tiles have arrived, and ``free`` once both groups
have read them. Written in Gluon, Triton's language of layouts and barriers, for devices of capability 9.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from opspec.runtime import launch

__all__ = ["GluonASTSource"]  # what compiles such a kernel for a device that isn't there

# Releases behind 3.6 gave these their present names.
_bring = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared
_put = tma.async_store if hasattr(tma, "async_store") else tma.async_copy_shared_to_global
_multiply, _await_products = hopper.warpgroup_mma, hopper.warpgroup_mma_wait

ELEMENTS = {
    torch.bfloat16: gl.bfloat16, torch.float16: gl.float16, torch.float32: gl.float32,
    torch.float8_e4m3fn: gl.float8e4nv, torch.float8_e5m2: gl.float8e5,
}  # fmt: skip


@gluon.constexpr_function
def accumulator(columns, bits):
    """The layout of a result of 64 rows in a group of four warps, of operands with so many bits."""
    return gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, columns, 256 // bits]
    )


@gluon.jit
def slots(desc, STAGES: gl.constexpr):
    """Shared memory for so many tiles of a descriptor."""
    shape: gl.constexpr = [STAGES] + desc.block_type.shape  # noqa: RUF005 - Triton takes no starred list
    return gl.allocate_shared_memory(desc.dtype, shape, desc.layout)


@gluon.jit
def barriers(STAGES: gl.constexpr):
    """For each slot what says that it is filled, and what says that it is free."""
    filled = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(STAGES):
        mbarrier.init(filled.index(k), count=1)
        mbarrier.init(free.index(k), count=2)
    return filled, free


@gluon.jit
def following(slot, phase, STAGES: gl.constexpr):
    """The next slot of the ring, and which of its turns it is."""
    slot += 1
    around = slot == STAGES
    return gl.where(around, 0, slot), phase ^ around.to(gl.int32)


@gluon.jit
def await_free(free, filled, slot, phase, BYTES: gl.constexpr):
    """Wait until both groups have read a slot, and announce what fills it."""
    mbarrier.wait(free.index(slot), phase)
    mbarrier.expect(filled.index(slot), BYTES)


@gluon.jit
def bring(desc, at, filled, slot, tiles):
    """Start to copy a tile into a slot; what lies outside the tensor is 0."""
    _bring(desc, at, filled.index(slot), tiles.index(slot))


@gluon.jit
def await_filled(filled, slot, phase):
    """Wait until the tiles of a slot have arrived."""
    mbarrier.wait(filled.index(slot), phase)


@gluon.jit
def give_back(free, slot):
    """Say that this group has read a slot."""
    mbarrier.arrive(free.index(slot), count=1)


@gluon.jit
def give_back_before(free, slot, known, STAGES: gl.constexpr):
    """Say that this group has read the slot before this one, if it is ``known`` that there was one."""
    mbarrier.arrive(free.index(gl.where(slot == 0, STAGES, slot) - 1), count=1, pred=known)


@gluon.jit
def add_product(rows, columns, sums):
    """Start to add the product of two tiles in shared memory to what is summed."""
    return _multiply(rows, columns, sums, is_async=True)


@gluon.jit
def product(rows, columns, before, never):
    """Start the product of two tiles in shared memory alone, in the registers of one ``before``, which was read.

    ``never`` is false, which the compiler must not know: it would give this product registers of its own.
    """
    return _multiply(rows, columns, before, use_acc=never, is_async=True)


@gluon.jit
def rows_operand(value, RESULT: gl.constexpr):
    """Computed rows as the matrix unit takes them from registers."""
    return gl.convert_layout(value, gl.DotOperandLayout(0, RESULT, 2))


@gluon.jit
def packed(rows):
    """Rows of 16 bits, two to a register: what goes from one loop to the next the compiler takes apart otherwise."""
    return gl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [rows], dtype=rows.dtype, is_pure=True, pack=2
    )


@gluon.jit
def rows_of(value, RESULT: gl.constexpr):
    """A value for each row, where the rows of a result lie."""
    return gl.convert_layout(value, gl.SliceLayout(1, RESULT))


@gluon.jit
def wide(value, INDEX: gl.constexpr):
    """A number in the width in which addresses are formed."""
    return tl.cast(value, INDEX)


@gluon.jit
def mark(marks, value, inside):
    """Say for each row whether any of its elements is NaN (or some are infinities of both signs)."""
    total = gl.sum(value, axis=1)
    tl.store(marks, ((total != total) & inside).to(tl.int32))


@gluon.jit
def now(value):
    """A value that is computed here: left to the compiler, it waits for registers beside the next product's."""
    return gl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [value], dtype=gl.float32, is_pure=False, pack=1
    )


@gluon.jit
def finished(value):
    """A product once it is there."""
    return _await_products(0, deps=[value])


@gluon.jit
def all_but(values, LATER: gl.constexpr):
    """Products, all of which but the ``LATER`` that were started last are there."""
    if len(values) == 1:
        found = (_await_products(LATER, deps=[values[0]]),)
    else:
        found = _await_products(LATER, deps=values)
    return found


@gluon.jit
def quotient_of(first, at, divisor):
    """``first // divisor`` as one number for all places ``at`` of a tile, which lies in one group of the divisor."""
    return gl.full([1], first // divisor, at.dtype, layout=at.type.layout)


@gluon.jit
def put_tile(desc, at, value, place):
    """Store a tile of a result by way of its ``place`` in shared memory, once what was there has gone."""
    tma.store_wait(0)
    place.store(value.to(desc.dtype))
    fence_async_shared()
    _put(desc, at, place)


@gluon.jit
def put_all():
    """Wait until the last tile has left shared memory."""
    tma.store_wait(0)


def possible(device: torch.device) -> bool:
    """Whether a device multiplies as this module says: NVIDIA's capability 9.0, and the CPU where it is interpreted."""
    return INTERPRETED if device.type == "cpu" else launch.capability(device) == (9, 0)


def storable(*results: torch.Tensor) -> bool:
    """Whether tiles of all results can be stored through descriptors, on a device that has such kernels."""
    return launch.movable(*results) and possible(results[0].device)


def in_halves(*operands: torch.Tensor) -> bool:
    """Whether all operands have 16 bits."""
    return all(t.element_size() == 2 for t in operands)


Tile = tuple[int, int, int, int]
INTERPRETED = False  # whether kernels of this kind run on the CPU, as ``verify`` does
ALWAYS = False  # whether they are taken whatever the shape, as ``verify`` does in turns
STEPS = 16
REGISTERS = 200  # of a thread that multiplies, but for what no block takes
AGAIN = 64  # rows and columns of a tile for which bringing operands takes as long as multiplying them


def pick_tile(
    tiles: Sequence[Tile], rows: int, columns: int, depth: int, batch: int = 1, multiprocessors: int = 132
) -> Tile | None:
    """The tile (rows, columns, depth, slots) whose programs end first, or None where Triton's own pipeline is faster.

    That is where no tile fills a device, and where a sum of ``depth`` takes few steps, behind which both groups end at
    once. Each multiprocessor takes one tile after the other; the last round may be a part of one. Of two tiles
    that end together the one that brings less is taken.
    """

    def time(tile: Tile) -> float:
        rounds = triton.cdiv(count(tile), multiprocessors)
        return float(rounds * tile[0] * tile[1] * (1 + AGAIN * (1 / tile[0] + 1 / tile[1])))

    def count(tile: Tile) -> int:
        return int(triton.cdiv(rows, tile[0]) * triton.cdiv(columns, tile[1]) * batch)

    filling = [
        t for t in tiles if ALWAYS or (launch.fills(count(t), multiprocessors) and depth >= STEPS * t[2])
    ]
    return min(filling, key=time, default=None)


CHUNKS = (128, 64)  # places of a stream that a step takes
LONG = 1024  # places of a stream from which a chain pays: few steps leave the ends of a tile uncovered
SHARED = 232448 - 1024  # bytes of a multiprocessor, but for barriers


def pick_chain(
    rows: int,
    stream: int,
    deep: int,
    wide: int,
    batch: int = 1,
    *,
    leaving: int = 2,
    live: int = 1,
    multiprocessors: int = 132,
) -> tuple[int, int, int] | None:
    """Rows, places of the stream and slots of a chain of two products, or None where Triton's own pipeline is taken.

    ``deep``: what the first product sums over; ``wide``: columns of the second; both are held whole, in 16 bits.
    ``leaving``: bytes that each element of a result has in shared memory on its way out. Two groups have 64 rows each,
    and a thread has its part of ``live`` blocks of a step in f32, of two in 16 bits (what is multiplied, and what comes
    next), and of the sum.
    """
    pays = rows > 64 and launch.fills(triton.cdiv(rows, 128) * batch, multiprocessors) and stream >= LONG
    if max(deep, wide) > 256 or not (ALWAYS or pays):
        return None
    for chunk in CHUNKS:
        slots = (SHARED - 128 * (2 * deep + leaving * wide)) // (2 * chunk * (deep + wide))
        if chunk // 2 * live + chunk // 2 + wide // 2 <= REGISTERS and slots >= 2:
            return 128, chunk, int(min(slots, 4))
    return None


def layout_of(block: Sequence[int], dtype: torch.dtype) -> Any:
    """How a tile lies in shared memory."""
    return gl.NVMMASharedLayout.get_default_for(list(block), ELEMENTS[dtype])


def describe(
    tensors: Sequence[torch.Tensor], tiles: Sequence[launch.Moved | None]
) -> tuple[torch.Tensor | TensorDescriptor, ...]:
    """As ``launch.describe``, with the layout of a kernel in Gluon where one takes it."""
    if tensors[0].device.type == "cpu":
        return launch.describe(tensors, tiles)
    return launch.describe(tensors, tiles, _descriptor)


def _descriptor(tensor: torch.Tensor, tile: launch.Moved) -> TensorDescriptor:
    moved, block = launch.arranged(tensor, tile)
    layout = layout_of(block, tensor.dtype)
    made = TensorDescriptor(moved, list(moved.shape), list(moved.stride()), list(block), layout)
    made.source = tensor  # what a call knows it by
    return made
