"""Alternatives in a domain: ``j < max(P, i + 1)``, the points of one bound or the other.

Counted, they fall into disjoint cases, by which bound is the greatest. For the shadow of such a domain no cases
are needed where an index only moves the bound one way: it stands at its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from opspec.ir.integers import Greatest, Index, Int, Least


def alternatives(constraints: tuple[Int, ...]) -> list[tuple[Int, ...]] | None:
    """The constraints in cases that are disjoint and together the same; None if they hold no alternative."""
    for place, c in enumerate(constraints):
        found = _choice(c)
        if found is None:
            continue
        rest = (*constraints[:place], *constraints[place + 1 :])
        others, values = found
        return [(*rest, value, *_first(others, k)) for k, value in enumerate(values)]
    return None


def any_of(c: Int) -> list[Int]:
    """Constraints of which any one is enough; none where there is no alternative."""
    found = _choice(c)
    return [] if found is None else found[1]


def _first(slopes: list[Int], k: int) -> Iterator[Int]:
    """Conditions under which the k-th is the largest, and the first of those that are."""
    for n, other in enumerate(slopes):
        if n != k:
            yield slopes[k] - other - (1 if n < k else 0)


def _choice(c: Int) -> tuple[list[Int], list[Int]] | None:
    """Of a constraint that holds if it does for any of several values: what is compared, and the constraints."""
    for monomial, k in c.terms:
        if len(monomial) != 1 or monomial[0][1] != 1:
            continue
        atom = monomial[0][0]
        if not isinstance(atom, Least | Greatest) or not Int.of(atom).free_indices():
            continue
        rest = c - Int(((monomial, k),))
        if isinstance(atom, Greatest) and k > 0:
            return list(atom.args), [rest + a * k for a in atom.args]
        if isinstance(atom, Least) and k < 0:
            return [-a for a in atom.args], [rest + a * k for a in atom.args]
    return None


def settle(name: str, touching: list[Int], end: tuple[Int, Int] | None) -> list[Int]:
    """``touching`` with the index at its least or greatest value (``end``) inside alternatives that only grow
    towards it. Other constraints are left as they are.
    """
    if end is None:
        return touching
    return [_settled(name, c, end) for c in touching]


def _settled(name: str, c: Int, end: tuple[Int, Int]) -> Int:
    found = _choice(c)
    if found is None:
        return c
    slopes = set()
    for value in found[1]:
        if name not in value.free_indices():
            continue
        linear = value.affine([name])
        k = linear[0][name].constant if linear is not None and name in linear[0] else None
        slopes.add(None if k is None else k > 0)
    if len(slopes) != 1 or None in slopes:
        return c
    at = end[1] if True in slopes else end[0]
    return _replace(c, name, at)


def _replace(c: Int, name: str, at: Int) -> Int:
    return c.substitute(lambda a: at if isinstance(a, Index) and a.name == name else None)
