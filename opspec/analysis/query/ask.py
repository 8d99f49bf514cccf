"""``query``: a question about an op of a module, answered symbolically and, where all is known, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from opspec.analysis.codes import NO_ANSWER
from opspec.analysis.costs.flops import merged
from opspec.analysis.export import number
from opspec.analysis.forms import evaluate, tidy
from opspec.analysis.machine import Machine
from opspec.analysis.query.answer import Answer, Moved, Why, python_form
from opspec.analysis.query.context import OPEN, refuse
from opspec.analysis.query.distribution import Mean
from opspec.analysis.query.evaluate import Evaluator
from opspec.analysis.query.parse import Asked, At, Call, Close, Name, On, Operation, Tends
from opspec.analysis.query.quantity import NONE, Move, Quantity, Unit
from opspec.analysis.query.question import Question, is_bound, prepare
from opspec.ir.dtypes import DType
from opspec.ir.program import Module, Op, Workload
from opspec.source import Span


def query(
    module: Module,
    op: Op,
    text: str,
    *,
    workload: str | Workload | None = None,
    settings: Mapping[str, int] | None = None,
    machine: str | Machine | None = None,
    boundary: str = "",
    dtypes: Mapping[str, str | DType] | None = None,
    traffic: Mapping[str, sympy.Expr] | None = None,
    why: bool = False,
    within: Span | None = None,
) -> Answer:
    """Answer a question in the query language.

    ``workload`` and ``settings`` give dims numbers, settings last; moments such as ``sum(len)``
    may be set too. ``traffic``: bytes by kernel from a schedule. ``why``: list the terms.
    ``within``: where the text stands in a file, for messages.

    Raises: Failure with a diagnostic for everything that can't be answered.
    """
    question = prepare(
        module, op, text, workload=workload, settings=settings, machine=machine, boundary=boundary,
        dtypes=dtypes, traffic=traffic, within=within,
    )  # fmt: skip
    asked = question.asked
    form, quantity, value, at = _over_cases(question)
    unit = "resource" if quantity.word and is_bound(asked) else str(quantity.unit)
    shown = tidy(form.value if value is not None else quantity.value)
    if not quantity.word and not _can_be_written(shown):
        raise refuse(NO_ANSWER, "no exact answer is known for this form", asked.span, OPEN)
    return Answer(
        op=op.name,
        expr=text,
        form=shown,
        word=quantity.word,
        value=value,
        unit="dim" if quantity.moves else unit,
        moves=tuple(_moved(m, at) for m in quantity.moves),
        notes=tuple(dict.fromkeys((*quantity.notes, *question.notes))),
        why=_why(question) if why else (),
    )


def _can_be_written(form: sympy.Expr) -> bool:
    try:
        python_form(form, "")
    except TypeError:
        return False
    return True


def _moved(move: Move, at: Evaluator) -> Moved:
    value = at.fill(Quantity(move.elasticity, NONE)).value
    return Moved(dim=move.dim, form=move.elasticity, value=number(value), note=move.note)


def _over_cases(question: Question) -> tuple[Quantity, Quantity, int | float | None, Evaluator]:
    """(closed form, answer, number, what filled it) over the shapes of a workload.

    Over a distribution FLOPs, bytes and seconds are weighted means, and everything else is
    computed from those means.
    """
    asked, found = question.asked, question.evaluator()
    form = found.form(asked)
    if not isinstance(found, Mean):
        if form.word:
            return form, form, None, found
        filled = found.fill(form, asked.span)
        return form, filled, number(filled.value), found
    filled = found.fill(form, asked.span)
    notes = (f"weighted over {len(found.shapes)} shapes", *found.spread(asked, filled))
    filled = replace(filled, notes=(*filled.notes, *notes))
    form = filled if _needs_numbers(asked) else Evaluator(question.context, {}).form(asked)
    return form, filled, None if filled.word else number(filled.value), found


def _needs_numbers(asked: Asked | Tends) -> bool:
    """Whether a tree holds a comparison or ``bound``, which have no open form."""
    match asked:
        case Name(text=text):
            return text == "bound"
        case Close():
            return True
        case Operation(op=op, operands=operands):
            return op in ("==", "!=", "<", "<=", ">", ">=") or any(map(_needs_numbers, operands))
        case On(x=x) | At(x=x):
            return _needs_numbers(x)
        case Call():
            return True
        case _:
            return False


def _why(question: Question) -> tuple[Why, ...]:
    """The terms of every cost that the question names: operations by statement, bytes by block and tensor."""
    context = question.context
    names = {n.text.partition(".")[0] for n in _names(question.asked)}
    env = question.shapes()[0] if len(question.cases) == 1 else {}
    found: list[Why] = []

    def line(what: str, form: sympy.Expr, unit: Unit | str, note: str = "") -> None:
        form = tidy(form)
        value = number(evaluate(form, env))
        found.append(
            Why(what=what, form=python_form(form, str(unit)), value=value, unit=str(unit), note=note)
        )

    if names & {"flops", "ai", "time", "bound", "attainable"}:
        for t in merged(context.costs.flops):
            note = f"operands {t.dtype}" if t.dtype else ""
            line(f"{t.origin}: {t.unit}.{t.op}", t.count, "FLOP", note)
    if names & {"bytes", "ai", "time", "bound", "attainable"}:
        for b in context.costs.byte_terms(context.boundary):
            line(f"{b.kernel}: {b.direction} {b.tensor}", b.count, "B", b.why)
    return tuple(found)


def _names(asked: Asked | Tends) -> list[Name]:
    match asked:
        case Name():
            return [asked]
        case Operation(operands=parts):
            return [n for p in parts for n in _names(p)]
        case Close(a=a, b=b):
            return [*_names(a), *_names(b)]
        case On(x=x) | At(x=x):
            return _names(x)
        case Call(arguments=parts):
            return [n for p in parts for n in _names(p)]
        case _:
            return []
