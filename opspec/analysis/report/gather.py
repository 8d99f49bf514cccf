"""Checked modules, machines and results → the content of the page."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from opspec.analysis.costs import OpCost, cost
from opspec.analysis.export import byte_totals, flop_totals, workload_dtypes
from opspec.analysis.forms import tidy
from opspec.analysis.machine import Machine
from opspec.analysis.query.answer import python_form
from opspec.analysis.report.advice import advise
from opspec.analysis.report.boundaries import with_extremes
from opspec.analysis.report.mathml import to_mathml
from opspec.analysis.report.model import Formula, OpPage, Reading, Spot
from opspec.analysis.report.readings import cases_of, read
from opspec.analysis.report.results import Result, measurements
from opspec.analysis.roofline import contraction_dtype
from opspec.diagnostics import Failure
from opspec.ir.program import Module, Op, Workload

_UNITS = {"ai": "FLOP/B", "ai.tensor": "FLOP/B", "bytes": "B", "bytes.read": "B", "bytes.write": "B"}


def gather(
    module: Module, spec: str, machines: Sequence[Machine], results: tuple[Result, ...]
) -> tuple[OpPage, ...]:
    """A page for each op of a spec. An op whose costs have no closed form says so in its notes."""
    pages: list[OpPage] = []
    for op in module.ops:
        try:
            pages.append(_page(module, op, spec, machines, results))
        except Failure as failure:
            notes = tuple(d.message for d in failure.diagnostics)
            pages.append(OpPage(name=op.name, spec=spec, doc=op.doc, formulas=(), spots=(), notes=notes))
    return tuple(pages)


def _page(
    module: Module, op: Op, spec: str, machines: Sequence[Machine], results: tuple[Result, ...]
) -> OpPage:
    costs = cost(op)
    wide = with_extremes(op)
    notes = [f"`{t.tensor}` is an upper bound: {t.why}" for t in costs.byte_terms() if t.bound == "upper"]
    spots: list[Spot] = []
    workloads = module.workloads_of(op.name)
    for workload in workloads:
        cases = cases_of(wide, workload)
        if cases is None:
            notes.append(f"no numbers at {workload.name}: lengths are data")
            continue
        for machine in machines:
            readings = tuple(read(cases, machine, b.name) for b in wide.boundaries)
            spots.append(
                Spot(
                    workload=workload.name,
                    shape=_shape(op, workload),
                    machine=machine,
                    dtype=contraction_dtype(cases[0][1]) or "",
                    readings=readings,
                    flips=_flips(readings),
                    advice=advise(wide, cases, machine, readings[0]),
                    measured=measurements(results, op.name, workload.name, machine.name),
                )
            )
    if not workloads:
        notes.append("no workload: forms without numbers")
    return OpPage(
        name=op.name,
        spec=spec,
        doc=op.doc,
        formulas=_formulas(costs),
        spots=tuple(spots),
        notes=tuple(dict.fromkeys(notes)),
    )


def _formulas(costs: OpCost) -> tuple[Formula, ...]:
    forms: dict[str, sympy.Expr] = {**flop_totals(costs.flops), **byte_totals(costs, "")}
    found = []
    for quantity, form in forms.items():
        short = tidy(form)
        if short != 0:
            unit = _UNITS.get(quantity, "FLOP")
            found.append(
                Formula(quantity=quantity, unit=unit, mathml=to_mathml(short), text=python_form(short, unit))
            )
    return tuple(found)


def _flips(readings: Sequence[Reading]) -> tuple[str, ...]:
    """The groupings under which something else binds than under the op's own."""
    own = readings[0]
    return tuple(f"{r.boundary}: {own.bound} → {r.bound}" for r in readings[1:] if r.bound != own.bound)


def _shape(op: Op, workload: Workload) -> str:
    dtypes = ", ".join(f"{k} = {v.name}" for k, v in workload_dtypes(op, workload).items())
    if len(workload.cases) == 1:
        dims = ", ".join(f"{k} = {v}" for k, v in workload.cases[0][1])
    else:
        dims = f"{len(workload.cases)} shapes, weighted"
    return ", ".join(t for t in (dims, dtypes) if t)
