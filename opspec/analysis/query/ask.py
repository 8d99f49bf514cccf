"""``query``: a question about an op of a module, answered symbolically and, where all is known, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import sympy

from opspec.analysis.codes import NO_ANSWER
from opspec.analysis.costs import cost
from opspec.analysis.costs.flops import merged
from opspec.analysis.export import number
from opspec.analysis.forms import evaluate, tidy, unbound
from opspec.analysis.machine import Machine, machine_of
from opspec.analysis.query.answer import Answer, Moved, Why, python_form
from opspec.analysis.query.context import Context, refuse, unknown, with_settings, written
from opspec.analysis.query.distribution import mean_of
from opspec.analysis.query.evaluate import Evaluator
from opspec.analysis.query.parse import Asked, At, Call, Close, Name, On, Operation, Tends, parse
from opspec.analysis.query.quantity import NONE, Move, Quantity, Unit
from opspec.ir.dtypes import DTYPES, DType, choices
from opspec.ir.program import Module, Op, Workload
from opspec.source import Span

Number = int | Fraction


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
    asked = parse(text, within=within)
    chosen = _workload(module, op, workload)
    settings = settings or {}
    fixed, notes = _dtypes(op, chosen, dtypes or {}, numeric=bool(chosen or settings))
    costs = cost(op, fixed)
    if boundary not in costs.boundaries:
        raise unknown(boundary, [b for b in costs.boundaries if b], written("boundary", boundary), "boundary")
    context = Context(
        op=op,
        costs=costs,
        boundary=boundary,
        machine=machine_of(module, machine) if isinstance(machine, str) else machine,
        traffic=traffic or {},
        find=lambda name: machine_of(module, name),
    )
    _check_settings(settings, context)
    cases = _cases(chosen)
    form, quantity, value, at = _over_cases(asked, context, cases, settings)
    unit = "resource" if quantity.word and _is_bound(asked) else str(quantity.unit)
    return Answer(
        op=op.name,
        expr=text,
        form=tidy(form.value if value is not None else quantity.value),
        word=quantity.word,
        value=value,
        unit="dim" if quantity.moves else unit,
        moves=tuple(_moved(m, at) for m in quantity.moves),
        notes=tuple(dict.fromkeys((*quantity.notes, *notes))),
        why=_why(asked, context, cases, settings) if why else (),
    )


def _moved(move: Move, at: Evaluator) -> Moved:
    value = at.fill(Quantity(move.elasticity, NONE)).value
    return Moved(dim=move.dim, form=move.elasticity, value=number(value), note=move.note)


def _workload(module: Module, op: Op, workload: str | Workload | None) -> Workload | None:
    if workload is None or isinstance(workload, Workload):
        return workload
    known = {w.name: w for w in module.workloads_of(op.name)}
    if workload not in known:
        raise unknown(workload, list(known), written("at", workload), f"workload of `{op.name}`")
    return known[workload]


def _dtypes(
    op: Op, workload: Workload | None, given: Mapping[str, str | DType], *, numeric: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Values of dtype parameters: given, else the workload's, else (for numbers) the first choice, with a note."""
    stated = {k: v.name for k, v in workload.dtypes} if workload else {}
    stated |= {k: v.name if isinstance(v, DType) else v for k, v in given.items()}
    notes: list[str] = []
    for p in op.dtype_params:
        names = [d.name for d in choices(p)]
        if p.name in stated and stated[p.name] not in names:
            raise unknown(stated[p.name], names, written("dtype", stated[p.name]), f"choice of `{p.name}`")
        if p.name not in stated and numeric:
            stated[p.name] = names[0]
            notes.append(f"{p.name} = {names[0]}, the first of its choices")
    for k in stated:
        if k not in {p.name for p in op.dtype_params} or stated[k] not in DTYPES:
            raise unknown(k, [p.name for p in op.dtype_params], written("dtype", k), "dtype parameter")
    return stated, tuple(notes)


def _cases(workload: Workload | None) -> tuple[tuple[float, tuple[tuple[str, Number], ...]], ...]:
    """The shapes of a workload; what it says of lengths joins them as moments such as ``sum(len)``."""
    if workload is None:
        return ((1.0, ()),)
    return tuple((weight, (*dims, *workload.moments(dims).items())) for weight, dims in workload.cases)


def _check_settings(settings: Mapping[str, int], context: Context) -> None:
    moments: set[str] = set()
    for t in context.costs.flops:
        moments |= set(unbound(t.count))
    for b in context.costs.byte_terms(context.boundary):
        moments |= set(unbound(b.elements))
    for form in context.traffic.values():
        moments |= set(unbound(form))
    known = list(dict.fromkeys([*context.dims(), *sorted(moments)]))
    for name, value in settings.items():
        if name not in known:
            raise unknown(name, known, written("set", name), "dim")
        if value < 0:
            raise refuse(
                NO_ANSWER,
                f"`{name}` needs an integer that is not negative",
                written("set", f"{name}={value}"),
            )


def _over_cases(
    asked: Asked,
    context: Context,
    cases: tuple[tuple[float, tuple[tuple[str, Number], ...]], ...],
    settings: Mapping[str, int],
) -> tuple[Quantity, Quantity, int | float | None, Evaluator]:
    """(closed form, answer, number, what filled it) over the shapes of a workload.

    Over a distribution FLOPs, bytes and seconds are weighted means, and everything else is
    computed from those means.
    """
    envs = [with_settings(context, dict(dims), settings) for _, dims in cases]
    if all(env == envs[0] for env in envs):
        found = Evaluator(context, envs[0])
        form = found.form(asked)
        if form.word:
            return form, form, None, found
        filled = found.fill(form, asked.span)
        return form, filled, number(filled.value), found
    mean = mean_of(context, tuple(envs), tuple(w for w, _ in cases))
    filled = mean.value(asked)
    notes = (f"weighted over {len(envs)} shapes", *mean.spread(asked, filled))
    filled = replace(filled, notes=(*filled.notes, *notes))
    form = filled if _needs_numbers(asked) else Evaluator(context, {}).form(asked)
    return form, filled, None if filled.word else number(filled.value), mean


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


def _is_bound(asked: Asked) -> bool:
    match asked:
        case Name(text="bound"):
            return True
        case On(x=x) | At(x=x):
            return _is_bound(x)
        case _:
            return False


def _why(
    asked: Asked,
    context: Context,
    cases: tuple[tuple[float, tuple[tuple[str, Number], ...]], ...],
    settings: Mapping[str, int],
) -> tuple[Why, ...]:
    """The terms of every cost that the question names: operations by statement, bytes by block and tensor."""
    names = {n.text.partition(".")[0] for n in _names(asked)}
    env = with_settings(context, dict(cases[0][1]), settings) if len(cases) == 1 else {}
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
