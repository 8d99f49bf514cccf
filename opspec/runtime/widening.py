"""Bytes widened to 16 bits where a matrix unit multiplies them by 16-bit values.

A matrix unit takes its operands from registers in an order that has two elements of 16 bits in each. These
functions widen two or four bytes of a register at once, with instructions of NVIDIA devices of capability
8.9 or more; Triton's interpreter takes plain conversions instead. All of them are exact, denormals and NaN
included.

Elements of a byte whose neighbours along memory belong to different columns can't be turned into that order
as they are: the instruction that does it moves 16 bits. So they are moved two together, as one unit of 16
bits, and ``planes`` puts what was even along memory in front of what was odd.
"""

from __future__ import annotations

import triton
import triton.language as tl

from opspec.runtime.targets import INTERPRETED


@triton.constexpr_function
def _scope(text: str) -> str:
    """PTX with the registers that it uses."""
    return f"""{{
        .reg .b16 front, back, even, odd;
        .reg .b32 pair, bytes, wide, less;
        .reg .f32 low, high;
        {text}
    }}"""


@triton.constexpr_function
def _pair(kind: tl.dtype, to: tl.dtype, half: str, out: str, selector: str) -> str:
    """PTX that widens the two bytes in ``half`` (f8), or those that ``selector`` picks from ``bytes`` (i8)."""
    if kind == tl.int8 and to == tl.bfloat16:
        # the low seven bits stand behind the exponent of 128; 128 leaves them positive, 256 negates them
        return f"""
            prmt.b32 wide, bytes, 0, {selector};
            lop3.b32 less, wide, 0x00800080, 0x43004300, 0xea;
            lop3.b32 wide, wide, 0x007f007f, 0x43004300, 0xea;
            sub.rn.bf16x2 {out}, wide, less;
        """
    if kind == tl.int8:
        # with its sign bit flipped a byte stands behind the exponent of 1024, 1152 too much
        return f"""
            prmt.b32 wide, bytes, 0, {selector};
            xor.b32 wide, wide, 0x64806480;
            mov.b32 less, 0x64806480;
            sub.rn.f16x2 {out}, wide, less;
        """
    name = "e4m3x2" if kind == tl.float8e4nv else "e5m2x2"
    if to == tl.float16:
        return f"cvt.rn.f16x2.{name} {out}, {half};"
    return f"""
        cvt.rn.f16x2.{name} pair, {half};
        mov.b32 {{even, odd}}, pair;
        cvt.f32.f16 low, even;
        cvt.f32.f16 high, odd;
        cvt.rn.bf16x2.f32 {out}, high, low;
    """


@triton.constexpr_function
def _four(kind: tl.dtype, to: tl.dtype) -> str:
    """PTX: four bytes of $2 to two registers, in order."""
    first = _pair(kind, to, "front", "$0", "0x4140")
    second = _pair(kind, to, "back", "$1", "0x4342")
    text: str = _scope(f"mov.b32 bytes, $2; mov.b32 {{front, back}}, bytes; {first} {second}")
    return text


@triton.constexpr_function
def _two(kind: tl.dtype, to: tl.dtype) -> str:
    """PTX: two bytes of $1 to one register."""
    one = _pair(kind, to, "front", "$0", "0x4140")
    text: str = _scope(f"mov.b16 front, $1; cvt.u32.u16 bytes, front; {one}")
    return text


@triton.constexpr_function
def _planes(kind: tl.dtype, to: tl.dtype) -> str:
    """PTX: two units of $2 to the register of their first bytes and that of their second ones."""
    even = _pair(kind, to, "front", "$0", "0x4140")
    odd = _pair(kind, to, "back", "$1", "0x4342")
    apart = "prmt.b32 bytes, $2, 0, 0x3120;"
    text: str = _scope(f"{apart} mov.b32 {{front, back}}, bytes; {even} {odd}")
    return text


@triton.jit
def widen(x, TO: tl.constexpr):
    """The same values in 16 bits, four at a time: for an operand whose bytes lie along the summed index."""
    if INTERPRETED:
        return x.to(TO)
    text: tl.constexpr = _four(x.dtype, TO)
    if tl.bfloat16 == TO:  # the type must be written out
        wide = tl.inline_asm_elementwise(text, "=r,=r,r", [x], dtype=tl.bfloat16, is_pure=True, pack=4)
    else:
        wide = tl.inline_asm_elementwise(text, "=r,=r,r", [x], dtype=tl.float16, is_pure=True, pack=4)
    return wide


@triton.jit
def widen_pairs(x, TO: tl.constexpr):
    """The same values in 16 bits, two at a time: for an operand that a matrix unit takes from registers in pairs."""
    if INTERPRETED:
        return x.to(TO)
    text: tl.constexpr = _two(x.dtype, TO)
    if tl.bfloat16 == TO:
        wide = tl.inline_asm_elementwise(text, "=r,h", [x], dtype=tl.bfloat16, is_pure=True, pack=2)
    else:
        wide = tl.inline_asm_elementwise(text, "=r,h", [x], dtype=tl.float16, is_pure=True, pack=2)
    return wide


@triton.jit
def interleaved(SIZE: tl.constexpr):
    """0, 2, 4, …, 1, 3, 5, …: where along memory the places of a tile are that ``planes`` has put in order."""
    at = tl.arange(0, SIZE)
    return at % (SIZE // 2) * 2 + at // (SIZE // 2)


@triton.jit
def _even_odd(x, FROM: tl.constexpr, TO: tl.constexpr):
    """The first and the second values in 16 bits of units of two bytes of type FROM."""
    if INTERPRETED:
        even = (x & 255).to(tl.uint8).to(FROM, bitcast=True).to(TO)
        odd = (x >> 8 & 255).to(tl.uint8).to(FROM, bitcast=True).to(TO)
    else:
        text: tl.constexpr = _planes(FROM, TO)
        if tl.bfloat16 == TO:
            even, odd = tl.inline_asm_elementwise(
                text, "=r,=r,r", [x], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=2
            )
        else:
            even, odd = tl.inline_asm_elementwise(
                text, "=r,=r,r", [x], dtype=(tl.float16, tl.float16), is_pure=True, pack=2
            )
    return even, odd


@triton.jit
def planes(x, FROM: tl.constexpr, TO: tl.constexpr, AXIS: tl.constexpr):
    """Values in 16 bits from units of two bytes of type FROM along AXIS, twice as many, ``interleaved`` there."""
    even, odd = _even_odd(x, FROM, TO)
    both = tl.join(even, odd)
    if AXIS == 0:
        wide = both.permute(2, 0, 1).reshape(2 * x.shape[0], x.shape[1])
    else:
        wide = both.permute(0, 2, 1).reshape(x.shape[0], 2 * x.shape[1])
    return wide


@triton.jit
def _halves(x):
    """The left and the right half of the columns of a block."""
    return tl.split(x.reshape(x.shape[0], 2, x.shape[1] // 2).permute(0, 2, 1))


@triton.jit
def dot_units(a, b, FROM: tl.constexpr, TO: tl.constexpr, AXIS: tl.constexpr, acc=None):
    """``a`` times values that ``b`` holds in units of two bytes along AXIS: the summed index (0) or columns (1).

    Along the summed index ``a`` is ``interleaved``, along the columns the product is. With few rows this is two
    products and not one of ``planes``: for joined operands Triton would give up the unit's own order of loads.
    """
    if a.shape[0] >= 64:
        if acc is None:
            product = tl.dot(a, planes(b, FROM, TO, AXIS))
        else:
            product = tl.dot(a, planes(b, FROM, TO, AXIS), acc)
    elif AXIS == 0:
        even, odd = _even_odd(b, FROM, TO)
        left, right = _halves(a)
        if acc is None:
            part = tl.dot(left, even)
        else:
            part = tl.dot(left, even, acc)
        product = tl.dot(right, odd, part)
    else:
        even, odd = _even_odd(b, FROM, TO)
        if acc is None:
            both = tl.join(tl.dot(a, even), tl.dot(a, odd))
        else:
            left, right = _halves(acc)
            both = tl.join(tl.dot(a, even, left), tl.dot(a, odd, right))
        product = both.permute(0, 2, 1).reshape(a.shape[0], 2 * b.shape[1])
    return product


@triton.constexpr_function
def _unpack(to: tl.dtype) -> str:
    """PTX: the byte of the word $2 that $3 picks, as two numbers.

    A nibble with its sign bit flipped stands in the mantissa of a number whose last place is 1.
    """
    magic, kind = ("0x43084308", "bf16x2") if to == tl.bfloat16 else ("0x64086408", "f16x2")
    return f"""{{
        .reg .b32 high, both, magic;
        mov.b32 magic, {magic};
        shr.u32 high, $2, 4;
        prmt.b32 both, $2, high, $3;
        lop3.b32 both, both, 0x000f000f, magic, 0x6a;
        sub.rn.{kind} both, both, magic;
        mov.b32 {{$0, $1}}, both;
    }}"""


@triton.jit
def unpacked(words, TO: tl.constexpr):
    """The signed 4-bit integers of words of eight along the last axis, the low one of each first, in 16 bits.

    A matrix unit gives each lane two neighbours of every eight along the summed index. So four lanes take the
    same word, each the byte that is its own: no element changes its lane, and none its order.
    """
    if INTERPRETED:
        shifts = tl.arange(0, 8) * 4
        codes = (words[:, :, None] >> shifts[None, None, :]) & 15
        wide = ((codes ^ 8) - 8).to(TO).reshape(words.shape[0], 8 * words.shape[1])
    else:
        shape: tl.constexpr = [words.shape[0], words.shape[1], 4]
        picks = tl.broadcast_to((0x4400 + tl.arange(0, 4) * 0x1111)[None, None, :], shape)
        shared = tl.broadcast_to(words[:, :, None], shape)
        text: tl.constexpr = _unpack(TO)
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


@triton.constexpr_function
def _halves_ptx(op: str, to: tl.dtype) -> str:
    """PTX: one operation on two pairs of 16-bit numbers."""
    return f"{op}.rn.{'bf16x2' if to == tl.bfloat16 else 'f16x2'} $0, $1, $2;"


@triton.jit
def _halves_of(a, b, OP: tl.constexpr):
    """An operation on 16-bit numbers of one type, two at a time."""
    text: tl.constexpr = _halves_ptx(OP, a.dtype)
    if a.dtype == tl.bfloat16:
        made = tl.inline_asm_elementwise(text, "=r,r,r", [a, b], dtype=tl.bfloat16, is_pure=True, pack=2)
    else:
        made = tl.inline_asm_elementwise(text, "=r,r,r", [a, b], dtype=tl.float16, is_pure=True, pack=2)
    return made


@triton.jit
def times_halves(a, b):
    """``a * b`` of 16-bit numbers, rounded once."""
    return (a.to(tl.float32) * b.to(tl.float32)).to(a.dtype) if INTERPRETED else _halves_of(a, b, "mul")


@triton.jit
def plus_halves(a, b):
    """``a + b`` of 16-bit numbers, rounded once."""
    return (a.to(tl.float32) + b.to(tl.float32)).to(a.dtype) if INTERPRETED else _halves_of(a, b, "add")


@triton.jit
def minus_halves(a, b):
    """``a - b`` of 16-bit numbers, rounded once."""
    return (a.to(tl.float32) - b.to(tl.float32)).to(a.dtype) if INTERPRETED else _halves_of(a, b, "sub")


__all__ = [
    "INTERPRETED",
    "dot_units",
    "interleaved",
    "minus_halves",
    "planes",
    "plus_halves",
    "times_halves",
    "unpacked",
    "widen",
    "widen_pairs",
]
