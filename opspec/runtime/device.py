"""Device functions that generated kernels call, where Triton's own would mean something else.

Each is a few lines, so that a reader of a generated kernel can check it; kernels import all of them from here.
"""

from __future__ import annotations

import triton
import triton.language as tl

from opspec.runtime.arithmetic import (  # noqa: F401
    div_fast,
    div_near,
    erf,
    exp,
    floor_div,
    floor_mod,
    inverse,
    one_plus_erf,
    round_even,
    tanh,
)
from opspec.runtime.casting import (  # noqa: F401
    clamp_to,
    even_elements,
    nibble,
    nibbles,
    pack_nibbles,
    to_f8e4m3_nonsat,
    to_f8e4m3_sat,
    to_f8e5m2_nonsat,
    to_f8e5m2_sat,
    to_i4_sat,
    to_i4_wrap,
    to_i8_sat,
    to_i32_sat,
    widened,
)
from opspec.runtime.folding import (  # noqa: F401
    all_before,
    any_before,
    decay_before,
    decayed,
    first_of_lanes,
    first_of_rows,
    is_greatest,
    is_least,
    is_nan,
    lane_places,
    max_before,
    maximum,
    min_before,
    minimum,
    prod_before,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_prod,
    scan_all,
    scan_any,
    scan_decay,
    scan_max,
    scan_min,
    sum_before,
    sum_both,
    unless_full,
)
from opspec.runtime.following import let_next_come, wait_for_earlier  # noqa: F401
from opspec.runtime.groups import (  # noqa: F401
    dot_behind,
    dot_parts,
    eights,
    fetch_ahead,
    lifted_words,
    load_parts,
    lowered,
    mixed,
    quotients_near,
    quotients_spanned,
    sum_parts,
    unpacked_words,
    widen_parts,
    zeros_parts,
)
from opspec.runtime.odd_rows import before_row, in_row, load_row  # noqa: F401
from opspec.runtime.segmented import segment_tile, segment_tiles  # noqa: F401
from opspec.runtime.widening import (  # noqa: F401
    dot_units,
    interleaved,
    minus_halves,
    planes,
    plus_halves,
    times_halves,
    unpacked,
    widen,
    widen_pairs,
)


@triton.jit
def _codes(x, inside):
    """The bits of a block's elements as integers: all of them set where ``inside`` does not hold."""
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    kind: tl.constexpr = tl.uint8 if bits == 8 else tl.uint16 if bits == 16 else tl.int32
    code = x.to(kind, bitcast=True).to(tl.int32)
    if inside is not None:
        code = tl.where(x == x, code, 2 ** (bits - 1) - 1)  # one NaN for all
        code = tl.where(inside, code, 2**bits - 1 if bits < 32 else -1)
    return code


@triton.jit
def _elements(code, dtype: tl.constexpr):
    """What codes stand for in f32, and whether they are inside."""
    bits: tl.constexpr = dtype.primitive_bitwidth
    kind: tl.constexpr = tl.uint8 if bits == 8 else tl.uint16 if bits == 16 else tl.int32
    return code.to(kind).to(dtype, bitcast=True).to(tl.float32), code != (2**bits - 1 if bits < 32 else -1)


@triton.jit
def renewed(x, place):
    """``x`` as it is, by an operation that a compiler must do in every step of a loop at ``place`` (0 or more)."""
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    kind: tl.constexpr = tl.int8 if bits == 8 else tl.int16 if bits == 16 else tl.int32
    nothing = (tl.cast(place, tl.int64) >> 63).to(kind)
    return (x.to(kind, bitcast=True) | nothing).to(x.dtype, bitcast=True)


@triton.jit
def as_loaded(x, place):
    """A tile as it was loaded, to be converted anew: so a long row of 16 bits takes half a register an element.

    One that is short or of f32 stays as it is, and so does what was made of it.
    """
    if x.numel > 16384 and x.dtype.primitive_bitwidth <= 16:
        return renewed(x, place)
    return x


@triton.jit
def any_nan(x):
    """Whether any element of a block is NaN."""
    return tl.max((x != x).to(tl.int32)) > 0


@triton.jit
def dot_inside(a, b, inside_a, inside_b, acc, precision: tl.constexpr, width: tl.constexpr = None):
    """``acc + a @ b`` over the points of a domain that cuts one operand where it cannot cut the other.

    ``a`` is 0 where ``inside_a`` does not hold, ``b`` where ``inside_b`` doesn't (None: it always does). What the
    other operand has there does not count, even infinity and NaN, of which 0 on the matrix unit makes NaN: its
    sum says whether the block has any, and where it does the points are added one at a time (a block whose sum
    overflows takes that way too, and loses time only). ``width``: as ``max_num_imprecise_acc``.
    """
    wild = 0.0
    if inside_a is not None:
        total = tl.sum(b.to(tl.float32))
        wild += total - total
    if inside_b is not None:
        total = tl.sum(a.to(tl.float32))
        wild += total - total
    if wild == 0.0:
        acc = tl.dot(a, b, acc, input_precision=precision, max_num_imprecise_acc=width)
    else:
        # element and condition in one integer: a register each would be more than there are
        columns, rows = _codes(a, inside_a), _codes(b, inside_b)
        at = tl.arange(0, a.shape[1])
        for k in range(a.shape[1]):
            left, in_left = _elements(tl.sum(tl.where((at == k)[None, :], columns, 0), axis=1), a.dtype)
            right, in_right = _elements(tl.sum(tl.where((at == k)[:, None], rows, 0), axis=0), b.dtype)
            part = left[:, None] * right[None, :]
            if inside_a is not None:
                part = tl.where(in_left[:, None], part, 0.0)
            if inside_b is not None:
                part = tl.where(in_right[None, :], part, 0.0)
            acc += part
    return acc


@triton.jit
def grouped(pid, rows, columns, GROUP: tl.constexpr):
    """Tile coordinates of a program, walking ``GROUP`` rows of tiles before the next column.

    Programs that run at the same time then share tiles of both operands in L2.
    """
    width = GROUP * columns
    first = (pid // width) * GROUP
    height = tl.minimum(rows - first, GROUP)
    within = pid % width
    return first + within % height, within // height


@triton.jit
def quotients(first, at, divisor, PARTIAL: tl.constexpr):
    """``at // divisor`` for the places of a tile that begins at ``first``; one number where the tile's extent
    divides the divisor, and so no tile is PARTIAL."""
    if PARTIAL:
        found = at // divisor
    else:
        found = tl.full((1,), first // divisor, at.dtype)
    return found


@triton.jit
def load_once(at, mask, other):
    """``tl.load`` of a tile that may be one column: it is loaded as a vector then.

    In the layout of the tile that it goes into a thread would load it again for each column that it holds.
    """
    if at.shape[1] == 1 and mask.shape[1] == 1:
        rows: tl.constexpr = at.shape[0]
        found = tl.load(at.reshape(rows), mask=mask.reshape(rows), other=other)[:, None]
    else:
        found = tl.load(at, mask=mask, other=other)
    return found


@triton.jit
def load_one(at, mask, other):
    """``tl.load`` of a vector that may be one number for a whole tile, whose first place is inside."""
    if at.shape[0] == 1:
        found = tl.load(at)
    else:
        found = tl.load(at, mask=mask, other=other)
    return found


@triton.jit
def segments(offsets, stride, count, first, last):
    """``begin`` and ``end`` of the segments that hold the places ``first`` to ``last``.

    Segment e holds the places from ``offsets[e]`` up to ``offsets[e + 1]``; the offsets rise. Both ends are
    sought at once, with as many probes a step as lanes: a hundred segments take one step.
    """
    begin = tl.full((), 0, first.dtype)
    end = tl.full((), 0, first.dtype)
    begin_most = tl.cast(count, first.dtype)
    end_most = tl.cast(count, first.dtype)
    while (begin < begin_most) | (end < end_most):
        begin, begin_most = _narrowed(offsets + stride, stride, begin, begin_most, first)
        end, end_most = _narrowed(offsets, stride, end, end_most, last)
    return begin, end


@triton.jit
def _narrowed(offsets, stride, low, most, place):
    """The bounds of how many rising offsets are at most ``place``, after one step: a lane's probe each."""
    step = tl.maximum((most - low + 127) // 128, 1)
    at = low + (tl.arange(0, 128) + 1).to(low.dtype) * step - 1
    before = tl.load(offsets + at * stride, mask=at < most, other=0) <= place
    low += tl.sum(((at < most) & before).to(tl.int32)).to(low.dtype) * step
    return low, tl.minimum(most, low + step - 1)
