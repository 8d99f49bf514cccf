"""Extents that are data: lengths ``t < len[b]`` and segments ``offs[e] <= n < offs[e+1]``.

The count for one element is a polynomial in the length; over all elements its powers
become named moments, ``sum(len)`` and ``sum(len^2)``. A condition on data that bounds
no declared length counts its full domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import sympy

from opspec.analysis.lattice.domain import Domain, Inexact, data_in, simplify
from opspec.analysis.lattice.facts import Facts
from opspec.analysis.lattice.symbols import abstract, symbol, to_sympy
from opspec.ir.integers import ONE, Atom, Datum, Dim, Int, index

# What a moment sums over all elements, by its name: the tensor of lengths, and the form for one of them.
MEANINGS: dict[str, tuple[str, sympy.Expr]] = {}

Counter = Callable[[Domain, Facts], sympy.Expr]


@dataclass(frozen=True, slots=True)
class _Length:
    """One length that differs by element: what stands for it, over which indices, and the extents that
    they have where all elements take part. ``total``: what the lengths add up to, if known."""

    name: str
    at: tuple[str, ...]
    extents: tuple[Int, ...]
    total: Int | None = None

    @property
    def base(self) -> frozenset[str]:
        """The indices that address the length."""
        return frozenset(self.at)


def count_with_data(domain: Domain, facts: Facts, count: Counter) -> sympy.Expr:
    """Points of a group of indices in which some constraint reads data."""
    constraints = list(domain.constraints)
    rules: dict[Datum, Int] = {}
    lengths: list[_Length] = []
    known: list[Int] = []
    for first, second in _segments(constraints):
        start, size = Dim(f"start({first.tensor})"), Dim(f"seg({first.tensor})")
        rules[first], rules[second] = Int.of(start), Int.of(start) + Int.of(size)
        top = _segment_top(constraints, first, second)
        if top is not None:
            known.append(top - Int.of(start) - Int.of(size))
        many = tuple(n - 1 for n in dict(facts.extents).get(first.tensor, ()))
        lengths.append(_Length(size.name, (str(first.indices[0].index),), many, top))
    for c in constraints:
        for atom in c.atoms():
            if not isinstance(atom, Datum) or atom in rules:
                continue
            slacks = [s for t, s in facts.lengths if t == atom.tensor]
            if not slacks or any(i.index is None for i in atom.indices):
                continue
            if any(x.name == atom.tensor for x in lengths):
                raise Inexact(f"`{atom.tensor}` is read at two places to bound one domain")
            stand_in = Int.of(Dim(atom.tensor))
            rules[atom] = stand_in
            known += [s.substitute(_data_as({}, stand_in)) for s in slacks]
            at = tuple(str(i.index) for i in atom.indices)
            lengths.append(_Length(atom.tensor, at, dict(facts.extents).get(atom.tensor, ())))
    constraints = [c.substitute(_data_as(rules, None)) for c in constraints]
    constraints = [c for c in constraints if not data_in(c)]
    base = frozenset().union(*(x.base for x in lengths)) if lengths else frozenset()
    outer = [c for c in constraints if c.free_indices() and c.free_indices() <= base]
    inner = [c for c in constraints if not c.free_indices() <= base or not c.free_indices()]
    if any(c.free_indices() & base for c in inner):
        raise Inexact(f"`{', '.join(sorted(base))}` bounds an index in itself and through data")
    over = Domain(tuple(x for x in domain.indices if x in base), tuple(simplify(outer)))
    under = Domain(tuple(x for x in domain.indices if x not in base), tuple(simplify(inner)))
    each = count(under, facts.with_known(known))
    return _moments(each, over, lengths, facts, count)


def _data_as(rules: Mapping[Datum, Int], other: Int | None) -> Callable[[Atom], Int | None]:
    """A replacement of data by what stands for it."""
    return lambda a: rules.get(a, other) if isinstance(a, Datum) else None


def _segments(constraints: list[Int]) -> Iterator[tuple[Datum, Datum]]:
    """Pairs ``offs[e]``, ``offs[e + 1]`` that bound an index from below and above."""
    data = dict.fromkeys(a for c in constraints for a in c.atoms() if isinstance(a, Datum))
    for first in data:
        if len(first.indices) != 1 or first.indices[0].index is None:
            continue
        second = Datum(first.tensor, (first.indices[0] + 1,))
        if second in data:
            yield first, second


def _segment_top(constraints: list[Int], first: Datum, second: Datum) -> Int | None:
    """The extent of the rows that the segments divide: N for ``n < N``."""
    for c in constraints:
        if not any(a in (first, second) for a in c.atoms()):
            continue
        names = [x for x in c.free_indices() if x not in first.indices[0].free_indices()]
        if len(names) != 1:
            continue
        for bound in constraints:
            split = bound.affine(names)
            if not data_in(bound) and split and split[0].get(names[0]) == -ONE:
                return split[1] + 1
    return None


def _moments(
    each: sympy.Expr, over: Domain, lengths: list[_Length], facts: Facts, count: Counter
) -> sympy.Expr:
    """The sum over the elements of ``each``, a polynomial in the lengths."""
    marks = {symbol(x.name): x for x in lengths}
    starts = {s for s in each.free_symbols if s.name.startswith("start(")}
    if starts:
        raise Inexact("a count depends on where a segment starts")
    flat, back = abstract(each)
    generators = [s for s in flat.free_symbols if (back.get(s) or s).free_symbols & marks.keys()]
    generators.sort(key=lambda s: str(back.get(s) or s))
    if not generators:
        return each * count(over, facts)
    polynomial = sympy.Poly(flat, *generators)
    total = sympy.Integer(0)
    for powers, coefficient in polynomial.terms():
        factor = coefficient.xreplace(back)
        named = [(back.get(g, g), p) for g, p in zip(generators, powers, strict=True) if p]
        if not named:
            total += factor * count(over, facts)
            continue
        part = [x for s, x in marks.items() if any(g.has(s) for g, _ in named)]
        used = frozenset().union(*(x.base for x in part))
        if any(c.free_indices() & used and c.free_indices() - used for c in over.constraints):
            raise Inexact(f"`{', '.join(sorted(used))}` addresses data and bounds another index")
        free = Domain(
            tuple(x for x in over.indices if x not in used),
            tuple(c for c in over.constraints if not c.free_indices() & used),
        )
        total += factor * count(free, facts) * _moment(named, part, used, over, facts)
    return total


def _moment(
    named: list[tuple[sympy.Expr, int]],
    part: list[_Length],
    used: frozenset[str],
    over: Domain,
    facts: Facts,
) -> sympy.Expr:
    """The sum of a product of powers of lengths: what it is known to be, or a symbol named after it.

    The name says over which elements, unless over all of them.
    """
    limits = [c for c in over.constraints if c.free_indices() & used]
    every = [
        b
        for x in part
        for name, n in zip(x.at, x.extents, strict=False)
        for b in (index(name), n - 1 - index(name))
    ]
    rest = [c for c in limits if c not in every]
    if not rest and len(part) == 1 and len(named) == 1 and named[0] == (symbol(part[0].name), 1):
        total = part[0].total
        if total is not None:
            return to_sympy(total, facts)
    text = "*".join(f"{g}^{p}" if p > 1 else str(g) for g, p in named)
    if not rest and len(part) == 1:
        MEANINGS[f"sum({text})"] = (part[0].name, sympy.Mul(*(g**p for g, p in named)))
    names = {name: f"#{k}" for k, name in enumerate(dict.fromkeys(n for x in part for n in x.at))}
    where = " and ".join(sorted(f"{c.rename(names)} >= 0" for c in rest))
    return symbol(f"sum({text} where {where})" if rest else f"sum({text})")
