"""What of an op differs: closed forms, numbers at a workload, and the resource that binds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy

from opspec.analysis.costs import OpCost
from opspec.analysis.export import byte_totals, flop_totals, workload_dtypes
from opspec.analysis.forms import tidy
from opspec.analysis.lattice.symbols import symbol
from opspec.analysis.query.answer import python_form
from opspec.analysis.review.forms import dominant, growth, same
from opspec.analysis.review.model import Flip, FormChange, NumberChange
from opspec.analysis.review.numbers import At
from opspec.analysis.review.points import Number
from opspec.ir.program import Op, Workload

_UNITS = {"ai": "FLOP/B", "ai.tensor": "FLOP/B", "bytes": "B", "bytes.read": "B", "bytes.write": "B"}
_NOISE = 1e-12


def forms_of(costs: OpCost) -> dict[tuple[str, str], sympy.Expr]:
    """(boundary, quantity) → closed form."""
    found: dict[tuple[str, str], sympy.Expr] = {("", k): v for k, v in flop_totals(costs.flops).items()}
    for b in costs.boundaries:
        found |= {(b, k): v for k, v in byte_totals(costs, b).items()}
        found[b, "launches"] = sympy.Integer(len(costs.boundaries[b]))
    return found


def changed_forms(
    old: OpCost, new: OpCost, renamed: Mapping[str, str], around: Mapping[str, Number]
) -> tuple[FormChange, ...]:
    """The forms that differ by value, with largest terms and exponents as they are ``around`` a shape."""
    changed: list[FormChange] = []
    one, two = forms_of(old), forms_of(new)
    names = {symbol(a): symbol(b) for a, b in renamed.items()}
    for key in dict.fromkeys([*two, *one]):
        boundary, quantity = key
        a, b = one.get(key), two.get(key)
        if a is not None:
            a = a.xreplace(names)
        if a is None or b is None:
            if boundary and not any(k[0] == boundary for k in (one if a is None else two)):
                continue
            a, b = a or sympy.Integer(0), b or sympy.Integer(0)
        if same(a, b):
            continue
        dims = list(dict.fromkeys([*new.symbols, *(renamed.get(d, d) for d in old.symbols)]))
        powers = ((d, growth(a, d, around), growth(b, d, around)) for d in dims)
        changed.append(
            FormChange(
                quantity=quantity,
                unit=unit_of(quantity),
                boundary=boundary,
                before=python_form(tidy(a), unit_of(quantity)),
                after=python_form(tidy(b), unit_of(quantity)),
                dominant_before=_dominant(a, quantity, around),
                dominant_after=_dominant(b, quantity, around),
                growth=tuple(p for p in powers if p[1] != p[2]),
            )
        )
    return tuple(changed)


def _dominant(form: sympy.Expr, quantity: str, around: Mapping[str, Number]) -> str:
    found = dominant(form, around) if around and not quantity.startswith("ai") else None
    return f"{python_form(found[0], unit_of(quantity))} ({found[1]:.0%})" if found else ""


def around_of(op: Op, *workloads: Sequence[Workload]) -> dict[str, Number]:
    """The first shape that is known, lengths included, with the sizes of free dtype parameters as that workload has them."""
    for w in (w for ws in workloads for w in ws):
        types = workload_dtypes(
            op, replace(w, dtypes=tuple(d for d in w.dtypes if d[0] in parameters_of(op)))
        )
        sizes = {f"sizeof({k})": max(1, v.bits // 8) for k, v in types.items()}
        return {**sizes, **dict(w.cases[0][1]), **w.moments(w.cases[0][1])}
    return {}


def parameters_of(op: Op) -> set[str]:
    """Names of the dtype parameters."""
    return {p.name for p in op.dtype_params}


def unit_of(quantity: str) -> str:
    """The unit of a quantity."""
    return "" if quantity == "launches" else _UNITS.get(quantity, "FLOP")


def changed_numbers(workload: str, boundary: str, one: At | None, two: At | None) -> list[NumberChange]:
    """The numbers that differ, or all of the side that is there."""
    found: list[NumberChange] = []

    def add(machine: str, quantity: str, unit: str, a: float | None, b: float | None) -> None:
        if a is None or b is None or abs(a - b) > _NOISE * max(abs(a), abs(b)):
            found.append(
                NumberChange(
                    workload=workload,
                    machine=machine,
                    boundary=boundary,
                    quantity=quantity,
                    unit=unit,
                    before=a,
                    after=b,
                )
            )

    some = two or one
    assert some is not None
    for q in some.counts:
        add("", q, unit_of(q), one.counts.get(q) if one else None, two.counts.get(q) if two else None)
    for m in some.times:
        add(m, "time", "s", one.times.get(m) if one else None, two.times.get(m) if two else None)
    return found


def flips_of(workload: str, boundary: str, one: At, two: At) -> list[Flip]:
    """Machines on which another resource binds now."""
    return [
        Flip(workload=workload, machine=m, boundary=boundary, before=one.bounds[m], after=two.bounds[m])
        for m in two.bounds
        if one.bounds[m] != two.bounds[m]
    ]
