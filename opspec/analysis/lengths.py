"""The numbers of a workload's shape: its dims, and the moments of lengths that are data."""

from __future__ import annotations

from fractions import Fraction

import sympy

from opspec.analysis.costs import OpCost
from opspec.analysis.forms import evaluate, unbound
from opspec.analysis.lattice.moments import MEANINGS
from opspec.analysis.lattice.symbols import symbol
from opspec.ir.program import Lengths, Workload

Dims = tuple[tuple[str, int], ...]


def shape_numbers(workload: Workload, dims: Dims, costs: OpCost) -> dict[str, int | Fraction]:
    """Dims, powers such as ``sum(len^2)``, and every other moment that the costs name and the lengths determine.

    The number of pages that a row takes, ``sum(floor(len / P))``, follows from the lengths themselves and not from
    their mean; where only a mean is known it stays open.
    """
    found: dict[str, int | Fraction] = {**dict(dims), **workload.moments(dims)}
    if not workload.lengths:
        return found
    known = {n.tensor: n for n in workload.lengths if n.exact}
    names = {n for t in costs.flops for n in unbound(t.count)}
    names |= {
        n
        for blocks in costs.boundaries.values()
        for b in blocks
        for t in b.bytes
        for n in unbound(t.elements)
    }
    for name in sorted(names - found.keys()):
        tensor, form = MEANINGS.get(name, ("", sympy.Integer(0)))
        if tensor in known:
            total = _expected(known[tensor], evaluate(form, found), dict(dims))
            if total is not None:
                found[name] = total
    return found


def _expected(lengths: Lengths, form: sympy.Expr, dims: dict[str, int]) -> Fraction | None:
    """The sum of a form of one length over all elements; None if it holds something else."""
    x = symbol(lengths.tensor)
    if set(unbound(form)) - {x.name}:
        return None
    weight = sum((w for w, _ in lengths.values), Fraction(0))
    total = Fraction(0)
    for w, v in lengths.values:
        value = form.xreplace({x: sympy.Rational(v.numerator, v.denominator)})
        if not value.is_Rational:
            return None
        total += w * Fraction(int(value.p), int(value.q))
    return total * lengths.elements(dims) / weight
