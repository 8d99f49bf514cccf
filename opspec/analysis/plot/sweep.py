"""From a question and a range to a plot.

A comparison ``a == b`` gives two curves and the places where they meet. With a machine, the first extents from which
another resource binds are marked, and the ridge or peak of the machine is a level that the curve may reach. Extents
that break a requirement of the op are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import sympy

from opspec.analysis.codes import BAD_QUERY, BAD_RANGE, NO_ANSWER
from opspec.analysis.forms import evaluate, tidy, unbound
from opspec.analysis.lattice.symbols import symbol
from opspec.analysis.machine import Machine
from opspec.analysis.plot.model import Curve, Level, Mark, Sweep
from opspec.analysis.query.context import Context, broken_requirement, refuse, unknown, written
from opspec.analysis.query.evaluate import Evaluator
from opspec.analysis.query.parse import Asked, At, Call, Name, On, Operation, Tends
from opspec.analysis.query.quantity import Quantity, shared_unit
from opspec.analysis.query.question import Question, is_bound, settable
from opspec.diagnostics import Failure

Along = Callable[[int], sympy.Expr]

SAMPLES = 160
_LARGEST = 2**53
_WIDE = 20
_TRIES = 4096
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def read_range(text: str) -> tuple[str, int, int]:
    """``T=1..65536`` as (dim, first, last).

    Raises: Failure for what is no such range.
    """
    name, equals, rest = (p.strip() for p in text.partition("="))
    low, dots, high = (p.strip().replace("_", "") for p in rest.partition(".."))
    place = written("plot", text)
    if not (
        name and equals and dots and low.isascii() and low.isdigit() and high.isascii() and high.isdigit()
    ):
        raise refuse(BAD_RANGE, f"`{text}` is no range of a dim", place)
    if len(low) > 16 or len(high) > 16 or not 1 <= int(low) < int(high) <= _LARGEST:
        raise refuse(BAD_RANGE, "a range goes from a positive integer to a larger one", place)
    return name, int(low), int(high)


def sweep(question: Question, text: str, over: tuple[str, int, int], where: str = "") -> Sweep:
    """The plot of a question, whose text is ``text``, over the extents of a dim.

    Raises: Failure if the answer is no number, or other dims are open.
    """
    dim, low, high = over
    context = question.context
    if dim not in settable(context):
        raise unknown(dim, settable(context), written("plot", dim), "dim")
    line = _Line.of(question, dim)
    asked = question.asked
    sides = asked.operands if isinstance(asked, Operation) and asked.op in _COMPARISONS else (asked,)
    quantities = [line.quantity(x) for x in sides]
    forms = [line.along(x, q) for x, q in zip(sides, quantities, strict=True)]
    unit = quantities[0].unit
    if len(quantities) == 2:
        unit = shared_unit(quantities[0], quantities[1], "compare", asked.span)
    xs = [x for x in samples(low, high) if line.allows(x)]
    if len(xs) < 2:
        raise refuse(NO_ANSWER, f"no shape with `{dim}` in {low}..{high} satisfies the op's `require`", None)
    names = [part.span.text for part in sides] if len(sides) == 2 else [text]
    curves = [Curve(name=n, points=tuple(_points(f, xs))) for n, f in zip(names, forms, strict=True)]
    if any(len(c.points) < 2 for c in curves):
        raise refuse(NO_ANSWER, "the value is defined at fewer than two extents of the range", asked.span)
    machine = _machine(asked, context)
    levels: list[Level] = []
    marks: list[Mark] = []
    if machine is not None:
        here = replace(context, machine=machine)
        levels = list(_levels(here, str(unit)))
        marks += _flips(line, here, xs)
    constant = [float(q.value) for q in quantities[1:] if q.value.is_number]
    levels = [v for v in levels if v.value not in constant]
    others = [(f"meets {n}", f) for n, f in zip(names[1:], forms[1:], strict=True)]
    others += [(f"reaches the {v.name}", _fixed(v.value)) for v in levels]
    for name, other in others:
        marks += _crossings(line, forms[0], other, xs, f"{names[0]} {name}")
    notes = tuple(dict.fromkeys(n for q in quantities for n in q.notes))
    values = [y for c in curves for _, y in c.points]
    ends = [*values, *(v.value for v in levels)]
    return Sweep(
        op=context.op.name,
        expr=text,
        dim=dim,
        unit=str(unit),
        where=where,
        curves=tuple(curves),
        levels=tuple(levels),
        marks=tuple(_merged(marks)),
        notes=(*notes, *question.notes),
        log_x=high >= _WIDE * low,
        log_y=min(ends) > 0 and max(ends) >= _WIDE * min(ends),
    )


def _merged(marks: list[Mark]) -> Iterator[Mark]:
    """One mark for each extent, in order."""
    for at in sorted({m.at for m in marks}):
        here = [m for m in marks if m.at == at]
        yield replace(here[0], text="; ".join(m.text for m in here))


def samples(low: int, high: int) -> list[int]:
    """Integers from low to high: all, or evenly spaced, by ratio where the range is wide."""
    if high - low < SAMPLES:
        return list(range(low, high + 1))
    if high >= _WIDE * low:
        ratio = (high / low) ** (1 / (SAMPLES - 1))
        between = {round(low * ratio**k) for k in range(SAMPLES)}
        between |= {2**k for k in range(high.bit_length()) if low <= 2**k <= high}
    else:
        between = {low + (high - low) * k // (SAMPLES - 1) for k in range(SAMPLES)}
    return sorted({low, high, *(x for x in between if low <= x <= high)})


@dataclass(frozen=True, slots=True)
class _Line:
    """Evaluates along one dim, all others being fixed."""

    at: Evaluator
    dim: str
    old: sympy.Symbol
    new: sympy.Expr

    @classmethod
    def of(cls, question: Question, dim: str) -> _Line:
        at = question.evaluator(free=dim)
        if dim not in question.context.dims():
            return cls(at, dim, symbol(dim), symbol(dim))
        _, old, new = at.variable(dim, written("plot", dim))
        return cls(at, dim, old, new)

    def quantity(self, asked: Asked) -> Quantity:
        """The form of a side with everything filled in but the dim.

        Raises: Failure for words and for dims that are open.
        """
        if is_bound(asked):
            help = "plot `time`: the extents from which something else binds are marked"
            raise refuse(BAD_QUERY, "`bound` is a word, and only numbers can be plotted", asked.span, help)
        q = self.at.form(asked)
        if q.word:
            raise refuse(BAD_QUERY, f"`{q.word}` is a word, and only numbers can be plotted", asked.span)
        form = tidy(self.at.others_filled(q.value.xreplace({self.old: self.new}), self.dim))
        left = [n for n in unbound(form) if n != self.dim]
        if left:
            message = f"the curve depends on dims that are open: {', '.join(left)}"
            raise refuse(NO_ANSWER, message, asked.span, "give a workload with `--at`, or dims with `--set`")
        return replace(q, value=form)

    def along(self, asked: Asked, q: Quantity) -> Along:
        """The value at an extent. Where lengths are data their sums change along with the shape."""
        if self.at.context.moments is None:
            return lambda x: q.value.xreplace({symbol(self.dim): sympy.Integer(x)})
        return lambda x: self.at.with_set({self.dim: x}, asked.span).value(asked).value

    def allows(self, x: int) -> bool:
        """Whether the op takes a shape with this extent."""
        number = evaluate(self.new, {**self.at.env, self.dim: x})
        if number.is_number and not number.is_Integer:
            return False
        env: dict[str, int | Fraction] = {**self.at.env}
        if number.is_Integer:
            env[self.old.name] = int(number)
        return broken_requirement(self.at.context.op, env) is None

    def first(self, low: int, high: int, holds: Callable[[int], bool]) -> int | None:
        """The first admissible extent in (low, high] where something holds that does at high and not at low."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return next((x for x in range(high, high + _TRIES) if self.allows(x)), None)


def _machine(asked: Asked, context: Context) -> Machine | None:
    """The machine that the question is about: the option's, or else the one that an ``on`` names."""
    return context.machine or next((context.find(m) for m in _named(asked)), None)


def _named(asked: Asked | Tends) -> Iterator[str]:
    match asked:
        case On(x=x, machine=machine):
            yield machine
            yield from _named(x)
        case Operation(operands=parts) | Call(arguments=parts):
            for part in parts:
                yield from _named(part)
        case At(x=x):
            yield from _named(x)
        case _:
            return


def _levels(context: Context, unit: str) -> Iterator[Level]:
    """The ridge beside an intensity, the peak beside a rate."""
    wanted = {"FLOP/B": "ridge", "FLOP/s": "peak", "B/s": "bandwidth"}.get(unit)
    if wanted is None or context.machine is None:
        return
    try:
        q = Evaluator(context, {}).form(Name(wanted, "", written("plot", wanted)))
    except Failure:
        return
    yield Level(name=f"{wanted} of {context.machine.name}", value=float(q.value))


def _flips(line: _Line, context: Context, xs: list[int]) -> Iterator[Mark]:
    """Where another resource begins to bind; nothing while dims that decide it are open."""
    at = replace(line.at, context=context)
    span = written("plot", line.dim)

    def bound(x: int) -> str:
        return at.with_set({line.dim: x}, span).form(Name("bound", "", span)).word

    seen: dict[int, str] = {}
    try:
        coarse = xs[:: max(1, len(xs) // 40)]
        coarse = coarse if coarse[-1] == xs[-1] else [*coarse, xs[-1]]
        for x in coarse:
            seen[x] = bound(x)
        for low, high in pairwise(coarse):
            if seen[low] != seen[high]:
                was, now = seen[low], seen[high]
                first = line.first(low, high, lambda x, was=was: bound(x) != was)  # type: ignore[misc]
                if first is not None:
                    yield Mark(at=first, kind="bound", text=f"bound by {now} instead of {was}")
    except Failure:
        return


def _points(form: Along, xs: list[int]) -> Iterator[tuple[int, float]]:
    """The points at which the value is finite."""
    for x in xs:
        found = form(x)
        if found.is_finite and found.is_real:
            yield x, float(found)


def _fixed(value: float) -> Along:
    return lambda _: sympy.Float(value)


def _crossings(line: _Line, one: Along, other: Along, xs: list[int], text: str) -> Iterator[Mark]:
    """The first extents at which the difference of two has changed its sign."""

    def positive(x: int) -> bool:
        return bool(one(x) >= other(x))

    known = [x for x in xs if one(x).is_finite and other(x).is_finite]
    signs = [positive(x) for x in known]
    for k in range(len(known) - 1):
        if signs[k] != signs[k + 1]:
            now = signs[k + 1]
            first = line.first(known[k], known[k + 1], lambda x, now=now: positive(x) == now)  # type: ignore[misc]
            if first is not None:
                yield Mark(at=first, kind="crossing", text=text)
