"""Where ``ai.tensor`` crosses the ridge, and whether that moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import sympy

from opspec.analysis.costs import OpCost, cost
from opspec.analysis.export import workload_dtypes
from opspec.analysis.machine import Machine
from opspec.analysis.query.context import Context
from opspec.analysis.review.forms import crossing
from opspec.analysis.review.model import Crossing
from opspec.analysis.roofline import contraction_dtype
from opspec.ir.program import Op, Workload


def find_crossings(
    before: Op,
    after: Op,
    old: Workload,
    new: Workload,
    renamed: Mapping[str, str],
    machines: tuple[Sequence[Machine], Sequence[Machine]],
) -> list[Crossing]:
    """Crossings of ``ai.tensor`` that moved; none for a distribution or lengths that are data: no one shape."""
    if len(new.cases) != 1 or new.lengths or old.lengths:
        return []
    sides = []
    for op, w in ((before, old), (after, new)):
        costs = cost(op, workload_dtypes(op, w))
        sides.append((costs, dict(w.cases[0][1]), contraction_dtype(costs)))
    (one, env_one, type_one), (two, env_two, type_two) = sides
    if type_one is None or type_two is None:
        return []
    back = {v: k for k, v in renamed.items()}
    found: list[Crossing] = []
    lines_one, lines_two = _lines(before, one), _lines(after, two)
    for dim in (d for d in lines_two if back.get(d, d) in lines_one):
        a = _crossing_along(one, back.get(dim, dim), lines_one[back.get(dim, dim)], env_one)
        b = _crossing_along(two, dim, lines_two[dim], env_two)
        for m, mine in zip(*machines, strict=True):
            was, now = a(_ridge(m, type_one)), b(_ridge(mine, type_two))
            if was != now:
                found.append(
                    Crossing(workload=new.name, machine=m.name, boundary="", dim=dim, before=was, after=now)
                )
    return found


def _lines(op: Op, costs: OpCost) -> dict[str, tuple[sympy.Symbol, sympy.Expr]]:
    """What to vary: name → (a dim, what replaces it). A derived ``G = Hq // Hkv`` stands for the dim that it
    is made of, so that only shapes which the op takes are met."""
    context = Context(op=op, costs=costs)
    derived = {n: context.pinned(n) for n in costs.derived}
    found = {n: p for n, p in derived.items() if p is not None and _whole(p[1])}
    taken = {p[0].name for p in found.values()}
    return {**{d: (s, s) for d, s in costs.symbols.items() if d not in taken}, **found}


def _whole(form: sympy.Expr) -> bool:
    """Whether a form is a polynomial with whole coefficients: whole for every whole extent."""
    names = sorted(form.free_symbols, key=str)
    return bool(form.is_polynomial(*names)) and all(c.is_Integer for c in sympy.Poly(form, *names).coeffs())


def _crossing_along(
    costs: OpCost, name: str, line: tuple[sympy.Symbol, sympy.Expr], env: Mapping[str, int]
) -> Callable[[Fraction], str]:
    old, new = line
    flops, size = (f.xreplace({old: new}) for f in (costs.total_flops("tensor"), costs.total_bytes()))
    return crossing(flops, size, name, {k: v for k, v in env.items() if k != old.name})


def _ridge(machine: Machine, dtype: str) -> Fraction:
    peak = machine.peak(dtype)
    return Fraction(repr(float(peak[1] if peak else machine.vector))) / Fraction(
        repr(float(machine.bandwidth))
    )
