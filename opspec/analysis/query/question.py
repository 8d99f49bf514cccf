"""What is asked, and about what: a tree, an op's costs, the shapes of a workload, a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import sympy

from opspec.analysis.codes import NO_ANSWER
from opspec.analysis.costs import OpCost, cost
from opspec.analysis.forms import unbound
from opspec.analysis.lengths import shape_numbers
from opspec.analysis.machine import Machine, machine_of
from opspec.analysis.query.context import Context, refuse, unknown, with_settings, written
from opspec.analysis.query.distribution import mean_of
from opspec.analysis.query.evaluate import Evaluator
from opspec.analysis.query.parse import Asked, At, Call, Close, Name, On, Operation, Tends, parse
from opspec.ir.dtypes import DTYPES, DType, choices
from opspec.ir.program import Module, Op, Workload
from opspec.source import Span

Number = int | Fraction
Cases = tuple[tuple[float, tuple[tuple[str, Number], ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with everything that its answer depends on. ``notes``: choices made for the asker."""

    asked: Asked
    context: Context
    cases: Cases
    settings: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def shapes(self, free: str = "") -> list[dict[str, Number]]:
        """The numbers of each shape, settings included; ``free``: a dim to leave open.

        Raises: Failure if the shape breaks a requirement.
        """
        settings = {k: v for k, v in self.settings.items() if k != free}
        shapes = [with_settings(self.context, dict(dims), settings) for _, dims in self.cases]
        pinned = self.context.pinned(free) if free else None
        for shape in shapes:
            shape.pop(pinned[0].name if pinned else free, None)
        return shapes

    def evaluator(self, free: str = "") -> Evaluator:
        """What evaluates trees at the shape, or over the shapes of a distribution."""
        shapes = self.shapes(free)
        if all(shape == shapes[0] for shape in shapes):
            return Evaluator(self.context, shapes[0])
        return mean_of(self.context, tuple(shapes), tuple(w for w, _ in self.cases))


def prepare(
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
    within: Span | None = None,
) -> Question:
    """The question, read and looked up; parameters as in ``query``.

    Raises: Failure for text that can't be read and names that are not there.
    """
    asked = parse(text, within=within)
    chosen = _workload(module, op, workload)
    settings = settings or {}
    numeric = bool(chosen or settings) or _of_a_machine(asked)
    fixed, notes = _dtypes(op, chosen, dtypes or {}, numeric=numeric)
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
        moments=_moments(chosen, costs, frozenset(settings)) if chosen and chosen.lengths else None,
    )
    _check_settings(settings, context)
    return Question(asked=asked, context=context, cases=_cases(chosen, costs), settings=settings, notes=notes)


def _of_a_machine(asked: Asked | Tends) -> bool:
    """Whether the answer depends on a machine's peak, and so on the type of the operands."""
    match asked:
        case Name(text=text):
            return text.partition(".")[0] in ("time", "bound", "attainable", "ridge", "peak")
        case Operation(operands=parts) | Call(arguments=parts):
            return any(map(_of_a_machine, parts))
        case Close(a=a, b=b):
            return _of_a_machine(a) or _of_a_machine(b)
        case On(x=x) | At(x=x):
            return _of_a_machine(x)
        case _:
            return False


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


def _moments(
    workload: Workload, costs: OpCost, fixed: frozenset[str]
) -> Callable[[Mapping[str, Number]], dict[str, Number]]:
    """Sums over the lengths of a workload at other dims; those that are set by hand stay as they are."""

    def at(shape: Mapping[str, Number]) -> dict[str, Number]:
        dims = tuple((d, int(shape[d])) for d in costs.symbols if d in shape)
        if len(dims) < len(costs.symbols):
            return {}
        found = shape_numbers(workload, dims, costs)
        return {k: v for k, v in found.items() if k not in costs.symbols and k not in fixed}

    return at


def _cases(workload: Workload | None, costs: OpCost) -> Cases:
    """The shapes of a workload; what it says of lengths joins them as moments such as ``sum(len)``."""
    if workload is None:
        return ((1.0, ()),)
    return tuple((w, tuple(shape_numbers(workload, dims, costs).items())) for w, dims in workload.cases)


def settable(context: Context) -> list[str]:
    """What ``--set`` takes: dims, derived dims, moments of lengths, and the tile sizes of a schedule's traffic."""
    moments: set[str] = set()
    for t in context.costs.flops:
        moments |= set(unbound(t.count))
    for b in context.costs.byte_terms(context.boundary):
        moments |= set(unbound(b.elements))
    for form in context.traffic.values():
        moments |= set(unbound(form))
    return list(dict.fromkeys([*context.dims(), *sorted(moments)]))


def _check_settings(settings: Mapping[str, int], context: Context) -> None:
    known = settable(context)
    for name, value in settings.items():
        if name not in known:
            raise unknown(name, known, written("set", name), "dim")
        if value < 0:
            raise refuse(
                NO_ANSWER,
                f"`{name}` needs an integer that is not negative",
                written("set", f"{name}={value}"),
            )


def is_bound(asked: Asked) -> bool:
    """Whether a question asks for the bound, wherever it is evaluated."""
    match asked:
        case Name(text="bound"):
            return True
        case On(x=x) | At(x=x):
            return is_bound(x)
        case _:
            return False
