"""The functions of the query language: `min`, `max`, `dim`, `limit`, `diff`, `solve`, `elasticity`, `sensitivity`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy

from opspec.analysis.codes import BAD_QUERY, NO_ANSWER
from opspec.analysis.lattice.symbols import largest, smallest, symbol
from opspec.analysis.query.context import refuse, unknown
from opspec.analysis.query.elasticity import elasticity_of
from opspec.analysis.query.parse import Asked, Call, Name, Operation, Tends
from opspec.analysis.query.quantity import NONE, PLAIN, Move, Quantity, shared_unit, word
from opspec.analysis.query.solving import Unsolved, derivative_of, limit_of, solve_for
from opspec.source import Span

if TYPE_CHECKING:
    from opspec.analysis.query.evaluate import Evaluator

Argument = Asked | Tends


def call(at: Evaluator, asked: Call) -> Quantity:
    """The value of a function at its arguments.

    Raises: Failure for unknown functions, wrong arguments and questions without an exact answer.
    """
    if asked.function in ("min", "max"):
        return _extreme(at, asked)
    if asked.function not in _FUNCTIONS:
        raise unknown(asked.function, [*_FUNCTIONS, "min", "max"], asked.span, "function")
    count, function = _FUNCTIONS[asked.function]
    if len(asked.arguments) != count:
        many = "one argument" if count == 1 else f"{count} arguments"
        raise refuse(BAD_QUERY, f"`{asked.function}` takes {many}", asked.span)
    try:
        return function(at, asked.arguments[0], asked.arguments[-1], asked.span)
    except Unsolved as reason:
        raise refuse(NO_ANSWER, f"no exact answer is known: {reason}", asked.span) from None
    except (NotImplementedError, ArithmeticError, ValueError, sympy.PolynomialError):
        raise refuse(NO_ANSWER, "no exact answer is known for this form", asked.span) from None


def _extreme(at: Evaluator, asked: Call) -> Quantity:
    parts = [at.form(x) for x in asked.arguments if not isinstance(x, Tends)]
    if len(parts) != len(asked.arguments) or any(q.word for q in parts):
        raise refuse(BAD_QUERY, f"`{asked.function}` takes numbers", asked.span)
    total = parts[0]
    for q in parts[1:]:
        total = replace(total, unit=shared_unit(total, q, "compare", asked.span))
    pick = largest if asked.function == "max" else smallest
    return replace(total, value=pick(*(q.value for q in parts)))


def _dim(at: Evaluator, x: Argument, _: Argument, span: Span) -> Quantity:
    if not isinstance(x, Name) or x.text not in at.context.dims():
        raise refuse(BAD_QUERY, "`dim` takes the name of a dim", span)
    return Quantity(at.context.dims()[x.text], PLAIN)


def _number(at: Evaluator, x: Argument, what: str, span: Span) -> Quantity:
    """The form of an argument that must be a number."""
    if isinstance(x, Tends):
        raise refuse(BAD_QUERY, f"write {what}", span)
    q = at.form(x)
    if q.word:
        raise refuse(BAD_QUERY, f"`{q.word}` is a word, not a number", span, f"write {what}")
    return q


def _limit(at: Evaluator, x: Argument, tends: Argument, span: Span) -> Quantity:
    what = "a limit as `limit(ai, T -> oo)`"
    if not isinstance(tends, Tends):
        raise refuse(BAD_QUERY, f"write {what}", span)
    q, to = _number(at, x, what, span), at.value(tends.to)
    variable, old, new = at.variable(tends.name, span)
    form = at.others_filled(q.value.xreplace({old: new}), tends.name)
    return replace(q, value=limit_of(form, variable, to.value))


def _diff(at: Evaluator, x: Argument, by: Argument, span: Span) -> Quantity:
    what = "a derivative as `diff(ai, T)`"
    if not isinstance(by, Name):
        raise refuse(BAD_QUERY, f"write {what}", span)
    q = _number(at, x, what, span)
    variable, old, new = at.variable(by.text, span)
    return replace(q, value=derivative_of(q.value.xreplace({old: new}), variable))


def _solve(at: Evaluator, equation: Argument, by: Argument, span: Span) -> Quantity:
    if not isinstance(by, Name) or not isinstance(equation, Operation) or equation.op != "==":
        raise refuse(BAD_QUERY, "write an equation as `solve(ai.tensor == ridge, G)`", span)
    left, right = (at.form(x) for x in equation.operands)
    if left.word or right.word:
        raise refuse(BAD_QUERY, "`solve` takes numbers on both sides", span)
    shared_unit(left, right, "compare", span)
    variable, old, new = at.variable(by.text, span)
    sides = [at.others_filled(q.value.xreplace({old: new}), by.text) for q in (left, right)]
    found = solve_for(sides[0], sides[1], variable, integer=True)
    if found.word:
        return word(found.word, *found.notes)
    return Quantity(found.value, NONE, notes=found.notes)


def _elasticity(at: Evaluator, x: Argument, by: Argument, span: Span) -> Quantity:
    what = "an elasticity as `elasticity(ai, T)`"
    if not isinstance(by, Name):
        raise refuse(BAD_QUERY, f"write {what}", span)
    q = _number(at, x, what, span)
    variable, old, new = at.lever(by.text, span)
    value, notes = elasticity_of(q.value.xreplace({old: new}), variable, at.full_env())
    return Quantity(value, NONE, notes=(*q.notes, *notes))


def _sensitivity(at: Evaluator, x: Argument, _: Argument, span: Span) -> Quantity:
    """Every dim's elasticity, the strongest first; its word is the dim that moves the value most."""
    q = _number(at, x, "`sensitivity(ai.tensor)`", span)
    moves: list[tuple[float, Move]] = []
    notes = [*q.notes]
    open_ = False
    levers = {dim: at.lever(dim, span) for dim in at.context.costs.symbols}
    moments = sorted(s.name for s in q.value.free_symbols if s.name.lstrip("~").startswith("sum("))
    levers |= {m.lstrip("~"): (symbol(m), symbol(m), symbol(m)) for m in moments}
    for dim, (variable, old, new) in levers.items():
        value, more = elasticity_of(q.value.xreplace({old: new}), variable, at.full_env())
        known = at.fill(Quantity(value, NONE), span).value
        open_ |= not known.is_number
        note = "does not occur" if not q.value.has(old) else "cancels" if value == 0 else ""
        moves.append((abs(float(known)) if known.is_number else 0.0, Move(dim, value, note)))
        notes += more
    if moments:
        notes.append(
            "dims move while sums over lengths that are data stay as they are, and the other way round"
        )
    if open_:
        notes.append("give a workload with `--at`, or dims with `--set`, to see which moves it most")
    else:
        moves.sort(key=lambda m: -m[0])
        notes.append("one percent more of a dim changes the value by so many percent")
    most = "open" if open_ else "none" if not moves or moves[0][0] == 0 else moves[0][1].dim
    return replace(word(most, *notes), moves=tuple(m for _, m in moves))


_Function = Callable[["Evaluator", Argument, Argument, Span], Quantity]
_FUNCTIONS: Mapping[str, tuple[int, _Function]] = {
    "limit": (2, _limit),
    "diff": (2, _diff),
    "solve": (2, _solve),
    "elasticity": (2, _elasticity),
    "sensitivity": (1, _sensitivity),
    "dim": (1, _dim),
}
