"""Two checked modules of one spec → what differs, op by op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy

from opspec.analysis.costs import OpCost, cost
from opspec.analysis.export import byte_totals, flop_totals, workload_dtypes
from opspec.analysis.forms import tidy
from opspec.analysis.lattice.symbols import symbol
from opspec.analysis.machine import Machine
from opspec.analysis.query.answer import python_form
from opspec.analysis.review.budgets import compare_budgets
from opspec.analysis.review.crossings import find_crossings
from opspec.analysis.review.forms import dominant, growth, same
from opspec.analysis.review.model import (
    Flip,
    FormChange,
    NumberChange,
    OpReview,
    SpecReview,
)
from opspec.analysis.review.numbers import At, at_workload
from opspec.diagnostics import Failure
from opspec.ir.program import Module, Op, Workload

_UNITS = {"ai": "FLOP/B", "ai.tensor": "FLOP/B", "bytes": "B", "bytes.read": "B", "bytes.write": "B"}
_NOISE = 1e-12


def compare_modules(
    base: Module | None, head: Module | None, *, path: str, machines: Sequence[Machine]
) -> SpecReview:
    """The review of one spec; None stands for a file that is not there (or that was refused).

    Never raises for what a spec holds: an op that can't be counted is noted.
    """
    before = {o.name: o for o in base.ops} if base else {}
    after = {o.name: o for o in head.ops} if head else {}
    ops: list[OpReview] = []
    for name in dict.fromkeys([*after, *before]):
        if name not in before and head is not None:
            ops.append(_alone(after[name], head, "added", machines))
        elif name not in after and base is not None:
            ops.append(_alone(before[name], base, "removed", machines))
        elif base is not None and head is not None:
            ops.append(_compare(before[name], after[name], base, head, machines))
    return SpecReview(path=path, ops=tuple(ops), budgets=compare_budgets(base, head))


def _alone(op: Op, module: Module, kind: str, machines: Sequence[Machine]) -> OpReview:
    """An op that only one revision has, with its forms and numbers on that side."""
    new = kind == "added"
    try:
        costs = cost(op)
        forms = [
            FormChange(
                quantity=q,
                unit=_unit(q),
                boundary=b,
                before="" if new else python_form(tidy(f), _unit(q)),
                after=python_form(tidy(f), _unit(q)) if new else "",
            )
            for (b, q), f in _forms(costs).items()
            if f != 0 and not b
        ]
        numbers: list[NumberChange] = []
        for w in module.workloads_of(op.name):
            found = at_workload(op, w, machines)
            if found is not None:
                numbers += _numbers(w.name, "", None if new else found[""], found[""] if new else None)
    except Failure as failure:
        return OpReview(op=op.name, kind="added" if new else "removed", notes=tuple(map(str, failure.args)))
    return OpReview(
        op=op.name, kind="added" if new else "removed", forms=tuple(forms), numbers=tuple(numbers)
    )


def _compare(before: Op, after: Op, base: Module, head: Module, machines: Sequence[Machine]) -> OpReview:
    edited = replace(before, doc="") != replace(after, doc="")
    was, now = base.workloads_of(before.name), head.workloads_of(after.name)
    notes = [*_workload_notes(was, now)]
    if not edited:
        return OpReview(op=after.name, kind="same", notes=tuple(notes))
    renamed = _renamed(before, after)
    try:
        old, new = cost(before), cost(after)
    except Failure as failure:
        return OpReview(op=after.name, kind="changed", notes=(*notes, *map(str, failure.args)), edited=True)
    forms = _changed_forms(old, new, dict(renamed), _around(after, now, was))
    numbers, flips, crossings = [], [], []
    for w in now or was:
        theirs = _translated(w, before, dict(renamed))
        if theirs is None:
            notes.append(f"no numbers at {w.name}: the op had other dims before")
            continue
        one, two = at_workload(before, theirs, machines), at_workload(after, w, machines)
        if one is None or two is None:
            continue
        for b in (b for b in two if b in one):
            numbers += _numbers(w.name, b, one[b], two[b])
            flips += _flips(w.name, b, one[b], two[b])
        if any(f.quantity == "ai.tensor" for f in forms):
            crossings += find_crossings(before, after, theirs, w, dict(renamed), machines)
    kind = forms or numbers or flips
    return OpReview(
        op=after.name,
        kind="changed" if kind else "same",
        renamed=renamed,
        forms=forms,
        numbers=tuple(numbers),
        flips=tuple(flips),
        crossings=tuple(crossings),
        notes=tuple(notes),
        edited=True,
    )


def _renamed(before: Op, after: Op) -> tuple[tuple[str, str], ...]:
    """Dims that have another name now, taken by their place in the declaration."""
    if len(before.dims) != len(after.dims):
        return ()
    gone = [d for d in before.dims if d not in after.dims]
    pairs = [(a, b) for a, b in zip(before.dims, after.dims, strict=True) if a != b]
    return tuple(pairs) if {a for a, _ in pairs} == set(gone) else ()


def _translated(workload: Workload, before: Op, renamed: Mapping[str, str]) -> Workload | None:
    """A workload of the new op for the old one; None if dims are missing."""
    back = {v: k for k, v in renamed.items()}
    cases = tuple((w, tuple((back.get(n, n), v) for n, v in dims)) for w, dims in workload.cases)
    if any(set(before.dims) - {n for n, _ in dims} for _, dims in cases):
        return None
    known = _parameters(before)
    return replace(
        workload, op=before.name, cases=cases, dtypes=tuple(d for d in workload.dtypes if d[0] in known)
    )


def _forms(costs: OpCost) -> dict[tuple[str, str], sympy.Expr]:
    """(boundary, quantity) → closed form."""
    found: dict[tuple[str, str], sympy.Expr] = {("", k): v for k, v in flop_totals(costs.flops).items()}
    for b in costs.boundaries:
        found |= {(b, k): v for k, v in byte_totals(costs, b).items()}
        found[b, "launches"] = sympy.Integer(len(costs.boundaries[b]))
    return found


def _changed_forms(
    old: OpCost, new: OpCost, renamed: Mapping[str, str], around: Mapping[str, int]
) -> tuple[FormChange, ...]:
    changed: list[FormChange] = []
    one, two = _forms(old), _forms(new)
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
                unit=_unit(quantity),
                boundary=boundary,
                before=python_form(tidy(a), _unit(quantity)),
                after=python_form(tidy(b), _unit(quantity)),
                dominant_before=_dominant(a, quantity, around),
                dominant_after=_dominant(b, quantity, around),
                growth=tuple(p for p in powers if p[1] != p[2]),
            )
        )
    return tuple(changed)


def _dominant(form: sympy.Expr, quantity: str, around: Mapping[str, int]) -> str:
    found = dominant(form, around) if around and not quantity.startswith("ai") else None
    return f"{python_form(found[0], _unit(quantity))} ({found[1]:.0%})" if found else ""


def _around(op: Op, *workloads: Sequence[Workload]) -> dict[str, int]:
    """The first shape that is known, with the sizes of free dtype parameters as that workload has them."""
    for w in (w for ws in workloads for w in ws):
        types = workload_dtypes(op, replace(w, dtypes=tuple(d for d in w.dtypes if d[0] in _parameters(op))))
        return {**{f"sizeof({k})": max(1, v.bits // 8) for k, v in types.items()}, **dict(w.cases[0][1])}
    return {}


def _parameters(op: Op) -> set[str]:
    return {p.name for p in op.dtype_params}


def _unit(quantity: str) -> str:
    return "" if quantity == "launches" else _UNITS.get(quantity, "FLOP")


def _numbers(workload: str, boundary: str, one: At | None, two: At | None) -> list[NumberChange]:
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
        add("", q, _unit(q), one.counts.get(q) if one else None, two.counts.get(q) if two else None)
    for m in some.times:
        add(m, "time", "s", one.times.get(m) if one else None, two.times.get(m) if two else None)
    return found


def _flips(workload: str, boundary: str, one: At, two: At) -> list[Flip]:
    return [
        Flip(workload=workload, machine=m, boundary=boundary, before=one.bounds[m], after=two.bounds[m])
        for m in two.bounds
        if one.bounds[m] != two.bounds[m]
    ]


def _workload_notes(was: Sequence[Workload], now: Sequence[Workload]) -> list[str]:
    old, new = {w.name: w for w in was}, {w.name: w for w in now}
    notes = [f"workload {n} is new" for n in new if n not in old]
    notes += [f"workload {n} is gone" for n in old if n not in new]
    moved = [n for n in new if n in old and new[n] != old[n]]
    return [*notes, *(f"workload {n} has another shape now; both sides are computed at it" for n in moved)]
