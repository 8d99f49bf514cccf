"""Arithmetic in few instructions, within the bounds that the reference knows; integer division by floors."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from opspec.runtime.folding import is_nan
from opspec.runtime.targets import INTERPRETED, nvidia


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
    if nvidia():
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return div_fast(1.0, x)


@triton.jit
def div_near(a, b):
    """``a / b`` rounded once where ``|b|`` is infinite or between 2**-100 and 2**122, and ``|a|`` at least 2**-100.

    Below that ``|a|`` it may be off by 2**-149 more.

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
