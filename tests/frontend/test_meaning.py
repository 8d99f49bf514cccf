"""From text to numbers: what the checked IR computes, by the float64 reference."""

import numpy as np
import pytest

from opspec.frontend import load_text
from opspec.ir.verify import verify
from opspec.reference.evaluate import evaluate

INF = float("inf")


def run(
    text: str, dims: dict[str, int], scalars: dict[str, float] | None = None, boundary: str = "", **inputs
):
    op = load_text(text).ops[0]
    verify(op)
    arrays = {k: np.asarray(v) for k, v in inputs.items()}
    return {k: r.value for k, r in evaluate(op, arrays, scalars or {}, dims, boundary).items()}


MASKED = """
op f[M, N](s: f32[M, N], keep: bool[M, N], v: f32[N]) -> o: f32[M], lse: f32[M] {
  kernel k {
    t[m, n] = s[m, n] for keep[m, n]
    o[m] = sum[n](softmax[n](t[m, n]) * v[n])
    lse[m] = logsumexp[n](t[m, n])
  }
}
"""


def test_a_fully_masked_row_gives_zero_and_minus_infinity():
    s = np.array([[0, np.log(2), np.log(4)], [0, 0, 0]])
    out = run(MASKED, {"M": 2, "N": 3}, s=s, keep=[[1, 1, 1], [0, 0, 0]], v=[1.0, 2.0, 4.0])
    assert np.allclose(out["o"], [3, 0])
    assert np.allclose(out["lse"], [np.log(7), -INF])


CAUSAL = """
op f[L, T](v: f32[T]) -> o: f32[L] {{
  kernel k {{
    s[i, j] = 0 * v[j]  for j < i + 1{shift}, i < L
    o[i] = sum[j](softmax[j](s[i, j]) * v[j])
  }}
}}
"""


@pytest.mark.parametrize(("shift", "expected"), [(" + T - L", [2.5, 3.0]), ("", [1.0, 1.5])])
def test_causal_alignment_is_what_the_spec_says(shift: str, expected: list[float]):
    out = run(CAUSAL.format(shift=shift), {"L": 2, "T": 5}, v=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert np.allclose(out["o"], expected)


def test_divisions_of_indices_round_down():
    text = "op f[N](x: f32[N]) -> y: f32[N], q: i64[N] {\n kernel k {\n y[i] = x[(i - 3) % N]\n q[i] = (i - 3) // 2\n }\n}"
    out = run(text, {"N": 5}, x=[10.0, 11, 12, 13, 14])
    assert out["y"].tolist() == [12, 13, 14, 10, 11]
    assert out["q"].tolist() == [-2, -1, -1, 0, 0]


def test_ties_round_to_even_and_then_clamp():
    text = (
        "op f[N](x: f32[N]) -> q: i8[N] { kernel k { q[i] = i8.sat(clamp(round(x[i] / 0.5), -128, 127)) } }"
    )
    out = run(text, {"N": 8}, x=[0.25, 0.75, 1.25, -0.25, -0.75, 63.75, -64.25, 0.6])
    assert out["q"].tolist() == [0, 2, 2, 0, -2, 127, -128, 1]


def test_a_mean_divides_by_the_points_of_a_ragged_row():
    text = (
        "op f[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B], z: f32[B] {\n assume 0 <= len[b] <= T\n kernel k {\n"
        "  s[b, t] = x[b, t] for t < len[b]\n  y[b] = mean[t](s[b, t])\n  z[b] = mean[t | t < len[b]](x[b, t])\n }\n}"
    )
    out = run(text, {"B": 2, "T": 4}, x=[[1.0, 2, 3, 100], [5.0, 100, 100, 100]], len=[3, 1])
    assert out["y"].tolist() == out["z"].tolist() == [2.0, 5.0]


def test_a_function_condition_restricts_all_its_reductions():
    text = "op f[N](x: f32[N, N]) -> y: f32[N] {{ kernel k {{ y[i] = {}[j | j <= i](x[i, j]) }} }}"
    x = np.arange(9.0).reshape(3, 3)
    for name, f in (("mean", np.mean), ("var", np.var), ("logsumexp", lambda r: np.log(np.exp(r).sum()))):
        out = run(text.format(name), {"N": 3}, x=x)
        assert np.allclose(out["y"], [f(x[i, : i + 1]) for i in range(3)])


def test_outputs_filled_in_parts():
    text = (
        "op f[D](x: f32[D]) -> y: f32[D] {\n require D % 2 == 0\n let C = D // 2\n kernel k {\n"
        "  y[c] = x[c + C] for c < C\n  y[c + C] = -x[c] for c < C\n }\n}"
    )
    assert run(text, {"D": 4}, x=[1.0, 2, 3, 4])["y"].tolist() == [3, 4, -1, -2]


def test_segments():
    text = (
        "op f[N, E](x: f32[N], w: f32[E], offs: i32[E + 1]) -> y: f32[N], s: f32[E] {\n kernel k {\n"
        "  y[n] = x[n] * w[e] for n in offs[e]..offs[e + 1]\n  s[e] = sum[n](x[n]) for n in offs[e]..offs[e + 1]\n }\n}"
    )
    out = run(text, {"N": 4, "E": 3}, x=[1.0, 2, 3, 4], w=[10.0, 20, 30], offs=[0, 1, 1, 4])
    assert out["y"].tolist() == [10, 60, 90, 120]
    assert out["s"].tolist() == [1, 0, 9]


def test_updates_in_place():
    text = "op f[N](inout x: f32[N]) -> y: f32[N] {\n kernel k {\n x[i] = 0.5 * x[i]\n y[i] = x[i] + 1\n }\n}"
    out = run(text, {"N": 2}, x=[64.0, 2.0])
    assert (out["x"].tolist(), out["y"].tolist()) == ([32, 1], [33, 2])


def test_storage_rounds_between_kernels_and_not_inside():
    text = (
        "op f[N](x: f32[N]) -> y: f32[N] {\n kernel k {\n s: bf16[i] = x[i]\n y[i] = s[i]\n }\n}\n"
        "boundary two of f { kernel a { s } kernel b { y } }\n"
    )
    x = [1 + 2**-12]
    assert run(text, {"N": 1}, x=x)["y"].tolist() == x
    assert run(text, {"N": 1}, x=x, boundary="two")["y"].tolist() == [1.0]


def test_conditions_on_data_leave_points_out():
    text = (
        "op f[N](x: f32[N]) -> s: f32[], m: f32[], n: f32[] {\n kernel k {\n  s = sum[i | x[i] > 0](x[i])\n"
        "  m = max[i | x[i] < 0](x[i]) else -inf\n  n = count[i | x[i] > 0]()\n }\n}"
    )
    out = run(text, {"N": 4}, x=[1.0, -2, 3, -0.5])
    assert (float(out["s"]), float(out["m"]), float(out["n"])) == (4, -0.5, 2)


def test_shifted_and_guarded_reads():
    text = "op f[N](x: f32[N]) -> y: f32[N], z: f32[N] {{\n kernel k {{\n  y[i] = {}\n  z[i] = x[i - 1] else 0 + x[i + 1] else 0\n }}\n}}"
    for guard in ("where(i >= 1, exp(x[i - 1]) * 2, 0)", "where(i < 1, 0, exp(x[i - 1]) * 2)"):
        out = run(text.format(guard), {"N": 3}, x=[0.0, 1.0, 2.0])
        assert np.allclose(out["y"], [0, 2, 2 * np.e])
        assert out["z"].tolist() == [1, 2, 1]


def test_counts_hold_wherever_their_index_goes():
    """The clause after ``for`` cuts the statement, not the reduction that reuses its index."""
    text = (
        "op f[N](x: f32[N, N]) -> y: f32[N] {\n kernel k {\n"
        "  s[i] = norm[i](mean[j | j <= i, j < 2](x[i, j])) for i < 1, i < N\n  y[i] = s[i] else 0\n }\n}"
    )
    x = np.arange(1.0, 10.0).reshape(3, 3)
    means = [x[0, 0], x[1, :2].mean(), x[2, :2].mean()]
    assert np.allclose(run(text, {"N": 3}, x=x)["y"], [np.sqrt(np.square(means).sum()), 0, 0])
