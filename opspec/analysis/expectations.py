"""Budgets: the lines of ``expect`` blocks, checked against the closed form.

A line about a measurement (``measured …``) is left to ``bench``.
"""

from __future__ import annotations

import re

from opspec.analysis.codes import BUDGET
from opspec.analysis.query import query
from opspec.diagnostics import Diagnostic, Failure, Note
from opspec.ir.program import Expectation, Module


def check_expectations(module: Module) -> tuple[Diagnostic, ...]:
    """A diagnostic for every budget that does not hold or can't be read.

    Those with the code ``BUDGET`` are a "no" (exit status 1); all others are faults of the input.
    """
    found: list[Diagnostic] = []
    for expectation in module.expectations:
        found.extend(_check(module, expectation))
    return tuple(found)


def is_budget(diagnostic: Diagnostic) -> bool:
    """Whether a diagnostic is a broken budget rather than wrong input."""
    return diagnostic.code is BUDGET


def in_one_line(expectation: Expectation) -> str:
    """The budget as a message shows it: without comments and line ends."""
    return " ".join(re.sub(r"#[^\n]*", "", expectation.text).split())


def _check(module: Module, expectation: Expectation) -> tuple[Diagnostic, ...]:
    if expectation.text.split() and expectation.text.split()[0].startswith("measured"):
        return ()
    workload = next((w for w in module.workloads if w.name == expectation.workload), None)
    op = module.op(workload.op) if workload else None
    if workload is None or op is None:
        return ()  # the front end has said so
    try:
        answer = query(module, op, expectation.text, workload=workload, within=expectation.span)
    except Failure as failure:
        return failure.diagnostics
    if answer.word == "true":
        return ()
    if answer.word != "false":
        message = f"`{in_one_line(expectation)}` is not a condition"
        return (
            Diagnostic(
                code=BUDGET,
                message=message,
                span=expectation.span,
                help="compare: `ai.tensor ~ 1.0 within 1%`",
            ),
        )
    return (
        Diagnostic(
            code=BUDGET,
            message=f"`{in_one_line(expectation)}` does not hold at `{workload.name}`: {answer.notes[0]}",
            span=expectation.span,
            notes=tuple(Note(n) for n in answer.notes[1:]),
            help="change the op, or the budget if the new cost is meant",
        ),
    )
