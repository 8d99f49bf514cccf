"""Which numbers a storage type holds exactly: where a load may give one without rounding it."""

from __future__ import annotations

import math

from opspec.ir.dtypes import DType, Storage, choices
from opspec.ir.values import Literal, Monoid, Unary, Value

# least normal and greatest exponent of the float types, and whether they have infinities
_RANGES = {
    "f32": (-126, 127, True), "bf16": (-126, 127, True), "f16": (-14, 15, True), "f8e4m3": (-6, 8, False),
    "f8e5m2": (-14, 15, True),
}  # fmt: skip


def number(value: Value) -> float | int | bool | None:
    """The number that a literal, or a negated one, stands for."""
    match value:
        case Literal(value=v):
            return v
        case Unary(op="neg", x=x):
            inner = number(x)
            return None if inner is None else -inner
    return None


def identity(monoid: Monoid, dtype: DType) -> float | int:
    """What a max or min over nothing is, in a compute type."""
    if dtype.kind == "float":
        return -math.inf if monoid == "max" else math.inf
    half = 1 << (dtype.bits - 1)
    return -half if monoid == "max" else half - 1


def holds(dtype: Storage, value: float | bool) -> bool:
    """Whether every choice of a storage type has exactly this number."""
    return all(_holds(d, value) for d in choices(dtype))


def _holds(dtype: DType, value: float | bool) -> bool:
    if dtype.kind == "bool":
        return value in (0, 1)
    if dtype.kind == "int":
        return float(value).is_integer() and -(2 ** (dtype.bits - 1)) <= value < 2 ** (dtype.bits - 1)
    least, greatest, infinite = _RANGES[dtype.name]
    if not math.isfinite(value):
        return infinite or math.isnan(value)
    if value == 0:
        return True
    exponent = math.frexp(value)[1] - 1
    if not least <= exponent <= greatest:
        return False
    scaled = math.ldexp(value, dtype.mantissa - exponent)
    top = dtype.name == "f8e4m3" and exponent == greatest and abs(scaled) == 15
    return scaled.is_integer() and not top
