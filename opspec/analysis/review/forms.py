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
from opspec.analysis.review.points import Number, coefficients, value

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
        one, two = value(a, env), value(b, env)
        if one is None or two is None:
            if evaluate(a, env) != evaluate(b, env):
                return False
        elif one != two:
            return False
    return True


def growth(form: sympy.Expr, dim: str, around: Mapping[str, Number]) -> int | None:
    """The exponent of a dim as it grows and all others stay: 2 for ``a*T**2 + b*T``. None if it is no power."""
    names = unbound(form)
    if dim not in names:
        return 0
    env = {n: around.get(n, 64) or 1 for n in names}
    near, far = (value(form, {**env, dim: n}) for n in (_FAR, 2 * _FAR))
    if near is None or far is None or near <= 0 or far <= 0:
        return None
    found = log2(Fraction(far) / near)
    return round(found) if abs(found - round(found)) < 1e-6 else None


def dominant(form: sympy.Expr, env: Mapping[str, Number]) -> tuple[sympy.Expr, float] | None:
    """The largest term of a count at a shape, and its share of the whole; None where it is no sum."""
    flat, back = abstract(form)
    if flat.count_ops() > _EXPANDED:
        return None
    terms = sympy.Add.make_args(sympy.expand(flat))
    if len(terms) < 2:
        return None
    sizes = [(value(t.xreplace(back), env), t) for t in terms]
    total = value(form, env)
    if not total or any(s is None for s, _ in sizes):
        return None
    size, term = max(((Fraction(s or 0), t) for s, t in sizes), key=lambda pair: abs(pair[0]))
    return term.xreplace(back), float(size / total)


def crossing(
    flops: sympy.Expr, size: sympy.Expr, dim: str, env: Mapping[str, int]
) -> Callable[[Fraction], str]:
    """In words, for a ridge in FLOP/B: from which value of a dim on ``flops / size`` is on its other side."""
    over = _over(flops, size, dim, {k: v for k, v in env.items() if k != dim})

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
    flops: sympy.Expr, size: sympy.Expr, x: str, rest: Mapping[str, int]
) -> Callable[[Fraction], Callable[[int], bool]]:
    """Whether ``flops >= ridge * size``, as a function of x; by whole coefficients where both are polynomials."""
    one, two = coefficients(flops, rest, x), coefficients(size, rest, x)
    if one is None or two is None:
        work, moved = evaluate(flops, rest), evaluate(size, rest)
        return lambda ridge: lambda n: _at(work, x, n) >= ridge * _at(moved, x, n)
    length = max(len(one), len(two))
    above, below = ([Fraction(0)] * (length - len(c)) + [Fraction(v) for v in c] for c in (one, two))

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


def _at(form: sympy.Expr, x: str, n: int) -> Fraction:
    found = value(form, {x: n})
    return _fraction(form.xreplace({symbol(x): sympy.Integer(n)})) if found is None else Fraction(found)


def _fraction(value: sympy.Expr) -> Fraction:
    return Fraction(int(value.p), int(value.q)) if value.is_Rational else Fraction(0)
