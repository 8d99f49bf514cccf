"""Packed weights in groups with a scale and a zero point each, in few instructions an element.

An element leaves its word above what it is, and one subtraction puts that right together with what is taken from it.
The scale of a group multiplies what the matrix unit made of it, where that has fewer elements than the group.

With one column a product in the unit is small, and warps that wait for theirs leave a multiprocessor idle. There a step
of the sum has ``PARTS``: each warp multiplies one of them, for all rows of the tile, and the results are added behind
the stream. Each part lies in one group where ``SPANS`` says so.

Such a product has every eight neighbours of a sum in one lane. So this unpacks words of its own, where one shift and one
mask make two elements, four places from one another: in parts the places of every eight stand in the order of ``eights``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from opspec.runtime.targets import INTERPRETED
from opspec.runtime.widening import minus_halves, times_halves, unpacked, widen, widen_pairs


@triton.constexpr_function
def _lift(to: tl.dtype) -> str:
    """PTX: the byte of the word $2 that $3 picks, as two numbers above what they are.

    The nibbles with their sign bits flipped stand behind the exponent of 64 (bf16, where the second place of the mantissa
    is 1) or of 1024 (f16, the first); one multiplication brings both there.
    """
    places, magic = ("0x001e001e", "0x42904290") if to == tl.bfloat16 else ("0x000f000f", "0x64086408")
    both = "0x2002" if to == tl.bfloat16 else "0x1001"
    return f"""{{
        .reg .b32 both, magic;
        mov.b32 magic, {magic};
        prmt.b32 both, $2, 0, $3;
        mul.lo.u32 both, both, {both};
        lop3.b32 both, both, {places}, magic, 0x6a;
        mov.b32 {{$0, $1}}, both;
    }}"""


@triton.constexpr_function
def _lifted_by(to: tl.dtype) -> int:
    """By how much ``lifted_words`` leaves elements above what they are."""
    return 72 if to == tl.bfloat16 else 1032


@triton.constexpr_function
def _lift_word(to: tl.dtype) -> str:
    """PTX: the word $8 as eight numbers above what they are, in the order of ``eights``: two by two, as each shift
    brings them to the place that ``_lift`` gives them."""
    places, magic = ("0x001e001e", "0x42904290") if to == tl.bfloat16 else ("0x000f000f", "0x64086408")
    first = -1 if to == tl.bfloat16 else 0
    text = f".reg .b32 both, magic; mov.b32 magic, {magic};"
    for pair in range(4):
        shift = first + 4 * pair
        text += f"""
            {"shl.b32" if shift < 0 else "shr.u32"} both, $8, {abs(shift)};
            lop3.b32 both, both, {places}, magic, 0x6a;
            mov.b32 {{${2 * pair}, ${2 * pair + 1}}}, both;
        """
    return "{" + text + "}"


@triton.jit
def eights(SIZE: tl.constexpr, PARTS: tl.constexpr):
    """The places of a step: in parts 0, 4, 1, 5, 2, 6, 3, 7 of every eight, else in order."""
    at = tl.arange(0, SIZE)
    if PARTS > 1:
        at = at // 8 * 8 + at % 2 * 4 + at % 8 // 2
    return at


@triton.jit
def mixed(x, AXIS: tl.constexpr, PARTS: tl.constexpr):
    """A tile whose places along AXIS, of a step, stand in the order of ``eights``."""
    if PARTS == 1:
        made = x
    elif AXIS == 0:
        made = (
            x.reshape(x.shape[0] // 8, 2, 4, x.shape[1]).permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[1])
        )
    else:
        made = (
            x.reshape(x.shape[0], x.shape[1] // 8, 2, 4).permute(0, 1, 3, 2).reshape(x.shape[0], x.shape[1])
        )
    return made


@triton.jit
def _whole_words(words, TO: tl.constexpr):
    """``lifted_words`` in parts: a lane has its words for itself."""
    text: tl.constexpr = _lift_word(TO)
    if tl.bfloat16 == TO:
        a, e, b, f, c, g, d, h = tl.inline_asm_elementwise(
            text, "=h,=h,=h,=h,=h,=h,=h,=h,r", [words], dtype=(tl.bfloat16,) * 8, is_pure=True, pack=1
        )
    else:
        a, e, b, f, c, g, d, h = tl.inline_asm_elementwise(
            text, "=h,=h,=h,=h,=h,=h,=h,=h,r", [words], dtype=(tl.float16,) * 8, is_pure=True, pack=1
        )
    # the last dimension to be joined is the fastest
    left, right = tl.join(tl.join(a, c), tl.join(b, d)), tl.join(tl.join(e, g), tl.join(f, h))
    return tl.join(left, right).reshape(words.shape[0], 8 * words.shape[1])


@triton.jit
def lifted_words(words, TO: tl.constexpr, PARTS: tl.constexpr):
    """``unpacked`` words, each element above what it is by as much as ``lowered`` takes off."""
    LIFT: tl.constexpr = _lifted_by(TO)
    if INTERPRETED:
        wide = mixed(unpacked(words, TO) + LIFT, 1, PARTS)
    elif PARTS > 1:
        wide = _whole_words(words, TO)
    else:
        shape: tl.constexpr = [words.shape[0], words.shape[1], 4]
        picks = tl.broadcast_to((0x4440 + tl.arange(0, 4))[None, None, :], shape)
        shared = tl.broadcast_to(words[:, :, None], shape)
        text: tl.constexpr = _lift(TO)
        if tl.bfloat16 == TO:
            low, high = tl.inline_asm_elementwise(
                text, "=h,=h,r,r", [shared, picks], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=1
            )
        else:
            low, high = tl.inline_asm_elementwise(
                text, "=h,=h,r,r", [shared, picks], dtype=(tl.float16, tl.float16), is_pure=True, pack=1
            )
        wide = tl.join(low, high).reshape(words.shape[0], 8 * words.shape[1])
    return wide


@triton.jit
def unpacked_words(words, TO: tl.constexpr, PARTS: tl.constexpr):
    """``unpacked`` words, in parts in the order of ``eights``."""
    if PARTS == 1:
        wide = unpacked(words, TO)
    else:
        LIFT: tl.constexpr = _lifted_by(TO)
        wide = minus_halves(lifted_words(words, TO, PARTS), tl.full((1, 1), LIFT, TO))
    return wide


@triton.jit
def _lifted(x, TO: tl.constexpr):
    """Whole numbers in 16 bits, above what they are by as much as ``lifted_words`` leaves elements."""
    LIFT: tl.constexpr = _lifted_by(TO)
    return (x.to(tl.float32) + LIFT).to(TO)


@triton.jit
def quotients_spanned(first, at, divisor, SPANS: tl.constexpr, PARTS: tl.constexpr):
    """``at // divisor`` for the places of a tile that begins at ``first``: one number for each of its parts where a
    part lies in a group (SPANS 0), without a division by what a kernel is given where it is one (2)."""
    PLACES: tl.constexpr = at.shape[0] // PARTS
    if SPANS == 1:
        found = at // divisor
    elif SPANS == 2:
        found = (tl.arange(0, PARTS) + first // PLACES).to(at.dtype)
    else:
        found = ((tl.arange(0, PARTS) * PLACES + first) // divisor).to(at.dtype)
    return found


@triton.jit
def quotients_near(first, at, divisor):
    """``at // divisor`` for the places of a tile that begins at ``first``: one division, and what is left of each place
    is divided in f32, exactly since it is small, or compared where the divisor is no less than the tile."""
    whole = first // divisor
    rest = at - whole * divisor
    near = ((rest.to(tl.float32) + 0.5) * (1.0 / tl.cast(divisor, tl.float32))).to(at.dtype)
    return whole + tl.where(divisor < at.shape[0], near, (rest >= divisor).to(at.dtype))


@triton.jit
def _spread(x, PLACES: tl.constexpr):
    """A tile whose columns are parts, with PLACES columns; one column or all of them stay."""
    if x.shape[1] == 1 or x.shape[1] == PLACES:
        wide = x
    else:
        EACH: tl.constexpr = PLACES // x.shape[1]
        wide = tl.broadcast_to(x[:, :, None], (x.shape[0], x.shape[1], EACH)).reshape(x.shape[0], PLACES)
    return wide


@triton.jit
def load_parts(at, mask, other):
    """``tl.load`` of a tile with a column for each part of a step, or for each place: one column is loaded as a
    vector, since in the layout of the tile that it goes into a thread would load it for each column that it holds."""
    if at.shape[1] == 1 and mask.shape[1] == 1:
        rows: tl.constexpr = at.shape[0]
        found = tl.load(at.reshape(rows), mask=mask.reshape(rows), other=other)[:, None]
    elif mask.shape[1] == 1:
        found = tl.load(at, mask=mask, other=other)
    else:
        found = tl.load(_spread(at, mask.shape[1]), mask=mask, other=other)
    return found


@triton.jit
def fetch_ahead(at, mask):
    """Brings what is loaded later into the caches, where ``mask`` holds."""
    if not INTERPRETED:
        tl.inline_asm_elementwise(
            "{ .reg .pred inside; setp.ne.s32 inside, $2, 0; @inside prefetch.global.L1 [$1]; mov.b32 $0, 0; }",
            "=r,l,r",
            [at, mask.to(tl.int32)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def lowered(words, x):
    """``lifted_words`` less whole numbers, one for each element, part or row."""
    return minus_halves(words, _spread(_lifted(x, words.dtype), words.shape[1]))


@triton.jit
def _parts_of(x, PARTS: tl.constexpr, AXIS: tl.constexpr):
    """An operand of a product, its summed axis in parts that come first."""
    if AXIS == 1:
        parts = x.reshape(x.shape[0], PARTS, x.shape[1] // PARTS).permute(1, 0, 2)
    else:
        parts = x.reshape(PARTS, x.shape[0] // PARTS, x.shape[1])
    return parts


@triton.jit
def dot_behind(a, factor, b, acc, PARTS: tl.constexpr):
    """``acc`` and the product of ``a``, scaled by ``factor``, and ``b``; in parts where ``acc`` has them.

    A factor with one column a part scales the product where that has no more elements than ``a`` has pairs.
    """
    if PARTS == 1:
        if factor.shape[1] == 1 and 2 * b.shape[1] <= a.shape[1]:
            total = acc + tl.dot(a, b) * factor
        else:
            total = tl.dot(times_halves(a, factor.to(a.dtype)), b, acc)
    elif factor.shape[1] == PARTS:
        product = tl.dot(_parts_of(a, PARTS, 1), _parts_of(b, PARTS, 0))
        total = acc + product * tl.trans(factor)[:, :, None]
    else:
        scaled = times_halves(a, _spread(factor.to(a.dtype), a.shape[1]))
        total = tl.dot(_parts_of(scaled, PARTS, 1), _parts_of(b, PARTS, 0), acc)
    return total


@triton.jit
def dot_parts(a, b, acc, PARTS: tl.constexpr):
    """``acc`` and the product of ``a`` and ``b``; in parts where ``acc`` has them."""
    if PARTS == 1:
        total = tl.dot(a, b, acc)
    else:
        total = tl.dot(_parts_of(a, PARTS, 1), _parts_of(b, PARTS, 0), acc)
    return total


@triton.jit
def widen_parts(x, TO: tl.constexpr, PARTS: tl.constexpr):
    """``x`` in 16 bits, as many bytes at a time as a lane has neighbours."""
    return widen_pairs(x, TO) if PARTS == 1 else widen(x, TO)


@triton.jit
def zeros_parts(ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    """What a product begins with, for each part where there are several."""
    if PARTS == 1:
        zeros = tl.zeros((ROWS, COLUMNS), tl.float32)
    else:
        zeros = tl.zeros((PARTS, ROWS, COLUMNS), tl.float32)
    return zeros


@triton.jit
def sum_parts(x, PARTS: tl.constexpr):
    """What all parts of a product are together."""
    return x if PARTS == 1 else tl.sum(x, axis=0)


__all__ = [
    "dot_behind",
    "dot_parts",
    "eights",
    "fetch_ahead",
    "lifted_words",
    "load_parts",
    "lowered",
    "mixed",
    "quotients_spanned",
    "sum_parts",
    "unpacked_words",
    "widen_parts",
    "zeros_parts",
]
