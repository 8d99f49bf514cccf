from __future__ import annotations

import json

import pytest
import sympy
from conftest import module

from opspec.analysis.export import cost_json
from opspec.analysis.forms import closed_form_python, python_names, tidy
from opspec.analysis.lattice.symbols import largest, smallest, symbol

A, B, C = map(symbol, "ABC")


def test_cost_json_is_deterministic_and_plain():
    m = module("decode")
    first, second = (cost_json(m, m.op("decode")) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    assert first["schema"] == 1
    assert first["boundaries"][""]["ai.tensor"] == "Hq * T / (Hkv * T + Hq)"
    case = first["workloads"]["decode_8k"]["cases"][0]
    assert case["flops"]["flops.tensor"] == 1073741824
    assert case["boundaries"][""]["bytes"] == 1073872896


def test_forms_in_cost_json_compute_the_numbers():
    m = module("latent_block")
    data = cost_json(m, m.op("latent_block"))
    for w in data["workloads"].values():
        for case in w["cases"]:
            for name, totals in data["boundaries"].items():
                for key, number in case["boundaries"][name].items():
                    assert eval(totals[key], dict(case["dims"])) == number
            for key, number in case["flops"].items():
                assert eval(data["flops"][key], dict(case["dims"])) == number


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (A * (A + 1) / 2, "A * (A + 1) // 2"),
        (A**2 / 2 + A / 2, "(A**2 + A) // 2"),
        (A / 2 - B / 3, "(3 * A - 2 * B) // 6"),
        (A / 3 - 5 * B / 4, "(4 * A - 15 * B) // 12"),
        (largest(A - B, sympy.Integer(0)), "max(A - B, 0)"),
        (smallest(A, B) * 3, "3 * min(A, B)"),
        (sympy.floor(A / B) * C, "C * (A // B)"),
        (sympy.ceiling(A / 4), "(-(-A // 4))"),
        (A * B / C, "A * B // C"),
        (-A, "-A"),
        (sympy.Integer(0), "0"),
        (-A * (B - C), "-A * (B - C)"),
    ],
)
def test_python_of_forms(form: sympy.Expr, text: str):
    found = closed_form_python(form)
    env = {"A": 12, "B": 4, "C": 3}
    assert eval(found, dict(env)) == int(form.subs({symbol(k): v for k, v in env.items()}))
    assert found == text


def test_ratios_divide_as_floats():
    assert closed_form_python(A / (A + B), integer=False) == "A / (A + B)"


def test_names_python_can_not_take():
    names = python_names(["lambda", "lambda_", "class", "max", "N", "sum(len^2)", "sizeof(X)", "N'"])
    assert names["N"] == "N"
    assert len(set(names.values())) == len(names)
    assert all(v.isidentifier() and v not in {"lambda", "class", "max"} for v in names.values())
    assert names["sizeof(X)"] == "sizeof_X"
    assert closed_form_python(symbol("lambda") * 2, names) == f"2 * {names['lambda']}"


def test_tidy_cancels_and_factors():
    assert str(tidy(A * B / (A * C))) == "B/C"
    assert str(tidy(A * B + A * C)) == "A*(B + C)"


def test_a_form_whose_expansion_is_long_stays_as_it_is():
    form = (A + B + 1) ** 64 * (A + B) ** 64
    assert tidy(form) is form
    assert tidy(form / C**65) == form / C**65
    assert tidy((A + B) ** 2 - (A - B) ** 2) == 4 * A * B
