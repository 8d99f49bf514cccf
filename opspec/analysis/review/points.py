"""Closed forms at integers, in Python's own numbers: a review asks for many points, and SymPy's are slow.

Only what a count is made of is known here (sums, products, powers, extremes and rounded quotients); for anything
else the answer is None, and the caller asks SymPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor

import sympy

Number = int | Fraction


def value(form: sympy.Expr, env: Mapping[str, Number]) -> Number | None:
    """The exact value of a form; None if a symbol is left, a division is by zero, or it is no count."""
    try:
        return _value(form, env)
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def _value(form: sympy.Expr, env: Mapping[str, Number]) -> Number:
    if form.is_Symbol:
        return env[form.name]
    if form.is_Integer:
        return int(form.p)
    if form.is_Rational:
        return Fraction(int(form.p), int(form.q))
    if form.is_Add:
        return sum(_value(a, env) for a in form.args)
    if form.is_Mul:
        product: Number = 1
        for a in form.args:
            product *= _value(a, env)
        return product
    if form.is_Pow:
        return _power(_value(form.args[0], env), form.args[1])
    match form:
        case sympy.Max():
            return max(_value(a, env) for a in form.args)
        case sympy.Min():
            return min(_value(a, env) for a in form.args)
        case sympy.floor():
            return floor(_value(form.args[0], env))
        case sympy.ceiling():
            return ceil(_value(form.args[0], env))
        case _:
            raise TypeError(type(form).__name__)


def _power(base: Number, exponent: sympy.Expr) -> Number:
    if not exponent.is_Integer:
        raise TypeError("a root")
    n = int(exponent)
    return base**n if n >= 0 else Fraction(1) / base**-n


def coefficients(form: sympy.Expr, env: Mapping[str, Number], x: str) -> list[Number] | None:
    """The coefficients of a polynomial of one symbol, highest first, all others as in ``env``; None for other forms."""
    try:
        found = _polynomial(form, env, x)
    except (KeyError, TypeError, ZeroDivisionError):
        return None
    top = max((n for n, c in found.items() if c), default=0)
    return [found.get(n, 0) for n in range(top, -1, -1)]


def _polynomial(form: sympy.Expr, env: Mapping[str, Number], x: str) -> dict[int, Number]:
    if form.is_Symbol and form.name == x:
        return {1: 1}
    if not any(s.name == x for s in form.free_symbols):
        return {0: _value(form, env)}
    if form.is_Add:
        total: dict[int, Number] = {}
        for a in form.args:
            for n, c in _polynomial(a, env, x).items():
                total[n] = total.get(n, 0) + c
        return total
    if form.is_Mul:
        product: dict[int, Number] = {0: 1}
        for a in form.args:
            product = _times(product, _polynomial(a, env, x))
        return product
    if form.is_Pow and form.args[1].is_Integer and form.args[1] > 0:
        base = _polynomial(form.args[0], env, x)
        power: dict[int, Number] = {0: 1}
        for _ in range(int(form.args[1])):
            power = _times(power, base)
        return power
    raise TypeError(type(form).__name__)


def _times(a: Mapping[int, Number], b: Mapping[int, Number]) -> dict[int, Number]:
    product: dict[int, Number] = {}
    for n, c in a.items():
        for m, d in b.items():
            product[n + m] = product.get(n + m, 0) + c * d
    return product
