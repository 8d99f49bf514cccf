"""Questions about the domain of a reduction: can it be empty, and where does a stream start and stop."""

from __future__ import annotations

from opspec.ir.bounds import eliminate
from opspec.ir.dtypes import BOOL, I64
from opspec.ir.integers import ZERO, Greatest, Index, Int, Least, index
from opspec.ir.values import Binary, Compare, Extent, Literal, Value


def bounds(axis: str, extent: Int, constraints: tuple[Int, ...]) -> tuple[list[Int], list[Int]] | None:
    """Lower and (exclusive) upper bounds of an axis, from constraints with coefficient ±1.

    None if some constraint on the axis has another coefficient.
    """
    lowers, uppers = [Int.of(0)], [extent]
    for c in constraints:
        if axis not in c.free_indices():
            continue
        split = c.affine([axis])
        if split is None:
            return None
        coefficients, rest = split
        match coefficients[axis].constant:
            case 1:
                lowers.append(-rest)
            case -1:
                uppers.append(rest + 1)
            case _:
                return None
    return lowers, uppers


def slope(value: Int, name: str) -> int | None:
    """1 where an expression only grows with an index, -1 where it only falls, 0 without it; else None."""
    signs: set[int | None] = set()
    for monomial, k in value.terms:
        if not any(name in Int.of(a).free_indices() for a, _ in monomial):
            continue
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        match atom:
            case Index():
                inner: set[int | None] = {1}
            case Least(args) | Greatest(args):
                inner = {slope(a, name) for a in args} - {0}
            case _:
                inner = {None}
        signs |= {None if s is None else s if k > 0 else -s for s in inner}
    return next(iter(signs), 0) if len(signs) < 2 else None


def nonempty(over: tuple[str, ...], extents: dict[str, Int], constraints: tuple[Int, ...]) -> Value | None:
    """A condition on the outer indices that holds exactly where the domain has a point.

    None if it can't be written for this domain. Where a constraint has several of the reduced axes, each index must
    stand in it bare or with a minus.
    """
    if any(len(c.free_indices() & set(over)) > 1 for c in constraints):
        return _projected(over, extents, constraints)
    tests: list[Value] = []
    for axis in over:
        found = bounds(axis, extents[axis], constraints)
        if found is None:
            return None
        lowers, uppers = found
        for low in lowers:
            for high in uppers:
                a, b = Extent(value=low, dtype=I64), Extent(value=high, dtype=I64)
                plain = low.constant is not None
                tests.append(
                    Compare(op="gt" if plain else "lt", a=b if plain else a, b=a if plain else b, dtype=BOOL)
                )
    return _all(tests)


def _projected(over: tuple[str, ...], extents: dict[str, Int], constraints: tuple[Int, ...]) -> Value | None:
    """The condition where pairs of reduced indices are constrained: what is left when all are eliminated."""
    left = [*constraints, *(b for a in over for b in (index(a), extents[a] - 1 - index(a)))]
    for axis in over:
        rest, exact = eliminate(axis, left)
        if not exact:
            return None
        left = list(rest)
    none = Extent(value=ZERO, dtype=I64)
    tests: list[Value] = [Compare(op="ge", a=Extent(value=c, dtype=I64), b=none, dtype=BOOL) for c in left]
    return _all(tests or [Literal(value=True, dtype=BOOL)])


def _all(tests: list[Value]) -> Value:
    result = tests[0]
    for test in tests[1:]:
        result = Binary(op="and", a=result, b=test, dtype=BOOL)
    return result
