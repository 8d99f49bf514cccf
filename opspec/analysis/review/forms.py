"""Closed forms side by side: are they equal, how do they grow, where do they cross a ridge.

Everything here evaluates at integers and never searches, so that a review of many specs stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import lcm, log2

import sympy

from opspec.analysis.forms import evaluate, unbound
from opspec.analysis.lattice.symbols import abstract, symbol

_POINTS = (
    (2, 3, 5, 7, 11, 13, 17, 19),
    (64, 128, 32, 96, 256, 48, 80, 160),
    (1009, 10007, 997, 30011, 499, 7919, 65537, 8191),
)
_FAR = 2**80
_LAST = 2**40
_EXPANDED = 200


def same(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether two counts agree: equal as written, or equal at points that no two counts share by chance."""
    if a == b:
        return True
    names = sorted({*unbound(a), *unbound(b)})
    for k, point in enumerate(_POINTS):
        env = {n: point[(i + k) % len(point)] + i // len(point) for i, n in enumerate(names)}
        if evaluate(a, env) != evaluate(b, env):
            return False
    return True


def growth(form: sympy.Expr, dim: str, around: Mapping[str, int]) -> int | None:
    """The exponent of a dim as it grows and all others stay: 2 for ``a*T**2 + b*T``. None if it is no power."""
    if dim not in unbound(form):
        return 0
    env = {n: around.get(n, 64) or 1 for n in unbound(form)}
    near, far = (_fraction(evaluate(form, {**env, dim: n})) for n in (_FAR, 2 * _FAR))
    if near is None or far is None or near <= 0 or far <= 0:
        return None
    found = log2(far / near)
    return round(found) if abs(found - round(found)) < 1e-6 else None


def dominant(form: sympy.Expr, env: Mapping[str, int]) -> tuple[sympy.Expr, float] | None:
    """The largest term of a count at a shape, and its share of the whole; None where it is no sum."""
    flat, back = abstract(form)
    if flat.count_ops() > _EXPANDED:
        return None
    terms = sympy.Add.make_args(sympy.expand(flat))
    if len(terms) < 2:
        return None
    sizes = [(_fraction(evaluate(t.xreplace(back), env)), t) for t in terms]
    total = _fraction(evaluate(form, env))
    if not total or any(s is None for s, _ in sizes):
        return None
    size, term = max(((s or Fraction(0), t) for s, t in sizes), key=lambda pair: abs(pair[0]))
    return term.xreplace(back), float(size / total)


def crossing(
    flops: sympy.Expr, size: sympy.Expr, dim: str, env: Mapping[str, int]
) -> Callable[[Fraction], str]:
    """In words, for a ridge in FLOP/B: from which value of a dim on ``flops / size`` is on its other side."""
    rest = {k: v for k, v in env.items() if k != dim}
    over = _over(evaluate(flops, rest), evaluate(size, rest), symbol(dim))

    def at(ridge: Fraction) -> str:
        side = over(ridge)
        start, low, high = side(1), 1, 2
        while high <= _LAST and side(high) == start:
            low, high = high, 2 * high
        if high > _LAST:
            return "always compute-bound" if start else "never compute-bound"
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if side(middle) == start else (low, middle)
        return f"{'memory' if start else 'compute'}-bound from {high}"

    return at


def _over(
    flops: sympy.Expr, size: sympy.Expr, x: sympy.Symbol
) -> Callable[[Fraction], Callable[[int], bool]]:
    """Whether ``flops >= ridge * size``, as a function of x; by whole coefficients where both are polynomials."""
    one, two = _coefficients(flops, x), _coefficients(size, x)
    if one is None or two is None:
        return lambda ridge: lambda n: _value(flops, x, n) >= ridge * _value(size, x, n)
    length = max(len(one), len(two))
    above, below = ([Fraction(0)] * (length - len(c)) + c for c in (one, two))

    def side(ridge: Fraction) -> Callable[[int], bool]:
        parts = [a - ridge * b for a, b in zip(above, below, strict=True)]
        common = lcm(*(p.denominator for p in parts))
        whole = [int(p * common) for p in parts]

        def positive(n: int) -> bool:
            total = 0
            for c in whole:
                total = total * n + c
            return total >= 0

        return positive

    return side


def _coefficients(form: sympy.Expr, x: sympy.Symbol) -> list[Fraction] | None:
    """The coefficients of a polynomial of one variable, highest first; None for any other form."""
    if form.has(sympy.floor, sympy.ceiling, sympy.Max, sympy.Min) or not form.is_polynomial(x):
        return None
    found = [_fraction(c) for c in sympy.Poly(form, x).all_coeffs()]
    return None if None in found else [c for c in found if c is not None]


def _value(form: sympy.Expr, x: sympy.Symbol, n: int) -> Fraction:
    return _fraction(form.xreplace({x: sympy.Integer(n)})) or Fraction(0)


def _fraction(value: sympy.Expr) -> Fraction | None:
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else None
