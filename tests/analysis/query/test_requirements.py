"""Answers stay within the shapes that an op takes: limits, crossings and derivatives beside `require`."""

from __future__ import annotations

import pytest

from opspec.analysis.query import query
from opspec.diagnostics import Failure
from opspec.frontend import load_text

TEXT = """op causal[B, L, T, D](q: bf16[B, L, D], k: bf16[B, T, D]) -> r: f32[B, L] {
  require L <= T
  kernel k1 {
    s[b, i, j] = sum[d](q[b, i, d] * k[b, j, d])  for j < i + 1 + T - L
    r[b, i] = max[j](s[b, i, j])
  }
}
op heads[H, G, T](x: bf16[H, T]) -> y: bf16[H, T] {
  require H % G == 0
  let N = H // G
  kernel k1 { y[h, t] = 2 * x[h, t] }
}
op window[T, W](x: f32[T]) -> y: f32[T] {
  kernel k1 { y[t] = sum[s](x[s])  for s <= t, t - s < W }
}
workload w for causal { B = 4, L = 512, T = 4096, D = 64 }
workload h for heads { H = 32, G = 8, T = 4096 }
workload v for window { T = 1000, W = 100 }
"""
MODULE = load_text(TEXT)


def ask(text, op="causal", **more):
    return query(MODULE, MODULE.op(op), text, **more)


@pytest.mark.parametrize("settings", [{}, {"T": 4096}])
def test_no_limit_beyond_a_bound(settings):
    with pytest.raises(Failure) as caught:
        ask("limit(flops.tensor / L ** 2, L -> oo)", settings=settings)
    assert caught.value.diagnostics[0].message == "the op takes no L that large: `require L <= T`"
    assert caught.value.diagnostics[0].code.code == "OP724"


def test_a_limit_in_a_dim_that_may_grow():
    assert ask("limit(flops.tensor / (B * D * L * T), T -> oo)").value == 2
    found = ask("limit(bytes / H, H -> oo)", "heads", settings={"G": 3})
    assert found.symbolic == "4 * T"
    assert found.notes == ("as far as `require H % G == 0` allows it",)


def test_no_crossing_beyond_a_bound():
    found = ask("solve(B * L == 40000, L)", workload="w")
    assert (found.word, found.notes) == (
        "never",
        ("never: it would need L = 10000, and `require L <= T` forbids that",),
    )
    assert ask("solve(B * L == 4000, L)", workload="w").value == 1000
    assert ask("solve(B * L == 40000, L)").symbolic == "40000 / B"


def test_the_first_integer_that_divides():
    found = ask("solve(bytes == 1 MB, H)", "heads", workload="h")
    assert found.value == pytest.approx(1e6 / 4 / 4096)
    assert found.notes == ("first admissible integer: H = 64",)
    assert ask("solve(bytes == 1 MB, N)", "heads", workload="h").notes == ("first integer: N = 8",)


def test_a_derivative_of_the_branch_that_holds():
    found = ask("diff(flops, W)", "window", workload="v")
    steps = [ask("flops", "window", settings={"T": 1000, "W": n}).value for n in (99, 101)]
    assert found.value == pytest.approx((steps[1] - steps[0]) / 2)
    assert found.notes[-1] == "of the branch that holds at this shape"
    with pytest.raises(Failure, match="depends on dims that are open"):
        ask("diff(flops, W)", "window")


def test_resources_of_no_work_do_not_stand_in_a_time():
    assert ", 0)" not in ask("time on h200", "heads").symbolic


@pytest.mark.parametrize(
    "text", ["solve(flops == flops, T)", "solve(T - T == 0, T)", "solve(T == L + T - L, T)"]
)
def test_an_equation_that_determines_nothing_is_refused(text):
    with pytest.raises(Failure) as caught:
        ask(text)
    (found,) = caught.value.diagnostics
    assert found.code.code == "OP724"
    assert found.message == "the two sides are equal for every T: the equation does not determine it"


@pytest.mark.parametrize("text", ["solve(1 / (T - T) == 0, L)", "1 / 0", "solve(1 / 0 == 0, T)"])
def test_a_division_by_zero_is_refused(text):
    with pytest.raises(Failure) as caught:
        ask(text)
    assert caught.value.diagnostics[0].message == "division by zero"


def test_why_never():
    reasons = {
        "solve(flops / bytes == 3000, B)": "never, because B cancels",
        "solve(L == 3, T)": "never: neither side depends on T",
        "solve(1 / T == 0, T)": "never: the sides only come near each other as T grows",
        "solve(T ** 2 == -1, T)": "never: no positive T solves it",
    }
    for text, reason in reasons.items():
        found = ask(text, settings={"L": 7, "D": 5} if "B cancels" in reason else {})
        assert (found.word, found.notes[0]) == ("never", reason)


def test_no_side_of_an_equation_is_infinite():
    with pytest.raises(Failure, match="no side of an equation is infinite"):
        ask("solve(T == oo, T)")
