"""Points in Python's numbers equal those that SymPy gives."""

from __future__ import annotations

import random

import pytest
import sympy

from opspec.analysis.costs import cost
from opspec.analysis.export import byte_totals, flop_totals
from opspec.analysis.forms import evaluate, unbound
from opspec.analysis.lattice.symbols import symbol
from opspec.analysis.review.points import coefficients, value
from opspec.diagnostics import Failure
from tests.analysis.random_ops import Maker

A, B = symbol("A"), symbol("B")


def test_random_forms_agree_with_sympy():
    draw = random.Random(7)
    seen = 0
    for seed in range(40):
        op = Maker(seed).op()
        try:
            costs = cost(op)
        except Failure:
            continue
        for form in (*flop_totals(costs.flops).values(), *byte_totals(costs, "").values()):
            env = {n: draw.randint(1, 90) for n in unbound(form)}
            theirs = evaluate(form, env)
            mine = value(form, env)
            if theirs.is_Rational:
                assert mine == theirs, (seed, form)
                seen += 1
            else:
                assert mine is None
    assert seen > 150


@pytest.mark.parametrize(
    "form",
    [
        3 * A**2 * B + A + 7,
        (A + B) ** 3,
        A * sympy.Max(B, 5) + A / 4,
        sympy.ceiling(B / 3) * A**2,
        sympy.Integer(4),
    ],
)
def test_coefficients_of_a_polynomial(form):
    found = coefficients(form, {"B": 10}, "A")
    plain = form.xreplace({B: sympy.Integer(10)})
    assert found == list(sympy.Poly(plain, A).all_coeffs())


@pytest.mark.parametrize("form", [1 / A, sympy.Max(A, 3), sympy.floor(A / 2), sympy.sqrt(A), A * symbol("C")])
def test_other_forms_have_none(form):
    assert coefficients(form, {"B": 10}, "A") is None


def test_what_is_no_number_is_none():
    assert value(1 / (A - B), {"A": 3, "B": 3}) is None
    assert value(A + B, {"A": 3}) is None
    assert value(sympy.sqrt(A), {"A": 4}) is None
    assert value(sympy.oo + A, {"A": 4}) is None
