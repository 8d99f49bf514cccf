"""The functions of the query language: `min`, `max`, `dim`, `limit`, `diff`, `solve`, `elasticity`, `sensitivity`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import sympy

from opspec.analysis.codes import BAD_QUERY, NO_ANSWER
from opspec.analysis.lattice.symbols import largest, smallest, symbol
from opspec.analysis.query.context import OPEN, refuse, unknown
from opspec.analysis.query.elasticity import HERE, branch_of, elasticity_of
from opspec.analysis.query.parse import Asked, Call, Name, Operation, Tends
from opspec.analysis.query.quantity import NONE, PLAIN, Move, Quantity, shared_unit, word
from opspec.analysis.query.solving import Singular, Solution, Unsolved, derivative_of, limit_of, solve_for
from opspec.source import Span

if TYPE_CHECKING:
    from opspec.analysis.query.evaluate import Evaluator

Argument = Asked | Tends
_FAR, _NEAR = 2**40, 2**20
_BOUNDS = ("lt", "le", "gt", "ge")
_STEPS = 4096


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
    except Singular as reason:
        raise refuse(NO_ANSWER, str(reason), asked.span, "ask for a form that depends on it") from None
    except Unsolved as reason:
        raise refuse(NO_ANSWER, f"no exact answer is known: {reason}", asked.span, OPEN) from None
    except (NotImplementedError, ArithmeticError, ValueError, sympy.PolynomialError):
        raise refuse(NO_ANSWER, "no exact answer is known for this form", asked.span, OPEN) from None


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
    value = limit_of(form, variable, to.value)
    broken = at.broken_at(tends.name, _FAR) if to.value is sympy.oo else None
    far = at.broken_at(tends.name, _FAR, others=_NEAR) if broken is not None else None
    if broken is not None and broken == far and broken.op in _BOUNDS:
        message = f"the op takes no {tends.name} that large: `require {broken.text}`"
        raise refuse(NO_ANSWER, message, span, "take the limit in a dim that is free to grow")
    notes = (*q.notes, f"as far as `require {broken.text}` allows it") if broken is not None else q.notes
    return replace(q, value=value, notes=notes)


def _diff(at: Evaluator, x: Argument, by: Argument, span: Span) -> Quantity:
    what = "a derivative as `diff(ai, T)`"
    if not isinstance(by, Name):
        raise refuse(BAD_QUERY, f"write {what}", span)
    q = _number(at, x, what, span)
    variable, old, new = at.variable(by.text, span)
    form = q.value.xreplace({old: new})
    try:
        return replace(q, value=derivative_of(form, variable))
    except Unsolved:
        smooth, notes = branch_of(form, variable, at.full_env())
        return replace(q, value=derivative_of(smooth, variable), notes=(*q.notes, *notes, HERE))


def _solve(at: Evaluator, equation: Argument, by: Argument, span: Span) -> Quantity:
    if not isinstance(by, Name) or not isinstance(equation, Operation) or equation.op != "==":
        raise refuse(BAD_QUERY, "write an equation as `solve(ai.tensor == ridge, G)`", span)
    left, right = (at.form(x) for x in equation.operands)
    if left.word or right.word:
        raise refuse(BAD_QUERY, "`solve` takes numbers on both sides", span)
    shared_unit(left, right, "compare", span)
    if left.value.has(sympy.oo) or right.value.has(sympy.oo):
        raise refuse(
            BAD_QUERY, "no side of an equation is infinite", span, f"ask for `limit(…, {by.text} -> oo)`"
        )
    variable, old, new = at.variable(by.text, span)
    sides = [at.others_filled(q.value.xreplace({old: new}), by.text) for q in (left, right)]
    found = solve_for(sides[0], sides[1], variable, integer=True)
    if found.word:
        absent = f"never: neither side depends on {by.text}"
        depends = left.value.has(old) or right.value.has(old)
        notes = (f"never, because {by.text} cancels" if n == absent and depends else n for n in found.notes)
        return word(found.word, *notes)
    return _admissible(at, by.text, found, span)


def _admissible(at: Evaluator, name: str, found: Solution, asked: Span) -> Quantity:
    """The crossing with the first integer behind it that the op takes; never, where a requirement forbids all."""
    if not found.value.is_number:
        return Quantity(found.value, NONE, notes=found.notes)
    first = max(1, int(sympy.ceiling(found.value)))
    broken = at.broken_at(name, first)
    if broken is None or not (broken.left.dims() | broken.right.dims()) <= {
        *at.full_env(),
        name,
        at.variable(name, asked)[1].name,
    }:
        return Quantity(found.value, NONE, notes=found.notes)
    rest = tuple(t for t in found.notes if not t.startswith("first integer"))
    for n in range(first, first + _STEPS):
        if at.broken_at(name, n) is None:
            return Quantity(found.value, NONE, notes=(*rest, f"first admissible integer: {name} = {n}"))
    if broken.op not in _BOUNDS:
        return Quantity(
            found.value, NONE, notes=(*rest, f"no integer near it satisfies `require {broken.text}`")
        )
    shown = f"{float(found.value):.6g}"
    return word("never", f"never: it would need {name} = {shown}, and `require {broken.text}` forbids that")


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
