"""Sums of clamped arithmetic progressions, exact for every sign and size.

With ``x+ = max(0, x)``: ``triangle(x) = x+ (x+ + 1) / 2``, and the points of an
``n`` by ``m`` rectangle under a line are four triangles (inclusion and exclusion of
the two far edges), or for a steeper line two clamped sums.
"""

from __future__ import annotations

import sympy

from opspec.analysis.lattice.facts import Facts, positive_part
from opspec.analysis.lattice.symbols import to_sympy
from opspec.ir.integers import ONE, ZERO, Int, floor_div, greatest, least


def triangle(x: Int, facts: Facts) -> sympy.Expr:
    """``1 + 2 + … + x`` for positive x, else 0."""
    p = to_sympy(positive_part(x, facts), facts)
    return p * (p + 1) / 2


def under_line(n: Int, m: Int, slope: Int, c: Int, facts: Facts) -> sympy.Expr:
    """Points ``0 <= i < n, 0 <= j < m`` with ``j <= slope * i + c``; ``n, m >= 0``, slope > 0."""
    if slope == ONE:
        t = (triangle(x, facts) for x in (n + c, n + c - m, c, c - m))
        whole, above, left, both = t
        return whole - above - left + both
    return clamped_sum(n, slope, c + 1, facts) - clamped_sum(n, slope, c + 1 - m, facts)


def clamped_sum(n: Int, slope: Int, c: Int, facts: Facts) -> sympy.Expr:
    """The sum of ``max(0, slope * i + c)`` over ``0 <= i < n``."""
    start = floor_div(slope - 1 - c, slope)
    first = positive_part(start, facts)
    if not facts.proves(n - first):
        first = n if facts.proves(first - n) else least(n, first)
    f, total, s, k = (to_sympy(x, facts) for x in (first, n, slope, c))
    return s * (total * (total - 1) - f * (f - 1)) / 2 + k * (total - f)


def indicator(value: Int, facts: Facts) -> sympy.Expr:
    """1 where ``value >= 0``, else 0; 1 where that follows for non-empty extents."""
    if facts.proves(value, least=1):
        return sympy.Integer(1)
    if facts.proves(-value - 1):
        return sympy.Integer(0)
    return to_sympy(least(ONE, greatest(ZERO, value + 1)), facts)
