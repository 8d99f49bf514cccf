"""Device functions that generated kernels call, where Triton's own would mean something else.

Each is a few lines, so that a reader of a generated kernel can check it here.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

# generated kernels know one module of device functions
from opspec.runtime.widening import dot_units, interleaved, planes, widen, widen_pairs  # noqa: F401

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


def _nvidia(_semantic=None):
    """Whether a kernel is compiled for an NVIDIA device; the interpreter is none."""
    options = getattr(getattr(_semantic, "builder", None), "options", None)
    return tl.constexpr(getattr(options, "backend_name", "") == "cuda")


setattr(_nvidia, tl.core.TRITON_BUILTIN, True)  # evaluated while a kernel is compiled


@triton.jit
def maximum(a, b):
    """The larger of two values; NaN if either is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller of two values; NaN if either is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def is_nan(x):
    """Whether an f32 value is NaN."""
    return x != x


@triton.jit
def _multiply(a, b):
    """The product, as a combine function."""
    return a * b


@triton.jit
def reduce_max(x, axis: tl.constexpr):
    """Maximum along an axis; NaN if any element is NaN."""
    return tl.reduce(x, axis, maximum)


@triton.jit
def reduce_min(x, axis: tl.constexpr):
    """Minimum along an axis; NaN if any element is NaN."""
    return tl.reduce(x, axis, minimum)


@triton.jit
def reduce_prod(x, axis: tl.constexpr):
    """Product along an axis."""
    return tl.reduce(x, axis, _multiply)


@triton.jit
def reduce_any(x, axis: tl.constexpr):
    """Whether any element along an axis is true."""
    return tl.max(x.to(tl.int32), axis) != 0


@triton.jit
def reduce_all(x, axis: tl.constexpr):
    """Whether every element along an axis is true."""
    return tl.min(x.to(tl.int32), axis) != 0


@triton.jit
def _add_both(a, b, c, d):
    """Two sums side by side, as a combine function."""
    return a + c, b + d


@triton.jit
def sum_both(x, y, axis: tl.constexpr):
    """The sums of two blocks of one shape along an axis."""
    x, y = tl.broadcast(x, y)
    return tl.reduce((x, y), axis, _add_both)


@triton.jit
def _either(a, b):
    """Whether one of two is true, as a combine function of integers."""
    return a | b


@triton.jit
def scan_max(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running maximum along an axis; NaN from the first NaN on."""
    return tl.associative_scan(x, axis, maximum, reverse)


@triton.jit
def scan_min(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running minimum along an axis; NaN from the first NaN on."""
    return tl.associative_scan(x, axis, minimum, reverse)


@triton.jit
def scan_any(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether an element up to each point along an axis is true."""
    return tl.associative_scan(x.to(tl.int32), axis, _either, reverse) != 0


@triton.jit
def scan_all(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether every element up to each point along an axis is true."""
    return tl.cumprod(x.to(tl.int32), axis, reverse) != 0


@triton.jit
def _sum_pair(a, b, c, d):  # noqa: ARG001 - the last point of the earlier run is not the last of both
    return a + c, a + d


@triton.jit
def _prod_pair(a, b, c, d):  # noqa: ARG001 - as above
    return a * c, a * d


@triton.jit
def _max_pair(a, b, c, d):  # noqa: ARG001 - as above
    return maximum(a, c), maximum(a, d)


@triton.jit
def _min_pair(a, b, c, d):  # noqa: ARG001 - as above
    return minimum(a, c), minimum(a, d)


@triton.jit
def sum_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running sum along an axis with and without the point itself: pairs of a run's sum and that but its last."""
    return tl.associative_scan((x, tl.zeros_like(x)), axis, _sum_pair, reverse)


@triton.jit
def prod_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running product along an axis with and without the point itself."""
    return tl.associative_scan((x, tl.zeros_like(x) + 1), axis, _prod_pair, reverse)


@triton.jit
def max_before(x, none, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running maximum along an axis with and without the point itself, ``none`` at the first."""
    return tl.associative_scan((x, tl.zeros_like(x) + none), axis, _max_pair, reverse)


@triton.jit
def min_before(x, none, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Running minimum along an axis with and without the point itself, ``none`` at the first."""
    return tl.associative_scan((x, tl.zeros_like(x) + none), axis, _min_pair, reverse)


@triton.jit
def any_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether an element up to each point along an axis is true, with and without the point itself."""
    whole, before = max_before(x.to(tl.int32), 0, axis, reverse)
    return whole != 0, before != 0


@triton.jit
def all_before(x, axis: tl.constexpr, reverse: tl.constexpr = False):
    """Whether every element up to each point along an axis is true, with and without the point itself."""
    whole, before = min_before(x.to(tl.int32), 1, axis, reverse)
    return whole != 0, before != 0


@triton.jit
def decayed(s, a, x):
    """``s`` decayed by ``a``, and ``x`` added; a state of 0 is none, whatever a product of factors became."""
    return tl.where(s == 0.0, x, s * a + x)


@triton.jit
def _decay_pair(a, s, b, x):
    return a * b, decayed(s, b, x)


@triton.jit
def scan_decay(x, a, axis: tl.constexpr, reverse: tl.constexpr = False):
    """The product of the factors ``a`` up to each point along an axis, and the decayed sum of ``x`` there."""
    return tl.associative_scan((a, x), axis, _decay_pair, reverse)


@triton.jit
def _decay_before_pair(a, s, p, q, b, x, r, y):  # noqa: ARG001 - the last point of the earlier run is not the last of both
    return a * b, decayed(s, b, x), a * r, decayed(s, r, y)


@triton.jit
def decay_before(x, a, axis: tl.constexpr, reverse: tl.constexpr = False):
    """As ``scan_decay``, with the point itself and then without it: two factors, each with its sum."""
    first = tl.zeros_like(x)
    return tl.associative_scan((a, x, first + 1.0, first), axis, _decay_before_pair, reverse)


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
def floor_div(a, b):
    """``a // b`` rounded towards minus infinity (Triton's own truncates)."""
    q = a // b
    r = a - q * b
    return q - tl.where((r != 0) & ((r < 0) != (b < 0)), 1, 0)


@triton.jit
def floor_mod(a, b):
    """``a % b`` with the sign of ``b`` (Triton's own has that of ``a``)."""
    r = a % b
    return r + tl.where((r != 0) & ((r < 0) != (b < 0)), b, 0)


@triton.jit
def round_even(x):
    """Round an f32 to the nearest integer, ties to even."""
    if INTERPRETED:
        return _round_even(x)
    return libdevice.nearbyint(x)


@triton.jit
def _round_even(x):
    """The same by arithmetic: adding 1.5·2²³ leaves no fraction bits."""
    magic = 12582912.0
    near = (x + magic) - magic
    return tl.where(tl.abs(x) < 4194304.0, near, _round_large(x))


@triton.jit
def _round_large(x):
    """Nearest even for |x| >= 2²²: at most one fraction bit is left."""
    low = tl.floor(x)
    half = x - low == 0.5
    odd = (low * 0.5) != tl.floor(low * 0.5)
    return tl.where(half, tl.where(odd, low + 1.0, low), low)


@triton.jit
def exp(x):
    """The exponential; below 2**-126 it is 0 (Triton's own takes three instructions to keep denormals)."""
    return tl.exp2(x * 1.4426950408889634)


@triton.jit
def div_fast(a, b):
    """``a / b`` within 2 ulp where ``|b|`` is infinite or between 2**-126 and 2**126: a reciprocal and a product.

    Beyond 2**126, and where the quotient is below 2**-126, it is 0.
    """
    if INTERPRETED:
        return a / b
    return libdevice.fast_dividef(a, b)


@triton.jit
def inverse(x):
    """``1 / x`` under the conditions of ``div_fast``."""
    if _nvidia():
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return div_fast(1.0, x)


@triton.jit
def div_near(a, b):
    """``a / b`` rounded once where ``|b|`` is infinite or between 2**-100 and 2**122.

    The reciprocal comes in two parts of one sign, so that an infinite ``a`` meets no difference of
    infinities: ``high`` a little too small, and what ``1 - b * high`` says is missing.
    """
    if INTERPRETED:
        return a / b
    high = libdevice.fast_dividef(0.99999976, b)
    missing = tl.fma(-b, high, 1.0)
    low = high * tl.fma(missing, missing, missing)
    low = tl.where(is_nan(low), high, low)  # b is infinite: both parts are 0
    return tl.fma(a, high, a * low)


@triton.jit
def tanh(x):
    """Hyperbolic tangent within 2 ulp: an odd polynomial near 0, where the form with an exponential cancels."""
    s = x * x
    p = 0.0163154434 * s - 0.0525893196
    p = p * s + 0.133188769
    p = p * s - 0.333327949
    p = p * s - 3.23627383e-08
    a = tl.abs(x)
    near = p * a + a
    far = 1.0 - div_fast(2.0, 1.0 + tl.exp2(a * 2.885390081777927))
    return _with_sign(tl.where(a < 0.55, near, far), x)


@triton.jit
def _with_sign(x, of):
    """``x``, which is not negative, with the sign of ``of``."""
    sign = of.to(tl.int32, bitcast=True) & -2147483648
    return (x.to(tl.int32, bitcast=True) | sign).to(tl.float32, bitcast=True)


@triton.jit
def erf(x):
    """The error function within 2 ulp: an odd polynomial near 0, else ``1 - exp2`` of one that falls to -inf."""
    s = x * x
    p = -0.000586208189 * s + 0.00496750697
    p = p * s - 0.026748864
    p = p * s + 0.112813205
    p = p * s - 0.376124471
    p = p * s + 0.128379136
    near = p * x + x
    a = tl.abs(x)
    q = -0.00173185021 * a + 0.02189897
    q = q * a - 0.129684672
    q = q * a - 0.941454053
    q = q * a - 1.6141988
    q = q * a - 0.00324611925
    return tl.where(a < 0.95, near, _with_sign(1.0 - tl.exp2(q), x))


@triton.jit
def one_plus_erf(x):
    """``1 + erf(x)``, with an error of at most 2**-22 and without losing what is left of 1 - 1."""
    a = tl.abs(x)
    q = -4.53586035e-05 * a + 0.0004455077
    q = q * a - 0.00148944184
    q = q * a - 0.000774629239
    q = q * a + 0.0282536801
    q = q * a - 0.148481607
    q = q * a - 0.918416381
    q = q * a - 1.62790859
    beyond = tl.exp2(q * a)
    return tl.where(x < 0, beyond, 2.0 - beyond)


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
def quotients(first, at, divisor, PARTIAL: tl.constexpr):
    """``at // divisor`` for the places of a tile that begins at ``first``; one number where the tile's extent
    divides the divisor, and so no tile is PARTIAL."""
    if PARTIAL:
        found = at // divisor
    else:
        found = tl.full((1,), first // divisor, at.dtype)
    return found


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
    if _nvidia():
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
    if _nvidia():
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
    if _nvidia():
        return x.to(tl.float32).to(tl.float8e5)  # the conversion itself saturates
    return clamp_to(x, -57344.0, 57344.0).to(tl.float8e5)


@triton.jit(
    do_not_specialize=["E1", "E2", "E3", "LAST", "x_stride_0", "x_stride_1", "x_stride_2", "x_stride_3"]
)
def copy_rows(
    x_ptr,
    y_ptr,
    E1,
    E2,
    E3,
    LAST,
    WIDTH,
    x_stride_0,
    x_stride_1,
    x_stride_2,
    x_stride_3,
    BLOCK: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Rows of length LAST, over up to four leading axes, into contiguous rows of WIDTH; 0 behind LAST."""
    blocks = tl.cdiv(WIDTH, BLOCK)
    row = (tl.program_id(0) // blocks).to(INDEX)
    column = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)
    at = row % E3 * x_stride_3 + row // E3 % E2 * x_stride_2
    at += row // E3 // E2 % E1 * x_stride_1 + row // E3 // E2 // E1 * x_stride_0
    x = tl.load(x_ptr + at + column, mask=column < LAST, other=0.0)
    tl.store(y_ptr + row * WIDTH + column, x, mask=column < WIDTH)


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
