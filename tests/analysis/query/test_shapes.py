"""Shapes that are set: requirements hold, derived dims follow, distributions keep their variables."""

from __future__ import annotations

import pytest
import sympy

from opspec.diagnostics import Failure
from tests.analysis.query.test_sensitivity import ask


def refused(text, **more):
    with pytest.raises(Failure) as caught:
        ask(text, **more)
    (found,) = caught.value.diagnostics
    return found


def test_a_shape_that_breaks_a_requirement_is_refused():
    found = refused("ai", settings={"Hq": 32, "Hkv": 3})
    assert found.code.code == "OP724"
    assert found.message == "the shape breaks `require Hq % Hkv == 0` with Hkv = 3, Hq = 32"
    assert refused("ai at (Hkv = 3)", workload="decode_8k").message == found.message
    assert refused("ai", settings={"Hq": 32, "Hkv": 0}).code.code == "OP724"
    assert ask("ai", settings={"Hkv": 3}).value is None


def test_empty_shapes_have_counts_and_no_intensity():
    assert ask("flops", settings={"B": 0}).value == 0
    found = refused("ai", settings={"B": 0})
    assert (found.code.code, found.span.text) == ("OP724", "ai")
    assert refused("ai > 1", settings={"B": 0, "Hq": 1, "Hkv": 1, "T": 1, "D": 1}).code.code == "OP724"


def test_a_derived_dim_at_a_place_changes_what_binds_there():
    assert ask("bound on h200", workload="decode_8k").word == "memory"
    assert ask("bound on h200 at (G = 300)", workload="decode_8k").word == "tensor"
    assert ask("bound on h200", workload="decode_8k", settings={"G": 300}).word == "tensor"


def test_a_place_may_be_followed_by_a_machine():
    assert ask("time at (T = 16) on h200", workload="decode_8k").value == pytest.approx(
        ask("time on h200", workload="decode_8k", settings={"T": 16}).value
    )


SERVED = {"workload": "served"}
SHAPES = [{"B": 8, "Hq": 32, "Hkv": 8, "D": 128, "T": t} for t in (512, 2048, 8192)]


def test_derivatives_over_a_distribution_are_those_of_the_means():
    slope = ask("diff(bytes, Hq)", **SERVED)
    assert slope.value == 4 * 8 * 128
    assert ask("diff(ai.tensor, Hq)", **SERVED).value == pytest.approx(0.124646, rel=1e-5)


def test_crossings_over_a_distribution_are_those_of_the_means():
    found = ask("solve(ai.tensor == 206.125, G)", **SERVED)
    at = ask("ai.tensor", workload="served", settings={"G": int(found.notes[0].rpartition(" ")[2])})
    below = ask("ai.tensor", workload="served", settings={"G": int(found.notes[0].rpartition(" ")[2]) - 1})
    assert below.value < 206.125 <= at.value


def test_a_dim_that_varies_is_no_variable():
    for text in ("diff(ai, T)", "limit(ai, T -> oo)", "solve(ai == 3, T)"):
        found = refused(text, **SERVED)
        assert found.message == "`T` differs between the shapes of the workload, so that it is no variable"
    assert ask("limit(ai.tensor, D -> oo)", **SERVED).value == pytest.approx(ask("ai.tensor", **SERVED).value)


def test_a_place_sets_every_shape_of_a_distribution():
    assert (
        ask("ai.tensor at (T = 1000)", **SERVED).value
        == ask("ai.tensor", settings={**SHAPES[0], "T": 1000}).value
    )


def test_attainable_over_a_distribution_is_that_of_the_mean_intensity():
    ai = ask("ai.tensor", **SERVED).value
    assert ask("attainable on h200", **SERVED).value == pytest.approx(ai * 4.8e12)


@pytest.mark.parametrize(
    ("text", "symbolic"),
    [
        ("limit(time, T -> oo)", "math.inf"),
        ("limit(-time, T -> oo)", "-math.inf"),
        ("limit(time / T ** 2, T -> oo)", "0"),
        ("limit(attainable / peak, Hq -> oo)", "min(8 * T / 1649, 1)"),
        ("limit(max(T, B) - T, T -> oo)", "0"),
        ("limit(T - min(T, B), T -> oo)", "math.inf"),
        ("limit(3 * max(1 / T, 2 / T), T -> oo)", "0"),
    ],
)
def test_limits_of_maxima_with_other_dims_open(text, symbolic):
    assert ask(text, machine="h200").symbolic == symbolic


def test_a_time_is_solved_with_other_dims_open():
    found = ask("solve(time == 1 ms, T)", machine="h200")
    assert isinstance(found.form, sympy.Min)
    dims = {"B": 8, "Hq": 32, "Hkv": 32, "D": 128}
    here = found.form.subs({s: dims[s.name] for s in found.form.free_symbols})
    assert float(here) == pytest.approx(ask("solve(time == 1 ms, T)", machine="h200", settings=dims).value)
    assert ask("solve(time == 3 us, T)", machine="h200").word == "never"


@pytest.mark.parametrize(
    ("text", "code", "help"),
    [
        ("flops + 3 GMAC", "OP723", "a MAC is 2 FLOP"),
        ("flops + 1 GB", "OP723", "divide one by the other"),
        ("2 min", "OP721", "units: FLOP and MAC"),
        ("1 GB + 1 ms", "OP723", "divide"),
    ],
)
def test_units_that_do_not_go_together(text, code, help):
    found = refused(text, workload="decode_8k")
    assert found.code.code == code
    assert help in found.help


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1 GiB - 1 GB", 73_741_824, "B"), ("1 PFLOP / 1 s", 1e15, "FLOP/s"), ("3 GMAC * 2", 6e9, "MAC"),
        ("flops / (1 GMAC * 2 FLOP / 1 MAC)", 1086324992 / 2e9, ""), ("0 ms + 5 ns", 5e-9, "s"),
    ],
)  # fmt: skip
def test_units_carry_their_scale(text, value, unit):
    found = ask(text, workload="decode_8k")
    assert (found.value, found.unit) == (pytest.approx(value), unit)


GEMM = """dtype X in {bf16, f32}
op mm[M, N, K](a: X[M, K], b: X[K, N]) -> c: X[M, N] { kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) } }
op narrow[M, N, K](a: f8e4m3[M, K], b: f8e4m3[K, N]) -> c: bf16[M, N] {
  kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) }
}
workload w for mm { M = 8, N = 8, K = 8, X = bf16 }
workload v for narrow { M = 8, N = 8, K = 8 }
"""


def gemm(text, op="mm", **more):
    from opspec.analysis.query import query
    from opspec.frontend import load_text

    m = load_text(GEMM)
    return query(m, m.op(op), text, **more)


def test_an_open_type_is_the_first_of_its_choices_where_peaks_matter():
    found = gemm("ridge", machine="h200")
    assert (found.value, found.notes) == (206.125, ("X = bf16, the first of its choices",))
    assert gemm("ridge on h200").value == 206.125
    assert gemm("ridge", machine="h200", dtypes={"X": "f32"}).value == 13.9375
    assert "no matrix unit for f32" in gemm("time", machine="h200", dtypes={"X": "f32"}).notes[-1]
    assert gemm("bytes").symbolic == "sizeof_X * (K * M + K * N + M * N)"


def test_a_wider_peak_is_taken_and_said():
    for text in ("ridge", "peak", "time", "attainable", "bound"):
        found = gemm(text, "narrow", machine="a100", workload="v")
        assert "a100 has no peak for f8e4m3: f16's is taken" in found.notes


@pytest.mark.parametrize("text", ["ridge", "peak", "time", "attainable", "bound"])
def test_a_machine_without_a_peak_for_the_type_gives_no_answer(text):
    from dataclasses import replace

    from opspec.analysis.machine import load as machine

    h200 = machine("h200")
    lacking = replace(h200, name="lacking", tensor={"f8e4m3": h200.tensor["f8e4m3"]})
    with pytest.raises(Failure) as caught:
        gemm(text, machine=lacking, workload="w")
    (found,) = caught.value.diagnostics
    assert (found.code.code, found.message) == ("OP724", "`lacking` states no peak for products of bf16")
    assert "its peaks are for f8e4m3" in found.help
    assert gemm("bytes / bandwidth", machine=lacking, workload="w").value > 0


def test_roots_are_written_above_and_below_a_fraction_line():
    from opspec.analysis.query.answer import python_form

    x, y = sympy.symbols("x y", positive=True)
    text = python_form(x / sympy.sqrt(y) + sympy.sqrt(x + 1), "")
    assert eval(text, {"math": __import__("math"), "x": 3, "y": 4}) == pytest.approx(3.5)
    found = ask("solve(ai.tensor ** 2 == T * Hkv / (B * D), Hq)")
    assert "sqrt" in found.symbolic
