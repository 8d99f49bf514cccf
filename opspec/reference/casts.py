"""Casts and roundings to storage: barriers that round once, as intervals.

A cast maps the interval around a value through the rounding itself, so that a
quantised result has freedom only where a tie lies within reach.
"""

from __future__ import annotations

import numpy as np

from opspec.ir.dtypes import BOOL, DType
from opspec.reference.bounded import Bounded, image, known, operand
from opspec.reference.rounding import FORMATS, Array, Mode, round_float, round_integer, round_to, spacing


def cast(x: Bounded, to: DType, mode: Mode) -> Bounded:
    """``to(x)`` in the compute type of ``to``."""
    if to.kind == "float":
        return _to_float(x, to, mode)
    if to == BOOL:
        value = (x.value != 0).astype(np.int64)
        return Bounded(value, ((x.error > 0) & (np.abs(x.value) <= x.error)).astype(np.float64))
    return _to_integer(x, to, mode)


def _to_float(x: Bounded, to: DType, mode: Mode) -> Bounded:
    wide = Bounded(x.value.astype(np.float64), x.error, x.terms) if x.integral else operand(x)
    if to.name == "f32" and not x.integral:
        return wide
    return Bounded(*image(lambda v: round_float(to.name, v, mode), wide))


def _to_integer(x: Bounded, to: DType, mode: Mode) -> Bounded:
    value, lost = round_integer(to, x.value, mode)
    error = np.where(lost, np.inf, 0.0)
    if not x.exact:
        with np.errstate(all="ignore"):
            low, _ = round_integer(to, x.value - x.error, mode)
            high, _ = round_integer(to, x.value + x.error, mode)
        reach = np.maximum(np.abs(high - value), np.abs(value - low)).astype(np.float64)
        error = np.where(np.isinf(x.error) | lost, np.inf, reach)
    return Bounded(value, error)


def stored(x: Bounded, to: DType) -> Bounded:
    """``x`` after it was written as ``to`` and read back: what another kernel sees."""
    if to.kind != "float":
        return _to_integer(x, to, "wrap") if to != BOOL else cast(x, to, "ieee")
    if to.name == "f32":
        with np.errstate(all="ignore"):
            half = np.where(round_float("f32", x.value) == x.value, 0.0, spacing("f32", x.value) / 2)
        exact_or_half = np.where(np.isfinite(x.value), x.error + half, x.error)
        return Bounded(x.value, exact_or_half)
    if x.exact and np.array_equal(round_to(to, x.value), x.value, equal_nan=True):
        return x
    return Bounded(*image(lambda v: round_float(to.name, v), x))


def written(x: Bounded, to: DType) -> Bounded:
    """What an output of type ``to`` may hold: the tolerance of the comparison.

    A float of 16 bits or more may be one unit in the last place off beside the radius;
    a quantised output takes the codes that the interval around it rounds to.
    """
    if to.kind != "float":
        return stored(x, to)
    value, reach = image(lambda v: round_float(to.name, v), x)
    if to.bits <= 8:
        return Bounded(value, np.broadcast_to(reach, value.shape))
    with np.errstate(all="ignore"):
        last = spacing(to.name, np.abs(x.value) + np.where(np.isfinite(x.error), x.error, 0.0))
        error = np.where(np.isfinite(value), np.where(np.isfinite(reach), x.error + last, np.inf), reach)
    kept = np.where(np.isfinite(value), x.value, value)
    return Bounded(kept, error)


def entering(x: Bounded, using: str | None, *, raw: bool) -> Bounded:
    """``x`` as it enters a multiply whose operands may be rounded to ``using`` (rule 10).

    ``raw``: it was read from a tensor as it stands, so that no rewrite can have scaled
    it: what the format holds exactly stays exact.
    """
    if using is None or using == "f32" or x.integral:
        return x
    form = FORMATS[using]
    unit = form.unit * (2.0 if using == "tf32" else 1.0)
    with np.errstate(all="ignore"):
        size = np.abs(x.value) + x.error
        own = np.maximum(unit * size, np.ldexp(1.0, form.least_exponent - form.mantissa - 1))
        own = np.where((size > form.greatest) & np.isfinite(x.value), np.inf, own)
        idle = (x.value == 0) & (x.error == 0) | ~np.isfinite(x.value)
        if raw:
            idle |= (x.error == 0) & (round_float(using, x.value) == x.value)
    return Bounded(x.value, np.where(idle, x.error, x.error + own), x.terms)


def decoded(value: Array) -> Bounded:
    """A stored tensor in its compute type: widening is exact."""
    return known(value)
