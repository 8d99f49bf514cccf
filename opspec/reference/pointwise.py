"""One rule per primitive: its value in float64, and the radius that f32 hardware leaves.

Sources of the constants, in unit roundoffs of f32 (two of them are one ulp): the PTX
manual for ``ex2.approx``, ``sqrt.approx``, ``rsqrt.approx`` and ``div.full``, the CUDA
programming guide for the single-precision library (log, sin, cos). ``erf`` and ``tanh`` are the
device's own functions, within 2 ulp; what is left of ``1 + erf`` and ``1 + tanh`` is computed as one
function, so that their error is one of 1. An unknown primitive is an error of the type checker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

import numpy as np

from opspec.ir.values import BinaryOp, CompareOp, UnaryOp
from opspec.reference.bounded import TINY, UNIT, Bounded, image, operand, rounding, scaled, settle
from opspec.reference.rounding import Array

EXP, LOG, SQRT, DIVIDE, TRIGONOMETRIC, ERF, TANH = 4.0, 4.0, 4.0, 4.0, 4.0, 5.0, 8.0
SMALL, LEAST = 2.0**-100, 2.0**-149
FOLDED = 3.0
"""Roundings of a factor (``log2 e``, a scale) that a rewrite moves inside an exponent."""

_erf = np.vectorize(math.erf, otypes=[np.float64])


def unary(op: UnaryOp, x: Bounded, *, precise: bool = False) -> Bounded:
    """``op(x)``. ``precise``: a floor, a comparison or an integer follows (rule 12)."""
    if x.integral:
        return _unary_integer(op, x)
    if op == "neg":
        return Bounded(-x.value, x.error, x.terms)
    x = operand(x)
    match op:
        case "abs":
            return Bounded(np.abs(x.value), x.error, x.terms)
        case "round":
            return Bounded(*image(np.rint, x))
        case "floor":
            return Bounded(*image(np.floor, x))
        case "ceil":
            return Bounded(*image(np.ceil, x))
        case "exp":
            return _exponential(x)
        case "log":
            return _rounded(np.log, _flushed(x), LOG)
        case "sqrt":
            return _rounded(np.sqrt, x if precise else _flushed(x), 1.0 if precise else SQRT, correct=precise)
        case "tanh":
            return _saturating(np.tanh, x, TANH)
        case "erf":
            return _saturating(_erf, _flushed(x), ERF)
        case "sin":
            return _periodic(np.sin(np.where(np.isfinite(x.value), x.value, np.nan)), _flushed(x))
        case "cos":
            return _periodic(np.cos(np.where(np.isfinite(x.value), x.value, np.nan)), _flushed(x))
        case "rsqrt":
            return _pole(lambda v: 1.0 / np.sqrt(v), _flushed(x), SQRT)
        case "reciprocal":
            return _pole(lambda v: 1.0 / v, x, 1.0 if precise else DIVIDE, correct=precise)
        case "not" | "exp2" | "one_plus_erf":
            raise TypeError(f"`{op}` of a float is nothing that a spec can say")
        case _:
            assert_never(op)


def _unary_integer(op: UnaryOp, x: Bounded) -> Bounded:
    match op:
        case "neg":
            return Bounded(-x.value, x.error)
        case "abs":
            return Bounded(np.abs(x.value), x.error)
        case "not":
            return Bounded(1 - x.value, x.error)
        case "round" | "floor" | "ceil":
            return x
        case _:
            return unary(op, Bounded(x.value.astype(np.float64), x.error))


def _rounded(
    function: Callable[[Array], Array], x: Bounded, units: float, *, correct: bool = False
) -> Bounded:
    value, error = image(function, x)
    own = rounding(value, np.broadcast_to(error, value.shape), units, may_be_exact=correct)
    return settle(value, error + own, np.isfinite(error))


def _saturating(function: Callable[[Array], Array], x: Bounded, units: float) -> Bounded:
    """A function between -1 and 1 whose error is one of 1: a sum with 1 is computed without it (``1 + erf(x)``)."""
    value, error = image(function, x)
    return settle(value, error + units * UNIT * np.abs(np.sign(value)), np.isfinite(error))


def _flushed(x: Bounded) -> Bounded:
    """Hardware approximations may take a subnormal operand for zero."""
    small = (np.abs(x.value) < TINY) & (x.value != 0)
    return Bounded(x.value, np.where(small, x.error + np.abs(x.value), x.error)) if small.any() else x


def _exponential(x: Bounded) -> Bounded:
    with np.errstate(invalid="ignore", over="ignore"):
        wider = x.error + UNIT * (2.0 * np.abs(x.value) + FOLDED * x.magnitude)
    wider = np.where(np.isfinite(x.value) & (x.value != 0), wider, x.error)
    wider = np.where((x.value == 0) & (x.magnitude > 0), x.error + FOLDED * UNIT * x.magnitude, wider)
    value, error = image(np.exp, Bounded(x.value, np.where(np.isnan(wider), np.inf, wider)))
    own = rounding(value, error, EXP)
    return settle(
        value, error + np.where(x.value == 0, np.where(error == 0, 0.0, own), own), np.isfinite(error)
    )


def _periodic(value: Array, x: Bounded) -> Bounded:
    error = np.minimum(x.error + TRIGONOMETRIC * UNIT * np.maximum(np.abs(value), TINY), 2.0)
    error = np.where(np.isinf(x.error), np.inf, error)
    return settle(value, error, np.isfinite(x.error))


def _pole(function: Callable[[Array], Array], x: Bounded, units: float, *, correct: bool = False) -> Bounded:
    """A function that is monotone on either side of its pole at zero."""
    value, error = image(function, x)
    with np.errstate(invalid="ignore"):
        across = (np.abs(x.value) <= x.error) & (x.error > 0)
    error = np.where(across, np.inf, error)
    own = rounding(value, error, units, may_be_exact=correct)
    return settle(value, error + own, np.isfinite(error))


def binary(op: BinaryOp, a: Bounded, b: Bounded, *, precise: bool = False) -> Bounded:
    """``a op b`` on operands of one compute type. ``precise`` as for ``unary``."""
    if a.integral and b.integral:
        return _binary_integer(op, a, b)
    a, b = operand(a), operand(b)
    with np.errstate(all="ignore"):
        match op:
            case "add" | "sub":
                return _sum(a, b if op == "add" else Bounded(-b.value, b.error, b.terms))
            case "mul":
                return _product(a, b)
            case "div":
                return _quotient(a, b, precise=precise)
            case "min" | "max":
                return _extreme(op == "max", a, b)
            case "floordiv":
                return unary("floor", _quotient(a, b, precise=True))
            case "mod":
                whole = unary("floor", _quotient(a, b, precise=True))
                return _sum(a, unary("neg", _product(whole, b)))
            case "and" | "or" | "div_fast" | "div_near":
                raise TypeError(f"`{op}` of floats is nothing that a spec can say")
            case _:
                assert_never(op)


def _sum(a: Bounded, b: Bounded) -> Bounded:
    value = np.asarray(a.value + b.value)
    error = a.error + b.error
    own = rounding(value, np.broadcast_to(error, value.shape), may_be_exact=True)
    terms = a.magnitude + b.magnitude
    return settle(value, error + own, np.isfinite(error), terms)


def _product(a: Bounded, b: Bounded) -> Bounded:
    value = np.asarray(a.value * b.value)
    error = scaled(a.error, np.abs(b.value)) + scaled(b.error, np.abs(a.value)) + scaled(a.error, b.error)
    certain = np.isfinite(a.error) & np.isfinite(b.error) & ~_straddles(a) & ~_straddles(b)
    own = rounding(value, np.broadcast_to(error, value.shape), may_be_exact=True)
    folded = a.terms is not None or b.terms is not None
    return settle(value, error + own, certain, a.magnitude * b.magnitude if folded else None)


def _straddles(x: Bounded) -> Array:
    """Where it is not known on which side of zero the value lies."""
    return (x.error > 0) & (np.abs(x.value) <= x.error)


def _quotient(a: Bounded, b: Bounded, *, precise: bool) -> Bounded:
    value = np.asarray(a.value / b.value)
    nearest = np.abs(b.value) - b.error
    raised = a.error + np.where(b.error == 0, 0.0, np.abs(value) * b.error)
    error = np.where(raised == 0, 0.0, raised / nearest)
    error = np.where(_straddles(b) | np.isinf(a.error), np.inf, error)
    vanishes = np.isinf(b.value) & np.isfinite(b.error) & np.isfinite(a.value) & np.isfinite(a.error)
    error = np.where(vanishes, 0.0, error)
    certain = np.isfinite(a.error) & np.isfinite(b.error) & ~_straddles(b) & ~(_straddles(a) & (b.value == 0))
    units = 1.0 if precise else DIVIDE
    own = rounding(value, np.broadcast_to(error, value.shape), units, may_be_exact=precise)
    if precise:  # of a tiny numerator the second part of the quotient is less than the smallest number
        own = np.where((own > 0) & (np.abs(a.value) < SMALL), own + LEAST, own)
    folded = a.terms is not None
    return settle(value, error + own, certain, a.magnitude / np.abs(b.value) if folded else None)


def _extreme(greatest: bool, a: Bounded, b: Bounded) -> Bounded:
    pick = np.maximum if greatest else np.minimum
    value = np.asarray(pick(a.value, b.value))
    high = pick(a.value + a.error, b.value + b.error)
    low = pick(a.value - a.error, b.value - b.error)
    error = np.where((high == value) & (low == value), 0.0, np.maximum(high - value, value - low))
    error = np.where(np.isinf(a.error) | np.isinf(b.error), np.inf, error)
    certain = np.isfinite(a.error) & np.isfinite(b.error)
    return settle(value, np.where(np.isnan(value) & certain, 0.0, error), certain)


def _binary_integer(op: BinaryOp, a: Bounded, b: Bounded) -> Bounded:
    x, y = a.value, b.value
    loose = not (a.exact and b.exact)
    error: Array = np.zeros(())
    with np.errstate(all="ignore"):
        match op:
            case "add" | "sub":
                return Bounded(np.asarray(x + y if op == "add" else x - y), a.error + b.error)
            case "mul":
                if loose:
                    error = a.error * np.abs(y) + b.error * np.abs(x) + a.error * b.error
                return Bounded(np.asarray(x * y), np.where(np.isnan(error), np.inf, error))
            case "min" | "max":
                pick = np.minimum if op == "min" else np.maximum
                return Bounded(np.asarray(pick(x, y)), np.maximum(a.error, b.error))
            case "and" | "or":
                return _logic(op == "and", a, b)
            case "floordiv" | "mod":
                safe = np.where(y == 0, 1, y)
                value = x // safe if op == "floordiv" else x % safe
                lost = (y == 0) | ((a.error + b.error) > 0)
                return Bounded(np.where(y == 0, 0, value), np.where(lost, np.inf, 0.0))
            case "div":
                return binary("div", _float(a), _float(b))
            case "div_fast" | "div_near":
                raise TypeError(f"`{op}` of integers is nothing that a spec can say")
            case _:
                assert_never(op)


def _logic(both: bool, a: Bounded, b: Bounded) -> Bounded:
    """And, or: undecided unless one operand decides it alone."""
    decisive = 0 if both else 1
    value = np.minimum(a.value, b.value) if both else np.maximum(a.value, b.value)
    settled = ((a.error == 0) & (a.value == decisive)) | ((b.error == 0) & (b.value == decisive))
    error = np.where(settled, 0.0, np.minimum(np.maximum(a.error, b.error), 1.0))
    return Bounded(np.asarray(value), error)


def _float(x: Bounded) -> Bounded:
    return Bounded(x.value.astype(np.float64), x.error)


def compare(op: CompareOp, a: Bounded, b: Bounded) -> Bounded:
    """``a op b`` as 0 or 1; radius 1 where the radii of the operands leave it undecided."""
    tests = {
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
    }
    a, b = operand(a), operand(b)
    with np.errstate(all="ignore"):
        value = np.asarray(tests[op](a.value, b.value)).astype(np.int64)
        reach = a.error + b.error
        open_ = (reach > 0) & (np.isinf(reach) | (np.abs(a.value - b.value) <= reach))
    return Bounded(value, open_.astype(np.float64))


def select(condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """``where(condition, a, b)``; an undecided condition lets in the other branch."""
    taken = condition.value != 0
    value = np.where(taken, a.value, b.value)
    error = np.where(taken, a.error, b.error)
    terms = None
    if a.terms is not None or b.terms is not None:
        terms = np.where(taken, a.magnitude, b.magnitude)
    if not condition.exact:
        with np.errstate(all="ignore"):
            other, reach = np.where(taken, b.value, a.value), np.where(taken, b.error, a.error)
            gap = np.where((other == value) | (np.isnan(other) & np.isnan(value)), 0.0, np.abs(other - value))
        gap = np.where(np.isnan(gap), np.inf, gap)
        error = np.where(condition.error > 0, np.maximum(error, gap + reach), error)
    return Bounded(value, error, terms)
