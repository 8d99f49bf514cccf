"""Narrowing casts that saturate, wrap or make infinities, and two elements of four bits in a byte."""

from __future__ import annotations

import triton
import triton.language as tl

from opspec.runtime.arithmetic import round_even
from opspec.runtime.folding import maximum, minimum
from opspec.runtime.targets import nvidia, threads


@triton.jit
def widened(x):
    """A float as f32, made anew by each call: what is kept in 16 bits and used several times stays in 16 bits."""
    if nvidia() and x.dtype.primitive_bitwidth == 16 and x.numel >= 2 * threads():
        if x.dtype == tl.bfloat16:  # an instruction each
            return tl.inline_asm_elementwise(
                "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;",
                "=r,=r,r",
                [x],
                dtype=tl.float32,
                is_pure=False,
                pack=2,
            )
        x = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=2)
    return x.to(tl.float32)


@triton.jit
def nibble(code, at):
    """The signed 4-bit integer at an index of an axis whose bytes hold two each, the low nibble first."""
    shift = 28 - 4 * (at % 2).to(tl.int32)
    return (code.to(tl.int32) << shift) >> 28


@triton.jit
def nibbles(codes):
    """The signed 4-bit integers of bytes along the last axis, twice as many, the low one of each first."""
    wide = codes.to(tl.int32)
    return tl.join((wide << 28) >> 28, (wide << 24) >> 28).reshape(codes.shape[:-1] + [2 * codes.shape[-1]])  # noqa: RUF005 - Triton knows no stars


@triton.jit
def even_elements(x):
    """Every other element along the last axis, from the first on."""
    first, _ = tl.split(tl.reshape(x, x.shape[:-1] + [x.shape[-1] // 2, 2]))  # noqa: RUF005 - Triton knows no stars
    return first


@triton.jit
def pack_nibbles(x):
    """Signed 4-bit integers, two in a byte along the last axis, the low nibble first."""
    low, high = tl.split(tl.reshape(x & 15, x.shape[:-1] + [x.shape[-1] // 2, 2]))  # noqa: RUF005 - Triton knows no stars
    return (low | (high << 4)).to(tl.uint8)


@triton.jit
def clamp_to(x, low, high):
    """Clamp to ``[low, high]``; NaN stays NaN."""
    return minimum(maximum(x, low), high)


@triton.jit
def to_i8_sat(x):
    """To i8, rounded to nearest even and saturating; NaN gives 0."""
    x = x.to(tl.float32)
    if nvidia() and x.numel >= 4 * threads():
        return tl.inline_asm_elementwise(
            """
            {
            .reg .b32 a, b, c, d;
            cvt.rni.s32.f32 a, $1;
            cvt.rni.s32.f32 b, $2;
            cvt.rni.s32.f32 c, $3;
            cvt.rni.s32.f32 d, $4;
            cvt.pack.sat.s8.s32.b32 d, d, c, 0;
            cvt.pack.sat.s8.s32.b32 $0, b, a, d;
            }
            """,
            "=r,r,r,r,r",
            [x],
            dtype=tl.int8,
            is_pure=True,
            pack=4,
        )
    kept = tl.where(x != x, 0.0, clamp_to(round_even(x), -128.0, 127.0))
    return kept.to(tl.int8)


@triton.jit
def to_i4_sat(x):
    """f32 (already rounded to an integer) to the range of i4, saturating; NaN gives 0."""
    kept = tl.where(x != x, 0.0, clamp_to(x, -8.0, 7.0))
    return kept.to(tl.int32)


@triton.jit
def to_i4_wrap(x):
    """The low four bits of an integer, as a signed one."""
    return (x.to(tl.int32) << 28) >> 28


@triton.jit
def to_i32_sat(x):
    """f32 to i32, saturating, towards zero; NaN gives 0."""
    kept = tl.where(x != x, 0.0, clamp_to(x, -2147483648.0, 2147483520.0))
    return kept.to(tl.int32)


@triton.jit
def to_f8e4m3_sat(x):
    """f32 to f8e4m3, saturating at ±448, NaN kept."""
    if nvidia():
        return x.to(tl.float32).to(tl.float8e4nv)  # the conversion itself saturates
    return clamp_to(x, -448.0, 448.0).to(tl.float8e4nv)


@triton.jit
def to_f8e4m3_nonsat(x):
    """f32 to f8e4m3, NaN beyond ±464, from where the nearest code would be above 448; no infinity exists."""
    return tl.where(tl.abs(x) > 464.0, float("nan"), x).to(tl.float8e4nv)


@triton.jit
def to_f8e5m2_nonsat(x):
    """f32 to f8e5m2, infinite from ±61440 on (the conversion of the device saturates), NaN kept."""
    code = x.to(tl.float8e5).to(tl.uint8, bitcast=True)
    infinity = tl.where(x < 0, 252, 124).to(tl.uint8)
    return tl.where(tl.abs(x) >= 61440.0, infinity, code).to(tl.float8e5, bitcast=True)


@triton.jit
def to_f8e5m2_sat(x):
    """f32 to f8e5m2, saturating at ±57344, NaN kept."""
    if nvidia():
        return x.to(tl.float32).to(tl.float8e5)  # the conversion itself saturates
    return clamp_to(x, -57344.0, 57344.0).to(tl.float8e5)
