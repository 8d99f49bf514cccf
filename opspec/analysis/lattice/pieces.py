"""Counting by elimination with case splits: chains of three and more coupled indices.

An index between one lower and one upper bound contributes a polynomial in the other
indices. Where several bounds compete, the domain is cut into disjoint pieces by which
of them is the sharpest. What remains at the end are conditions on dims alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

import sympy

from opspec.analysis.lattice.domain import Inexact, bounds_of, simplify
from opspec.analysis.lattice.facts import Facts
from opspec.analysis.lattice.series import indicator
from opspec.analysis.lattice.symbols import to_sympy
from opspec.ir.integers import ONE, ZERO, Int, floor_div, index

_MOST_PIECES = 80


@dataclass(frozen=True, slots=True)
class Weight:
    """A polynomial ``num / den`` with integer ``den > 0``."""

    num: Int
    den: int


def count_by_pieces(names: tuple[str, ...], constraints: tuple[Int, ...], facts: Facts) -> sympy.Expr:
    """Points of a domain whose bounds have unit coefficients.

    Raises: Inexact for other coefficients or where the pieces are too many.
    """
    budget = [_MOST_PIECES]
    parts = _sum_over(names, constraints, Weight(ONE, 1), facts, budget)
    return sympy.Add(*parts)


def _sum_over(
    names: tuple[str, ...], constraints: tuple[Int, ...], weight: Weight, facts: Facts, budget: list[int]
) -> list[sympy.Expr]:
    budget[0] -= 1
    if budget[0] < 0:
        raise Inexact(f"the domain of `{', '.join(names)}` falls into too many pieces")
    if not names:
        guards = (indicator(c, facts) for c in constraints)
        return [sympy.Mul(to_sympy(weight.num, facts) / weight.den, *guards)]
    name, lowers, uppers = _easiest(names, constraints, facts)
    rest_names = tuple(x for x in names if x != name)
    others = tuple(c for c in constraints if name not in c.free_indices())
    found: list[sympy.Expr] = []
    for low, lower_cuts in _choices(lowers, 1):
        for high, upper_cuts in _choices(uppers, -1):
            cuts = [*lower_cuts, *upper_cuts, high - low + 1]
            if any(facts.proves(-c - 1, others) for c in cuts):
                continue
            kept = [c for c in cuts if not facts.proves(c, others)]
            piece = tuple(simplify([*others, *kept]))
            found += _sum_over(rest_names, piece, _sum(weight, name, low, high), facts, budget)
    return found


def _easiest(
    names: tuple[str, ...], constraints: tuple[Int, ...], facts: Facts
) -> tuple[str, list[Int], list[Int]]:
    """The index with the fewest competing bounds, with those bounds."""
    best: tuple[int, str, list[Int], list[Int]] | None = None
    for name in names:
        lowers, uppers = bounds_of(name, constraints, facts)
        if not lowers or not uppers:
            raise Inexact(f"index `{name}` has no bound on one side")
        if any(k != ONE and r.free_indices() for k, r in (*lowers, *uppers)):
            continue
        others = tuple(c for c in constraints if name not in c.free_indices())
        low = _undominated([floor_div(k - 1 - r, k) for k, r in lowers], facts, others, 1)
        high = _undominated([floor_div(s, k) for k, s in uppers], facts, others, -1)
        if best is None or len(low) * len(high) < best[0]:
            best = (len(low) * len(high), name, low, high)
    if best is None:
        raise Inexact(f"the indices `{', '.join(names)}` are coupled with coefficients other than 1")
    return best[1:]


def _undominated(values: list[Int], facts: Facts, context: tuple[Int, ...], sign: int) -> list[Int]:
    kept = list(dict.fromkeys(values))
    for v in list(kept):
        if any(w != v and facts.proves((w - v) * sign, context) for w in kept):
            kept.remove(v)
    return kept


def _choices(values: list[Int], sign: int) -> list[tuple[Int, list[Int]]]:
    """Each value with the conditions under which it is the sharpest; ties go to the first."""
    result: list[tuple[Int, list[Int]]] = []
    for k, v in enumerate(values):
        cuts = [(v - w) * sign - (1 if p < k else 0) for p, w in enumerate(values) if p != k]
        result.append((v, cuts))
    return result


def _sum(weight: Weight, name: str, low: Int, high: Int) -> Weight:
    """The sum of a weight over ``low <= name <= high``, valid for ``high >= low - 1``."""
    by_power: dict[int, Int] = {}
    x = index(name).atom
    for monomial, c in weight.num.terms:
        power = dict(monomial).get(x, 0)  # type: ignore[arg-type]
        left = tuple((a, p) for a, p in monomial if a != x)
        by_power[power] = by_power.get(power, ZERO) + Int(((left, c),))
    total, den = ZERO, weight.den
    scale = 1
    for power in by_power:
        for q in faulhaber(power):
            scale = scale * q.denominator // _gcd(scale, q.denominator)
    for power, factor in by_power.items():
        total = total + factor * (_power_sum(power, high, scale) - _power_sum(power, low - 1, scale))
    return Weight(total, den * scale)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def _power_sum(power: int, top: Int, scale: int) -> Int:
    """``scale`` times the polynomial that is ``1**p + … + top**p``."""
    total, x = ZERO, ONE
    for q in faulhaber(power):
        total = total + x * int(q * scale)
        x = x * top
    return total


@lru_cache(maxsize=64)
def faulhaber(power: int) -> tuple[Fraction, ...]:
    """Coefficients (constant first) of ``S(n)`` with ``S(n) - S(n-1) = n**power``, ``S(-1) = 0``.

    For power 0 that is ``n + 1``, otherwise the usual sum from 1 with ``S(0) = 0``.
    """
    if power == 0:
        return (Fraction(1), Fraction(1))
    # (n+1)**(p+1) - 1 = sum over k of C(p+1, k) * S_k(n) with S_0 counted as n + 1 here.
    size = power + 1
    total = [Fraction(comb(size, k)) for k in range(size + 1)]
    for k in range(power):
        for at, q in enumerate(faulhaber(k)):
            total[at] -= comb(size, k) * q
    return tuple(q / size for q in total)
