"""The elasticity x/f · ∂f/∂x of a closed form: by how many percent it changes for one percent of x.

Maxima and minima follow the branch that holds at the shape; a rounded division counts as the quotient itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import sympy

from opspec.analysis.forms import evaluate, tidy
from opspec.analysis.query.solving import Unsolved

_ROUNDED = "a rounded division counts as the quotient: between two steps the value does not move"
_CORNER = "two branches of a maximum are equal here: beyond it the other one moves the value"


HERE = "of the branch that holds at this shape"


def branch_of(
    form: sympy.Expr, x: sympy.Symbol, env: Mapping[str, int | Fraction]
) -> tuple[sympy.Expr, tuple[str, ...]]:
    """The form without maxima and rounded divisions in x, as it is near a shape, and what to know about that.

    Raises: Unsolved where the branch depends on dims that are open.
    """
    notes: dict[str, None] = {}
    smooth = _branch(form, x, env, notes)
    return smooth, tuple(notes)


def elasticity_of(
    form: sympy.Expr, x: sympy.Symbol, env: Mapping[str, int | Fraction]
) -> tuple[sympy.Expr, tuple[str, ...]]:
    """The elasticity of a form in x, and what to know about it.

    Raises: Unsolved where the branch of a maximum depends on dims that are open, or the form is 0.
    """
    if not form.has(x):
        return sympy.Integer(0), ()
    smooth, notes = branch_of(form, x, env)
    if smooth == 0:
        raise Unsolved("the value is 0, and a percentage of that means nothing")
    slope = sympy.diff(smooth, x)
    ratio = x * slope / smooth
    point = evaluate(ratio, env)
    if point.has(sympy.nan, sympy.zoo):
        raise Unsolved("the value is 0 here, and a percentage of that means nothing")
    return tidy(ratio), notes


def _branch(
    form: sympy.Expr, x: sympy.Symbol, env: Mapping[str, int | Fraction], notes: dict[str, None]
) -> sympy.Expr:
    """The form with each maximum that holds x replaced by the argument that is largest at the shape."""
    if not form.has(x) or form.is_Atom:
        return form
    if isinstance(form, sympy.floor | sympy.ceiling):
        notes[_ROUNDED] = None
        return _branch(form.args[0], x, env, notes)
    if isinstance(form, sympy.Max | sympy.Min):
        values = [evaluate(a, env) for a in form.args]
        if not all(v.is_number for v in values):
            raise Unsolved(f"which branch holds depends on dims that are open, {x.name} among them")
        best = (max if isinstance(form, sympy.Max) else min)(values)
        if values.count(best) > 1:
            notes[_CORNER] = None
        return _branch(form.args[values.index(best)], x, env, notes)
    return form.func(*(_branch(a, x, env, notes) for a in form.args))
