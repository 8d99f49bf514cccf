"""The number of points of a domain, as a closed form in the dims.

Independent groups of indices multiply. A group of one index is an interval, one of
two indices under parallel lines a sum of triangles; anything else with unit
coefficients goes to ``pieces``. Exact for every value of the dims that the op
allows, empty and inverted ranges included.
"""

from __future__ import annotations

from functools import lru_cache

import sympy

from opspec.analysis.lattice import moments, pieces
from opspec.analysis.lattice.cases import alternatives
from opspec.analysis.lattice.domain import Domain, Inexact, bounds_of, data_in
from opspec.analysis.lattice.facts import Facts, positive_part
from opspec.analysis.lattice.series import indicator, under_line
from opspec.analysis.lattice.symbols import to_sympy
from opspec.ir.integers import ONE, Int, greatest, least


@lru_cache(maxsize=16384)
def count_points(domain: Domain, facts: Facts) -> sympy.Expr:
    """How many points the domain has.

    Raises: Inexact where no closed form is known; never a guess.
    """
    cases = alternatives(domain.constraints)
    if cases is not None:
        return sympy.Add(*(count_points(Domain(domain.indices, ()).where(c), facts) for c in cases))
    factors = [indicator(c, facts) for c in domain.constraints if not c.free_indices() and not data_in(c)]
    for names, constraints in components(domain):
        if any(data_in(c) for c in constraints):
            factors.append(moments.count_with_data(Domain(names, constraints), facts, count_points))
        else:
            factors.append(_count_group(names, constraints, facts))
    return sympy.Mul(*factors)


def components(domain: Domain) -> list[tuple[tuple[str, ...], tuple[Int, ...]]]:
    """Groups of indices that share no constraint, with their constraints."""
    group = {x: x for x in domain.indices}

    def root(x: str) -> str:
        while group[x] != x:
            x = group[x]
        return x

    for c in domain.constraints:
        inside = [x for x in domain.indices if x in c.free_indices()]
        for x in inside[1:]:
            group[root(x)] = root(inside[0])
    result: list[tuple[tuple[str, ...], tuple[Int, ...]]] = []
    for head in dict.fromkeys(root(x) for x in domain.indices):
        names = tuple(x for x in domain.indices if root(x) == head)
        inside_names = frozenset(names)
        result.append((names, tuple(c for c in domain.constraints if c.free_indices() & inside_names)))
    return result


def _count_group(names: tuple[str, ...], constraints: tuple[Int, ...], facts: Facts) -> sympy.Expr:
    if len(names) == 1:
        _, size = interval(names[0], constraints, facts)
        return to_sympy(size, facts)
    if len(names) == 2:
        found = _count_pair(names, constraints, facts)
        if found is not None:
            return found
    return pieces.count_by_pieces(names, constraints, facts)


def interval(name: str, constraints: tuple[Int, ...], facts: Facts) -> tuple[Int, Int]:
    """Least value and number of values of one index under constraints on it alone.

    Raises: Inexact if a bound is missing.
    """
    lowers, uppers = bounds_of(name, constraints, facts)
    if not lowers or not uppers:
        raise Inexact(f"index `{name}` has no bound on one side")
    low = _sharpest([facts.quotient(a - 1 - r, a) for a, r in lowers], facts, 1)
    high = _sharpest([facts.quotient(s, b) for b, s in uppers], facts, -1)
    start = greatest(*low) if len(low) > 1 else low[0]
    sizes = [h + 1 - x for h in high for x in low]
    size = least(*sizes) if len(sizes) > 1 else sizes[0]
    return start, positive_part(size, facts)


def _sharpest(values: list[Int], facts: Facts, sign: int) -> list[Int]:
    """The values that no other one provably dominates (``sign`` 1: greatest, -1: least)."""
    kept = list(dict.fromkeys(values))
    for v in list(kept):
        if any(w != v and facts.proves((w - v) * sign) for w in kept):
            kept.remove(v)
    return kept


def _count_pair(names: tuple[str, ...], constraints: tuple[Int, ...], facts: Facts) -> sympy.Expr | None:
    """Two indices in a rectangle between parallel lines; None where it is not of that shape."""
    i, j = names
    alone = {x: tuple(c for c in constraints if c.free_indices() == {x}) for x in names}
    lines: list[tuple[Int, Int, Int]] = []
    for c in constraints:
        if len(c.free_indices()) == 2:
            split = c.affine(names)
            if split is None or len(split[0]) != 2:
                return None
            lines.append((split[0][i], split[0][j], split[1]))
    (i0, n), (j0, m) = interval(i, alone[i], facts), interval(j, alone[j], facts)
    lines = [(a, b, r + a * i0 + b * j0) for a, b, r in lines]
    signs = [(_sign(a, facts), _sign(b, facts)) for a, b, _ in lines]
    if any(0 in s for s in signs) or len({p * q for p, q in signs}) != 1:
        return None
    if signs[0][0] * signs[0][1] > 0:
        lines = [(a, -b, r + b * (m - 1)) for a, b, r in lines]
    slopes = {(a * s, b * -s) for (a, b, _), (s, _) in zip(lines, signs, strict=True)}
    if len(slopes) != 1:
        return None
    slope_i, slope_j = next(iter(slopes))
    if slope_j != ONE:
        if slope_i != ONE:
            return None
        lines, n, m = [(b, a, r) for a, b, r in lines], m, n
        slope_i, slope_j = slope_j, slope_i
    # Now every line reads j <= slope*i + r (j's coefficient -1) or j >= slope*i - r.
    above = [r for _, b, r in lines if b == -ONE]
    below = [-r for _, b, r in lines if b == ONE]
    top = _sharpest(above, facts, -1)
    bottom = _sharpest(below, facts, 1)
    high = least(*top) if len(top) > 1 else (top[0] if top else None)
    low = greatest(*bottom) if len(bottom) > 1 else (bottom[0] if bottom else None)
    if high is None:
        assert low is not None
        return to_sympy(n, facts) * to_sympy(m, facts) - under_line(n, m, slope_i, low - 1, facts)
    if low is None:
        return under_line(n, m, slope_i, high, facts)
    if not facts.proves(high - low + 1):
        high = greatest(high, low - 1)
    return under_line(n, m, slope_i, high, facts) - under_line(n, m, slope_i, low - 1, facts)


def _sign(value: Int, facts: Facts) -> int:
    if value.constant is not None:
        return (value.constant > 0) - (value.constant < 0)
    return 1 if facts.positive(value) else -1 if facts.positive(-value) else 0
