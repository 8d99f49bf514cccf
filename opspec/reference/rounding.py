"""Rounding of float64 values to storage formats: once, to nearest even, exactly.

Every format here has at most 24 significant bits, so that scaling by a power of
two and ``rint`` in float64 lose nothing. NaN stays NaN; the sign of zero is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opspec.ir.dtypes import BF16, BOOL, F8E4M3, F8E5M2, F16, F32, DType

Array = npt.NDArray[Any]
Mode = Literal["ieee", "sat", "nonsat", "wrap"]


@dataclass(frozen=True, slots=True)
class Format:
    """A binary float: explicit ``mantissa`` bits, least normal exponent, greatest finite value.

    ``infinite``: whether it has infinities; without, an overflow is NaN.
    """

    mantissa: int
    least_exponent: int
    greatest: float
    infinite: bool = True

    @property
    def unit(self) -> float:
        """The unit roundoff, half the spacing at 1."""
        return 2.0 ** -(self.mantissa + 1)


FORMATS: dict[str, Format] = {
    F32.name: Format(23, -126, float.fromhex("0x1.fffffep127")),
    BF16.name: Format(7, -126, float.fromhex("0x1.fep127")),
    F16.name: Format(10, -14, 65504.0),
    F8E4M3.name: Format(3, -6, 448.0, infinite=False),
    F8E5M2.name: Format(2, -14, 57344.0),
    "tf32": Format(10, -126, float.fromhex("0x1.ffcp127")),
}

_NATIVE = {F32.name: np.float32, F16.name: np.float16}
"""Formats that numpy rounds to itself, once and to nearest even."""


def spacing(name: str, x: Array) -> Array:
    """The distance between neighbours of the format at ``|x|``; at least the subnormal one."""
    form = FORMATS[name]
    size = np.minimum(np.abs(x), form.greatest)
    _, exponent = np.frexp(np.where(np.isfinite(size), size, 0.0))
    exponent = np.where(size == 0, form.least_exponent, exponent - 1)
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, form.least_exponent) - form.mantissa))


def round_float(name: str, x: Array, mode: Mode = "ieee") -> Array:
    """``x`` rounded to a float format, as float64.

    ``sat`` clamps an overflow and infinities to the greatest finite value; otherwise
    they become infinite, or NaN where the format has no infinity.
    """
    form = FORMATS[name]
    x = np.asarray(x, dtype=np.float64)
    if name in _NATIVE and mode != "sat":
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(x.astype(_NATIVE[name]).astype(np.float64))
    finite = np.isfinite(x)
    clipped = np.clip(np.where(finite, x, 0.0), -4.0 * form.greatest, 4.0 * form.greatest)
    _, exponent = np.frexp(clipped)
    exponent = np.where(clipped == 0, form.least_exponent, exponent - 1)
    quantum = np.ldexp(1.0, np.maximum(exponent, form.least_exponent) - form.mantissa)
    near = np.rint(clipped / quantum) * quantum
    near = np.where(finite, near, x)
    over = np.abs(near) > form.greatest
    if mode == "sat":
        beyond: Array | float = form.greatest
    else:
        beyond = np.inf if form.infinite else np.nan
    return np.where(over, np.copysign(beyond, near), near)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and greatest value of a signed integer type."""
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def round_integer(dtype: DType, x: Array, mode: Mode) -> tuple[Array, Array]:
    """``x`` as an integer of ``dtype``: nearest even, then clamped (``sat``) or wrapped.

    Returns the int64 values, and where they mean nothing: NaN, or beyond the type
    where neither clamping nor wrapping was asked for. A saturated NaN is 0.
    """
    low, high = integer_limits(dtype)
    x = np.asarray(x)
    if x.dtype.kind in "iub":
        whole = x.astype(np.int64)
        lost = np.zeros(x.shape, dtype=bool)
    else:
        near = np.rint(x)
        lost = ~(np.abs(near) < 2.0**63)
        whole = np.where(lost, 0.0, near).astype(np.int64)
        if mode == "sat":
            whole = np.where(lost & (near > 0), high, np.where(lost & (near < 0), low, whole))
            lost = np.zeros(x.shape, dtype=bool)
    outside = (whole < low) | (whole > high)
    if mode == "sat":
        return np.clip(whole, low, high), lost
    span = 1 << dtype.bits
    wrapped = whole if dtype.bits == 64 else (whole - low) % span + low
    return wrapped, lost | (outside if mode != "wrap" else False)


def round_to(dtype: DType, x: Array, mode: Mode = "ieee") -> Array:
    """``x`` in storage type ``dtype``: float64 for floats, int64 for integers and bool."""
    if dtype.kind == "float":
        return round_float(dtype.name, x, mode)
    if dtype == BOOL:
        return np.asarray(np.asarray(x) != 0, dtype=np.int64)
    return round_integer(dtype, x, mode)[0]
