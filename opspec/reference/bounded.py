"""Values with an error radius: what a kernel in f32 may hold where float64 holds ``value``.

The radius follows values through the expression (rule 23). It is an interval where
a function is monotone, so that rounding, quantising and thresholds are exact: a
radius that reaches no tie gives no freedom at all. ``inf`` as radius means that
nothing is known, as after an overflow of f32 or an undecided comparison with NaN.
A NaN or an infinity with radius 0 must be matched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opspec.reference.rounding import FORMATS, Array, round_float

UNIT = FORMATS["f32"].unit
"""Unit roundoff of f32, 2⁻²⁴."""
TINY = 2.0**-126
"""Least normal f32: smaller results may be flushed to zero."""
HUGE = FORMATS["f32"].greatest


@dataclass(frozen=True, slots=True)
class Bounded:
    """``value`` (float64, int64 for integers and bool), and the radius around it.

    ``terms``: the sum of magnitudes that cancelled on the way, where larger than
    ``|value|``; a rewrite may scale each of them before they cancel.
    """

    value: Array
    error: Array
    terms: Array | None = None

    @property
    def exact(self) -> bool:
        """Whether every element is known without error."""
        return not np.any(self.error)

    @property
    def integral(self) -> bool:
        """Whether it holds integers or truth values."""
        return self.value.dtype.kind in "iub"

    @property
    def magnitude(self) -> Array:
        """``terms``, or ``|value|`` where nothing cancelled."""
        return np.abs(self.value) if self.terms is None else self.terms


def known(value: Array) -> Bounded:
    """A value without error."""
    return Bounded(np.asarray(value), np.zeros(()))


def scaled(error: Array, factor: Array) -> Array:
    """``error * factor`` where no error stays none, even against infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        product = np.asarray(error * factor)
    return np.where(error == 0, 0.0, product)


def operand(x: Bounded) -> Bounded:
    """``x`` on its way into an operation: past the range of f32 nothing is known of the result."""
    if x.integral:
        return x
    with np.errstate(invalid="ignore", over="ignore"):
        past = (np.abs(x.value) + x.error > HUGE) & np.isfinite(x.value)
    if not np.any(past):
        return x
    return Bounded(x.value, np.where(past, np.inf, x.error), x.terms)


def settle(value: Array, error: Array, certain: Array | bool, terms: Array | None = None) -> Bounded:
    """Close an operation: where ``value`` is not finite, its radius is 0 if ``certain``, else unknown."""
    error = np.asarray(error, dtype=np.float64)
    if np.isnan(error).any():
        error = np.where(np.isnan(error), np.inf, error)
    finite = np.isfinite(value)
    if not finite.all():
        error = np.where(finite, error, np.where(certain, 0.0, np.inf))
    return Bounded(value, error, terms)


def rounding(value: Array, error: Array, units: float = 1.0, *, may_be_exact: bool = False) -> Array:
    """What rounding the result of one f32 operation adds: ``units`` unit roundoffs.

    ``may_be_exact``: the operation is correctly rounded, so that a result that f32
    holds, from operands without error, is that result. Subnormals may be flushed.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(value) + error
        own = units * UNIT * size
        own = np.where(size < TINY, np.maximum(own, size), own)
    own = np.where(np.isfinite(size), own, 0.0)
    if may_be_exact:
        own = np.where((error == 0) & (round_float("f32", value) == value), 0.0, own)
    return own


def image(function: Callable[[Array], Array], x: Bounded) -> tuple[Array, Array]:
    """Value and radius of a monotone function over the interval around ``x``.

    Where the ends of the interval are not all finite and not all alike, the radius is inf.
    """
    with np.errstate(all="ignore"):
        value = function(x.value)
        if x.exact:
            return value, np.zeros(())
        low, high = function(x.value - x.error), function(x.value + x.error)
        error = np.maximum(np.abs(high - value), np.abs(value - low))
        same = ((low == value) & (high == value)) | (np.isnan(low) & np.isnan(value) & np.isnan(high))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    error = np.where((x.error == 0), 0.0, np.where(np.isinf(x.error), np.inf, error))
    return value, error
