"""Two checked modules of one spec → what differs, op by op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opspec.analysis.costs import cost
from opspec.analysis.forms import tidy
from opspec.analysis.machine import Machine
from opspec.analysis.query.answer import python_form
from opspec.analysis.review.budgets import compare_budgets
from opspec.analysis.review.changes import (
    around_of,
    changed_forms,
    changed_numbers,
    flips_of,
    forms_of,
    parameters_of,
    unit_of,
)
from opspec.analysis.review.crossings import find_crossings
from opspec.analysis.review.model import Crossing, Flip, FormChange, NumberChange, OpReview, SpecReview
from opspec.analysis.review.numbers import at_workload
from opspec.diagnostics import Failure
from opspec.ir.program import Module, Op, Workload

Machines = tuple[Sequence[Machine], Sequence[Machine]]


def compare_modules(base: Module | None, head: Module | None, *, path: str, machines: Machines) -> SpecReview:
    """The review of one spec; None stands for a file that is not there (or that was refused).

    ``machines``: of either side, the same ones in the same order; their values may differ.
    Never raises for what a spec holds: an op that can't be counted is noted.
    """
    before = {o.name: o for o in base.ops} if base else {}
    after = {o.name: o for o in head.ops} if head else {}
    ops: list[OpReview] = []
    for name in dict.fromkeys([*after, *before]):
        if name not in before and head is not None:
            ops.append(_alone(after[name], head, "added", machines[1]))
        elif name not in after and base is not None:
            ops.append(_alone(before[name], base, "removed", machines[0]))
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
                unit=unit_of(q),
                boundary=b,
                before="" if new else python_form(tidy(f), unit_of(q)),
                after=python_form(tidy(f), unit_of(q)) if new else "",
            )
            for (b, q), f in forms_of(costs).items()
            if f != 0 and not b
        ]
        numbers: list[NumberChange] = []
        for w in module.workloads_of(op.name):
            found = at_workload(op, w, machines)
            if found is not None:
                numbers += changed_numbers(w.name, "", None if new else found[""], found[""] if new else None)
    except Failure as failure:
        return OpReview(op=op.name, kind="added" if new else "removed", notes=tuple(map(str, failure.args)))
    return OpReview(
        op=op.name, kind="added" if new else "removed", forms=tuple(forms), numbers=tuple(numbers)
    )


def _compare(before: Op, after: Op, base: Module, head: Module, machines: Machines) -> OpReview:
    edited = replace(before, doc="") != replace(after, doc="")
    was, now = base.workloads_of(before.name), head.workloads_of(after.name)
    notes = [*_workload_notes(was, now)]
    moved = _changed_machines(machines)
    if not edited and not (moved[0] and now):
        return OpReview(op=after.name, kind="same", notes=tuple(notes))
    notes += [f"machine {m.name} has other values now" for m in moved[1]]
    renamed = _renamed(before, after)
    names = dict(renamed)
    try:
        forms = changed_forms(cost(before), cost(after), names, around_of(after, now, was)) if edited else ()
        numbers, flips, crossings = _at_workloads(
            before,
            after,
            now or was,
            names,
            machines if edited else moved,
            notes,
            crossed=not edited or _crosses(forms),
        )
    except Failure as failure:
        return OpReview(op=after.name, kind="changed", notes=(*notes, *map(str, failure.args)), edited=edited)
    return OpReview(
        op=after.name,
        kind="changed" if forms or numbers or flips else "same",
        renamed=renamed,
        forms=forms,
        numbers=tuple(numbers),
        flips=tuple(flips),
        crossings=tuple(crossings),
        notes=tuple(notes),
        edited=edited,
    )


def _crosses(forms: Sequence[FormChange]) -> bool:
    return any(f.quantity == "ai.tensor" for f in forms)


def _at_workloads(
    before: Op,
    after: Op,
    workloads: Sequence[Workload],
    renamed: Mapping[str, str],
    machines: Machines,
    notes: list[str],
    *,
    crossed: bool,
) -> tuple[list[NumberChange], list[Flip], list[Crossing]]:
    """What differs at each workload; notes say where that is not known."""
    numbers: list[NumberChange] = []
    flips: list[Flip] = []
    crossings: list[Crossing] = []
    for w in workloads:
        theirs = _translated(w, before, renamed)
        if theirs is None:
            notes.append(f"no numbers at {w.name}: the op had other dims before")
            continue
        one, two = at_workload(before, theirs, machines[0]), at_workload(after, w, machines[1])
        if one is None or two is None:
            continue
        for b in (b for b in two if b in one):
            numbers += changed_numbers(w.name, b, one[b], two[b])
            flips += flips_of(w.name, b, one[b], two[b])
        if crossed:
            crossings += find_crossings(before, after, theirs, w, renamed, machines)
    return numbers, flips, crossings


def _changed_machines(machines: Machines) -> Machines:
    """Those whose values differ, whatever is said of where they are from."""
    pairs = [
        (a, b)
        for a, b in zip(*machines, strict=True)
        if replace(a, sources={}, title="") != replace(b, sources={}, title="")
    ]
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


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
    known = parameters_of(before)
    return replace(
        workload, op=before.name, cases=cases, dtypes=tuple(d for d in workload.dtypes if d[0] in known)
    )


def _workload_notes(was: Sequence[Workload], now: Sequence[Workload]) -> list[str]:
    old, new = {w.name: w for w in was}, {w.name: w for w in now}
    notes = [f"workload {n} is new" for n in new if n not in old]
    notes += [f"workload {n} is gone" for n in old if n not in new]
    moved = [n for n in new if n in old and new[n] != old[n]]
    return [*notes, *(f"workload {n} has another shape now; both sides are computed at it" for n in moved)]
