"""Limits, derivatives and crossings of closed forms, with an honest "never".

Rational forms are treated exactly. Maxima and minima are resolved where the variable
grows; where they stay in the way of an exact answer the question is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from opspec.analysis.forms import tidy, unbound
from opspec.analysis.lattice.symbols import largest, smallest

_HIGHEST_DEGREE = 2
_LAST_INTEGER = 2**40


@dataclass(frozen=True, slots=True)
class Solution:
    """``value``, or ``word`` ("never") with the reason in ``notes``."""

    value: sympy.Expr
    word: str = ""
    notes: tuple[str, ...] = ()


class Unsolved(Exception):
    """No exact answer is known; the message says what is in the way."""


class Singular(Exception):
    """The equation has no single solution; the message says why."""


def limit_of(form: sympy.Expr, x: sympy.Symbol, to: sympy.Expr) -> sympy.Expr:
    """The limit of a form as x goes to infinity or to a number.

    Raises: Unsolved where maxima or divisions leave it open.
    """
    if to is not sympy.oo:
        value = tidy(form).xreplace({x: to})
        if value.has(sympy.nan, sympy.zoo):
            value = sympy.limit(tidy(form), x, to) if not _stepped(form, x) else value
        if value.has(sympy.nan, sympy.zoo):
            raise Unsolved(f"the limit at {to} is not defined")
        return value
    found = _by_parts(tidy(form), x)
    return _at_infinity(_settle(form, x), x) if found is None else found


def _by_parts(form: sympy.Expr, x: sympy.Symbol) -> sympy.Expr | None:
    """The limit at infinity from those of the parts: a maximum of limits, a sum of limits; None where the
    parts leave it open, as ∞ - ∞ does."""
    if not form.has(x):
        return form
    if not _stepped(form, x):
        try:
            return _at_infinity(form, x)
        except Unsolved:
            return None
    match form:
        case sympy.Add():
            return _sum_of([_by_parts(a, x) for a in form.args])
        case sympy.Max() | sympy.Min():
            return _extreme_of([_by_parts(a, x) for a in form.args], greatest=isinstance(form, sympy.Max))
        case sympy.Mul():
            stepped = [f for f in form.args if _stepped(f, x)]
            scale = sympy.Mul(*(f for f in form.args if not _stepped(f, x)))
            if len(stepped) == 1 and isinstance(stepped[0], sympy.Add):
                return _sum_of([_by_parts(scale * a, x) for a in stepped[0].args])
            if len(stepped) == 1 and isinstance(stepped[0], sympy.Max | sympy.Min) and _sign(scale):
                inner = [_by_parts(scale * a, x) for a in stepped[0].args]
                return _extreme_of(inner, greatest=isinstance(stepped[0], sympy.Max) == (_sign(scale) > 0))
    return None


def _sum_of(parts: list[sympy.Expr | None]) -> sympy.Expr | None:
    known = [p for p in parts if p is not None]
    return None if len(known) < len(parts) or {sympy.oo, -sympy.oo} <= set(known) else sympy.Add(*known)


def _extreme_of(parts: list[sympy.Expr | None], *, greatest: bool) -> sympy.Expr | None:
    known = [p for p in parts if p is not None]
    most, least = (sympy.oo, -sympy.oo) if greatest else (-sympy.oo, sympy.oo)
    if most in known:
        return most
    finite = [p for p in known if p is not least]
    if len(known) < len(parts):
        return None
    return (largest if greatest else smallest)(*finite) if finite else least


def _stepped(form: sympy.Expr, x: sympy.Symbol) -> bool:
    return any(f.has(x) for f in form.atoms(sympy.Max, sympy.Min, sympy.floor, sympy.ceiling))


def _settle(form: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """Maxima and minima resolved for large x; floors of growing quotients give way to the quotient."""

    def extreme(*args: sympy.Expr, kind: type[sympy.Expr]) -> sympy.Expr:
        best = args[0]
        for other in args[1:]:
            difference = _at_infinity(sympy.expand(other - best), x)
            grows = difference.is_extended_positive
            if grows is None and difference is not sympy.S.Zero:
                if not (other - best).has(x):
                    best = kind(best, other)
                    continue
                raise Unsolved(f"which of {best} and {other} is larger in the end depends on other dims")
            if bool(grows) == (kind is sympy.Max):
                best = other if grows or kind is sympy.Min else best
        return best

    form = form.replace(
        lambda e: isinstance(e, sympy.Max) and e.has(x), lambda e: extreme(*e.args, kind=sympy.Max)
    )
    form = form.replace(
        lambda e: isinstance(e, sympy.Min) and e.has(x), lambda e: extreme(*e.args, kind=sympy.Min)
    )
    return form.replace(
        lambda e: isinstance(e, sympy.floor | sympy.ceiling) and e.has(x), lambda e: e.args[0]
    )


def _at_infinity(form: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """The limit of a rational form at infinity by its leading terms."""
    numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(form)))
    if not (numerator.has(x) or denominator.has(x)):
        return form
    try:
        above, below = sympy.Poly(numerator, x), sympy.Poly(denominator, x)
    except sympy.PolynomialError:
        raise Unsolved(f"the form is not rational in {x.name}") from None
    if above.degree() < below.degree():
        return sympy.Integer(0)
    ratio = sympy.cancel(above.LC() / below.LC())
    if above.degree() == below.degree():
        return ratio
    sign = _sign(ratio)
    if sign == 0:
        raise Unsolved(f"it grows with {x.name}, with a sign that depends on {ratio}")
    return sympy.oo * sign


def _sign(value: sympy.Expr) -> int:
    """The sign of a form whose symbols are positive; 0 if not known."""
    if value.is_number:
        return int(sympy.sign(value))
    positive = {s: sympy.Dummy(positive=True) for s in value.free_symbols}
    raised = value.xreplace(positive)
    return 1 if raised.is_positive else -1 if raised.is_negative else 0


def derivative_of(form: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """The derivative of a rational form.

    Raises: Unsolved if x stands in a maximum or a division that rounds.
    """
    form = tidy(form)
    if _stepped(form, x):
        raise Unsolved(f"the form has corners in {x.name}: a maximum, a minimum or a rounded division")
    return sympy.factor(sympy.diff(form, x))


def solve_for(left: sympy.Expr, right: sympy.Expr, x: sympy.Symbol, integer: bool) -> Solution:
    """Where two forms are equal, as a value of x that is positive and finite.

    ``integer``: x is an extent, so the first admissible integer is noted.

    Raises: Unsolved where no exact answer is known, Singular where every value is one.
    """
    difference = sympy.together(left - right)
    if _stepped(difference, x):
        return _through_extreme(left - right, x, integer) or _scan(left, right, x)
    numerator = sympy.expand(sympy.fraction(sympy.cancel(difference))[0])
    if numerator == 0:
        raise Singular(f"the two sides are equal for every {x.name}: the equation does not determine it")
    if not numerator.has(x):
        reason = f"never: neither side depends on {x.name}"
        if sympy.fraction(sympy.cancel(difference))[1].has(x):
            reason = f"never: the sides only come near each other as {x.name} grows"
        elif left.has(x) or right.has(x):
            reason = f"never, because {x.name} cancels"
        held = _holds(left, right)
        return Solution(numerator, "never", (reason, *([held] if held else [])))
    poly = sympy.Poly(numerator, x)
    if poly.degree() > _HIGHEST_DEGREE:
        if unbound(numerator - x) and set(unbound(numerator)) != {x.name}:
            raise Unsolved(f"the equation has degree {poly.degree()} in {x.name}")
        roots = [r for r in sympy.Poly(numerator, x).nroots() if abs(sympy.im(r)) < 1e-12]
    elif poly.degree() == 1:
        a, b = poly.all_coeffs()
        roots = [sympy.cancel(-b / a)]
    else:
        roots = [sympy.cancel(r) for r in sympy.roots(poly, multiple=True)]
    return _admissible(roots, left, right, x, integer)


def _through_extreme(difference: sympy.Expr, x: sympy.Symbol, integer: bool) -> Solution | None:
    """Where ``c · max(a, b, …) = r`` with r free of x and every argument growing with x in a straight line:
    at the least of the arguments' own solutions (of a minimum: at the greatest). None for anything else."""
    terms = [t for t in sympy.Add.make_args(difference) if t.has(x)]
    if len(terms) != 1:
        return None
    scale, extreme = terms[0].as_independent(x, as_Add=False)
    if not isinstance(extreme, sympy.Max | sympy.Min) or set(unbound(difference)) == {x.name}:
        return None
    wanted = -(difference - terms[0]) / scale
    roots: list[sympy.Expr] = []
    for a in extreme.args:
        if _stepped(a, x) or not a.is_polynomial(x) or sympy.degree(a, x) > 1:
            return None
        slope, rest = sympy.diff(a, x), a.xreplace({x: sympy.Integer(0)})
        if _sign(slope) <= 0:
            return None
        roots.append(tidy((wanted - rest) / slope))
    pick = smallest if isinstance(extreme, sympy.Max) else largest
    gone = [_sign(r) < 0 or r == 0 for r in roots]
    if (any if isinstance(extreme, sympy.Max) else all)(gone):
        return Solution(sympy.Integer(0), "never", (f"never: no positive {x.name} solves it",))
    notes = ("exists only where it is positive", *((f"{x.name} is an integer: round up",) if integer else ()))
    return Solution(pick(*roots), "", notes)


def _admissible(
    roots: list[sympy.Expr], left: sympy.Expr, right: sympy.Expr, x: sympy.Symbol, integer: bool
) -> Solution:
    numbers = [r for r in roots if r.is_number]
    if len(numbers) == len(roots):
        good = sorted((r for r in numbers if r.is_real and r > 0), key=float)
        if not good:
            held = _holds(left.xreplace({x: sympy.Integer(1)}), right.xreplace({x: sympy.Integer(1)}))
            return Solution(
                sympy.Integer(0),
                "never",
                (f"never: no positive {x.name} solves it", *([held] if held else [])),
            )
        first = (f"first integer: {x.name} = {sympy.ceiling(good[0])}",) if integer else ()
        return Solution(good[0], "", first)
    chosen = roots[-1] if len(roots) > 1 else roots[0]
    for r in roots:
        if _sign(r) > 0:
            chosen = r
    notes: list[str] = []
    if _sign(chosen) < 0:
        return Solution(
            chosen, "never", (f"never: it would need {x.name} = {sympy.factor(chosen)}, which is negative",)
        )
    if _sign(chosen) == 0:
        numerator, denominator = sympy.fraction(sympy.factor(chosen))
        factors = [f for part in (numerator, denominator) for f in sympy.Mul.make_args(part) if _sign(f) == 0]
        if len(factors) == 1:
            rest = (
                chosen / factors[0] if factors[0] in sympy.Mul.make_args(numerator) else chosen * factors[0]
            )
            wanted = factors[0] if _sign(sympy.cancel(rest)) >= 0 else -factors[0]
            notes.append(f"exists only where {_greater(wanted)}")
        else:
            notes.append("exists only where it is positive")
    if integer:
        notes.append(f"{x.name} is an integer: round up")
    return Solution(sympy.factor(chosen), "", tuple(notes))


def _greater(form: sympy.Expr) -> str:
    """``a > b`` for a form that must be positive."""
    terms = sympy.Add.make_args(sympy.expand(form))
    plus = sympy.Add(*(t for t in terms if not t.could_extract_minus_sign()))
    minus = sympy.Add(*(-t for t in terms if t.could_extract_minus_sign()))
    return f"{plus} > {minus}"


def _holds(left: sympy.Expr, right: sympy.Expr) -> str:
    difference = sympy.cancel(left - right)
    if difference.is_number and difference.is_real:
        side = "below" if difference < 0 else "above"
        return f"the left side is always {side} the right one"
    return ""


def _scan(left: sympy.Expr, right: sympy.Expr, x: sympy.Symbol) -> Solution:
    """The first integer at which the left side reaches the right one, by doubling and halving."""
    difference = left - right
    if set(unbound(difference)) - {x.name}:
        raise Unsolved(f"{x.name} stands in a maximum or a rounded division: give the other dims")

    def at(n: int) -> sympy.Expr:
        return difference.xreplace({x: sympy.Integer(n)})

    start = at(1)
    if start == 0:
        return Solution(sympy.Integer(1), "", (f"first integer: {x.name} = 1",))
    low, high = 1, 2
    while high < _LAST_INTEGER and (at(high) > 0) == (start > 0) and at(high) != 0:
        low, high = high, 2 * high
    if high >= _LAST_INTEGER:
        return Solution(sympy.Integer(0), "never", (f"never: no crossing up to {x.name} = {_LAST_INTEGER}",))
    while high - low > 1:
        middle = (low + high) // 2
        if (at(middle) > 0) == (start > 0) and at(middle) != 0:
            low = middle
        else:
            high = middle
    return Solution(
        sympy.Integer(high), "", (f"first integer at which the sides meet or cross: {x.name} = {high}",)
    )
