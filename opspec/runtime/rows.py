"""The kernel that copies rows of several tensors, so that they begin at aligned addresses."""

from __future__ import annotations

import triton
import triton.language as tl

SLOTS = 4  # tensors that one launch copies
SIZES = ("PROGRAMS", "E1", "E2", "E3", "LAST", "UNITS", "s0", "s1", "s2", "s3")


@triton.jit(do_not_specialize=[f"{name}_{slot}" for slot in range(SLOTS) for name in SIZES])
def copy_rows(
    x_0_ptr, y_0_ptr, PROGRAMS_0, E1_0, E2_0, E3_0, LAST_0, UNITS_0, s0_0, s1_0, s2_0, s3_0,
    x_1_ptr, y_1_ptr, PROGRAMS_1, E1_1, E2_1, E3_1, LAST_1, UNITS_1, s0_1, s1_1, s2_1, s3_1,
    x_2_ptr, y_2_ptr, PROGRAMS_2, E1_2, E2_2, E3_2, LAST_2, UNITS_2, s0_2, s1_2, s2_2, s3_2,
    x_3_ptr, y_3_ptr, PROGRAMS_3, E1_3, E2_3, E3_3, LAST_3, UNITS_3, s0_3, s1_3, s2_3, s3_3,
    MANY: tl.constexpr, AXES: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Rows of MANY tensors: PROGRAMS_0 programs copy those of the first, the next PROGRAMS_1 those of the second.

    The other slots are empty. A slot: the tensor, its copy, programs, extents of the leading axes but the first,
    elements of a row, its units of 16 bytes in the copy, and strides of the leading axes, of which AXES are used.
    """
    pid = tl.program_id(0)
    if MANY == 1 or pid < PROGRAMS_0:
        _copy(pid, x_0_ptr, y_0_ptr, E1_0, E2_0, E3_0, LAST_0, UNITS_0, s0_0, s1_0, s2_0, s3_0, AXES, BLOCK, INDEX)  # fmt: skip
    if MANY > 1:
        pid -= PROGRAMS_0
        if (pid >= 0) & (pid < PROGRAMS_1):
            _copy(pid, x_1_ptr, y_1_ptr, E1_1, E2_1, E3_1, LAST_1, UNITS_1, s0_1, s1_1, s2_1, s3_1, AXES, BLOCK, INDEX)  # fmt: skip
    if MANY > 2:
        pid -= PROGRAMS_1
        if (pid >= 0) & (pid < PROGRAMS_2):
            _copy(pid, x_2_ptr, y_2_ptr, E1_2, E2_2, E3_2, LAST_2, UNITS_2, s0_2, s1_2, s2_2, s3_2, AXES, BLOCK, INDEX)  # fmt: skip
    if MANY > 3:
        pid -= PROGRAMS_2
        if (pid >= 0) & (pid < PROGRAMS_3):
            _copy(pid, x_3_ptr, y_3_ptr, E1_3, E2_3, E3_3, LAST_3, UNITS_3, s0_3, s1_3, s2_3, s3_3, AXES, BLOCK, INDEX)  # fmt: skip


@triton.jit
def _copy(
    pid, x_ptr, y_ptr, E1, E2, E3, LAST, UNITS, s0, s1, s2, s3,
    AXES: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """A block of a row of LAST elements into one of so many UNITS of 16 bytes; 0 behind LAST."""
    unit: tl.constexpr = 128 // x_ptr.dtype.element_ty.primitive_bitwidth
    width = UNITS * unit
    blocks = tl.cdiv(width, BLOCK)
    row = (pid // blocks).to(INDEX)
    column = (pid % blocks) * BLOCK + tl.arange(0, BLOCK)
    if AXES == 1:
        at = row * s3
    else:
        at = row % E3 * s3 + row // E3 % E2 * s2
        at += row // E3 // E2 % E1 * s1 + row // E3 // E2 // E1 * s0
    x = tl.load(x_ptr + at + column, mask=column < LAST, other=0.0)
    tl.store(y_ptr + row * width + column, x, mask=column < width)
