"""Shorter forms of values, and where a division stays one."""

from __future__ import annotations

import pytest

from opspec.ir.show import show_value
from opspec.ir.values import Binary, Unary, walk
from opspec.schedule.magnitudes import GREATEST, ranges_of
from opspec.schedule.tile import Write, statements, values_of

MAP = "op f[N](x: f32[N], z: f32[N], s: f32) -> y: {dtype}[N] {{\n  kernel k {{ y[n] = {value} }}\n}}\n"


def shown(plan, value: str, dtype: str = "f32") -> str:
    """What is stored of a map, where it is one expression of loads."""
    program = plan(MAP.format(value=value, dtype=dtype)).variants[0].program
    assigned = {
        s.var.name: s.value for s in statements(program.body) if hasattr(s, "value") and hasattr(s, "var")
    }
    stored = next(s for s in program.body if isinstance(s, Write)).value
    text = show_value(assigned.get(getattr(stored, "name", ""), stored))
    return text.replace("[n]", "").replace(":f32", "")


def operations(program) -> set[str]:
    every = [v for s in statements(program.body) for value in values_of(s) for v in walk(value)]
    return {v.op for v in every if isinstance(v, Unary | Binary)}


def test_an_exponential_is_a_power_of_two_of_one_product(plan):
    assert shown(plan, "exp(x[n])") == "exp2((x * 1.4426950408889634))"
    assert shown(plan, "exp(-x[n] / 2)") == "exp2((x * -0.7213475204444817))"
    assert shown(plan, "exp(0.5 * x[n] * 4)") == "exp2((x * 2.8853900817779268))"


def test_numbers_that_may_overflow_together_stay_apart(plan):
    assert shown(plan, "exp(1e30 * x[n] * 1e30)") == "exp2((((1e+30 * x) * 1e+30) * 1.4426950408889634))"


@pytest.mark.parametrize(
    ("value", "short"),
    [
        ("1 + tanh(x[n])", "(2.0 / (1.0 + exp2((x * -2.8853900817779268))))"),
        ("tanh(x[n]) + 1", "(2.0 / (1.0 + exp2((x * -2.8853900817779268))))"),
        ("1 - tanh(x[n])", "(2.0 / (1.0 + exp2((x * 2.8853900817779268))))"),
        ("3 * (1 + tanh(x[n]))", "(6.0 / (1.0 + exp2((x * -2.8853900817779268))))"),
        ("0.5 * z[n] * (1 + tanh(x[n]))", "(z / (1.0 + exp2((x * -2.8853900817779268))))"),
        ("1 + erf(x[n])", "one_plus_erf(x)"),
        ("1 - erf(x[n])", "one_plus_erf(neg(x))"),
    ],
)
def test_what_is_left_of_one_is_computed_alone(plan, value, short):
    assert shown(plan, value) == short


def test_a_floor_keeps_the_sum_and_its_rounding(plan):
    assert "tanh" in shown(plan, "floor(1 + tanh(x[n]))")


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ("sigmoid(x[n])", "div_fast"),
        ("z[n] / max(abs(x[n]) / 448, 1e-12)", "div_fast"),
        ("z[n] / (1 + x[n] * x[n])", "div"),  # beyond 2**126 its reciprocal would be 0
        ("z[n] / x[n]", "div"),
        ("z[n] / max(x[n], 1e-38)", "div"),  # its reciprocal may overflow
        ("z[n] / min(max(x[n], -9), -3)", "div_fast"),
        ("1 / (1 + x[n] * x[n])", "div_fast"),  # beyond 2**126 the quotient may be 0
        ("z[n] / s", "mul"),
    ],
)
def test_a_divisor_away_from_the_ends_is_a_reciprocal(plan, value, made):
    program = plan(MAP.format(value=value, dtype="f32")).variants[0].program
    found = operations(program) & {"div", "div_fast", "div_near"}
    assert made in found or (made == "mul" and not found - {"div"})
    assert ("div_fast" in found) == (made == "div_fast")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ("floor(z[n] / max(abs(x[n]), 1e-6) / 3)", "f32"),
        ("i8.sat(z[n] / min(max(x[n], 1), 9))", "i8"),
        ("where(z[n] / min(max(x[n], 1), 9) < 2, 1, 0)", "f32"),
    ],
)
def test_where_the_last_bit_matters_a_quotient_is_rounded_once(plan, value, dtype):
    found = operations(plan(MAP.format(value=value, dtype=dtype)).variants[0].program)
    assert "div_near" in found
    assert "div_fast" not in found


def test_a_rounding_to_fewer_bits_of_a_float_is_none(plan):
    text = MAP.format(value="f8e4m3.sat(z[n] / max(abs(x[n]), 1e-6))", dtype="f8e4m3")
    assert "div_near" not in operations(plan(text).variants[0].program)


def test_a_scale_that_an_integer_follows_is_exact_in_another_statement(plan):
    text = (
        "op f[M, N](x: f32[M, N]) -> q: i8[M, N], scale: f32[M] {\n  require N >= 1\n  kernel k {\n"
        "    scale[m] = max(max[n](abs(x[m, n])) / 127, 1e-12)\n"
        "    q[m, n] = i8.sat(round(x[m, n] / scale[m]))\n  }\n}\n"
    )
    for variant in plan(text).variants:
        assert operations(variant.program) & {"div", "div_fast", "div_near"} == {"div_near"}
        low, high = ranges_of(variant.program)["scale"]
        assert low == 1e-12
        assert high == pytest.approx(GREATEST / 127)
