"""The counting rules one by one (semantics, rules 15 to 19)."""

from __future__ import annotations

import pytest

from opspec.analysis.costs import cost
from opspec.frontend import load_text


def op(text: str):
    return load_text(text).ops[0]


def flops(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for t in cost(op(text)).flops:
        key = f"{t.unit}.{t.op}"
        found[key] = f"{found[key]} + {t.count}" if key in found else str(t.count)
    return found


def elements(text: str, boundary: str = "") -> dict[tuple[str, str, str], str]:
    return {(t.kernel, t.tensor, t.direction): str(t.elements) for t in cost(op(text)).byte_terms(boundary)}


def kernel(
    body: str, signature: str = "x: f32[M, N]", result: str = "y: f32[M, N]", dims: str = "M, N"
) -> str:
    return f"op t[{dims}]({signature}) -> {result} {{ kernel k {{\n{body}\n}} }}"


def test_one_operation_a_point():
    assert flops(kernel("y[m, n] = x[m, n] + 1.0")) == {"vector.add": "M*N"}


def test_free_things_cost_nothing():
    assert flops(kernel("y[m, n] = -x[m, n]")) == {}
    assert flops(kernel("y[m, n] = bf16(x[m, n])")) == {}
    assert flops(kernel("y[m, n] = sqrt(N) * x[m, n]")) == {"vector.mul": "M*N"}


def test_equal_expressions_count_once():
    assert flops(kernel("y[m, n] = exp(x[m, n]) * exp(x[m, n])")) == {"sfu.exp": "M*N", "vector.mul": "M*N"}


def test_equal_expressions_count_once_over_statements_and_names_of_indices():
    text = """op t[M, N](x: f32[M, N]) -> y: f32[M, N], z: f32[M, N] {
      kernel k {
        y[m, n] = exp(x[m, n]) + 1.0
        z[a, b] = exp(x[a, b]) + 2.0
      }
    }"""
    assert flops(text) == {"sfu.exp": "M*N", "vector.add": "M*N + M*N"}


def test_different_axes_of_one_tensor_are_different():
    text = kernel("y[a, b] = exp(x[a, b]) * exp(x[b, a])", "x: f32[M, M]", "y: f32[M, M]", "M")
    assert flops(text) == {"sfu.exp": "M**2", "vector.mul": "M**2"}


def test_a_part_counts_over_the_indices_that_it_depends_on():
    text = kernel("y[m, n] = x[m, n] * exp(w[n])", "x: f32[M, N], w: f32[N]")
    assert flops(text) == {"sfu.exp": "N", "vector.mul": "M*N"}


def test_naming_a_value_changes_nothing():
    plain = kernel("y[m, n] = exp(x[m, n]) * exp(x[m, n])")
    named = kernel("e[m, n] = exp(x[m, n])\ny[m, n] = e[m, n] * exp(x[m, n])")
    assert flops(plain) == flops(named)


def test_division_is_a_reciprocal_and_a_multiply():
    text = kernel("y[m, n] = x[m, n] / w[n]", "x: f32[M, N], w: f32[N]")
    assert flops(text) == {"sfu.reciprocal": "N", "vector.mul": "M*N"}
    assert flops(kernel("y[m, n] = x[m, n] / 3.0")) == {"vector.mul": "M*N"}
    assert flops(kernel("y[m, n] = x[m, n] / N")) == {"vector.mul": "M*N"}


def test_a_reduction_of_n_points_is_n_combines():
    assert flops(kernel("y[m] = max[n](x[m, n])", result="y: f32[M]")) == {"vector.max": "M*N"}
    assert flops(kernel("y[m] = argmax[n](x[m, n])", result="y: i32[M]")) == {"vector.argmax": "M*N"}


def test_matrix_vector_is_a_contraction_and_a_square_is_not():
    dot = kernel("y[m] = sum[n](x[m, n] * w[n])", "x: f32[M, N], w: f32[N]", "y: f32[M]")
    assert flops(dot) == {"tensor.contraction": "2*M*N"}
    square = kernel("y[m] = sum[n](x[m, n] * x[m, n])", result="y: f32[M]")
    assert flops(square) == {"vector.mul": "M*N", "vector.sum": "M*N"}
    rows = kernel("y[m] = sum[n](x[m, n] * z[m, n])", "x: f32[M, N], z: f32[M, N]", "y: f32[M]")
    assert flops(rows) == {"vector.mul": "M*N", "vector.sum": "M*N"}


def test_further_factors_of_a_contraction():
    shape = {"signature": "a: f32[M, K], b: f32[K, N], s: f32[M], w: f32[K]", "dims": "M, N, K"}
    outer = kernel("y[m, n] = sum[k](a[m, k] * b[k, n] * s[m])", **shape)
    assert flops(outer) == {"tensor.contraction": "2*K*M*N", "vector.mul": "M*N"}
    inner = kernel("y[m, n] = sum[k](w[k] * a[m, k] * b[k, n])", **shape)
    assert flops(inner) == {"tensor.contraction": "2*K*M*N", "vector.mul": "K*M*N"}


@pytest.mark.parametrize(
    ("a", "b", "using", "dtype"),
    [
        ("bf16", "bf16", "", "bf16"), ("f16", "f16", "", "f16"), ("bf16", "f8e4m3", "", "bf16"),
        ("f8e4m3", "f8e4m3", "", "f8e4m3"), ("f32", "f32", "", "f32"), ("f32", "f32", "using tf32", "tf32"),
        ("f32", "f32", "using bf16", "bf16"), ("bf16", "f16", "", "f32"), ("f16", "i8", "", "f16"),
    ],
)  # fmt: skip
def test_operand_type_of_a_contraction(a: str, b: str, using: str, dtype: str):
    text = f"op t[M, N, K](a: {a}[M, K], b: {b}[K, N]) -> y: f32[M, N] {{ kernel k {{ y[m, n] = sum[k] {using} (a[m, k] * b[k, n]) }} }}"
    assert [t.dtype for t in cost(op(text)).flops] == [dtype]


def test_broadcast_operands_count_once():
    text = kernel("y[m, n] = x[m, n] * w[n]", "x: f32[M, N], w: f32[N]")
    assert elements(text)["k", "w", "read"] == "N"


def test_halves_add_up_to_the_whole():
    text = """op t[M, D](x: f32[M, D]) -> y: f32[M, D] {
      require D % 2 == 0
      let C = D // 2
      kernel k {
        y[m, c] = x[m, c + C] for c < C
        y[m, c + C] = x[m, c] for c < C
      }
    }"""
    found = elements(text)
    assert found["k", "x", "read"] == found["k", "y", "write"] == "D*M"


def test_padded_taps_cost_flops_and_no_bytes():
    text = kernel(
        "y[i] = sum[r | r < 3](x[i + r - 1] else 0 * w[r])", "x: f32[N], w: f32[3]", "y: f32[N]", "N"
    )
    assert flops(text) == {"vector.mul": "3*N", "vector.sum": "3*N"} or flops(text) == {
        "tensor.contraction": "6*N"
    }
    assert elements(text)["k", "x", "read"] == "N"


def test_guarded_loads_are_not_made():
    text = kernel("y[m, n] = where(m < 2, x[m, n], 0.0)")
    assert elements(text)["k", "x", "read"] == "N*Min(2, M)"
    assert flops(text) == {"vector.select": "M*N"}


def test_crossing_values_are_written_once_and_read_by_each_block_in_their_storage_type():
    text = """op t[M, N](x: f32[M, N]) -> y: f32[M, N], z: f32[M, N] {
      kernel a { e: bf16[m, n] = exp(x[m, n]) }
      kernel b { y[m, n] = e[m, n] + 1.0 }
      kernel c { z[m, n] = e[m, n] + 2.0 }
    }
    boundary one of t analysis { kernel all { e, y, z } }"""
    terms = [(t.kernel, t.direction, str(t.count)) for t in cost(op(text)).byte_terms() if t.tensor == "e"]
    assert terms == [("a", "write", "2*M*N"), ("b", "read", "2*M*N"), ("c", "read", "2*M*N")]
    assert not [t for t in cost(op(text)).byte_terms("one") if t.tensor == "e"]


def test_an_output_read_in_its_block_is_not_read_from_memory():
    text = """op t[M, N](x: f32[M, N]) -> h: f32[M, N], y: f32[M, N] {
      kernel k {
        h[m, n] = x[m, n] + 1.0
        y[m, n] = h[m, n] * 2.0
      }
    }"""
    assert ("k", "h", "read") not in elements(text)
    assert elements(text)["k", "h", "write"] == "M*N"


def test_packed_nibbles_are_half_a_byte():
    text = "op t[M, N](x: i4[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = f32(x[m, n]) } }"
    assert {str(t.count) for t in cost(op(text)).byte_terms() if t.tensor == "x"} == {"M*N/2"}


def test_a_generic_size_is_a_symbol_until_it_is_fixed():
    text = "dtype X in {bf16, f32}\nop t[M, N](x: X[M, N]) -> y: X[M, N] { kernel k { y[m, n] = x[m, n] + 1.0 } }"
    found = op(text)
    assert str(cost(found).total_bytes()) == "2*M*N*sizeof(X)"
    assert str(cost(found, {"X": "f32"}).total_bytes()) == "8*M*N"


def test_names_that_mean_something_elsewhere():
    text = "op t[N, S, E, I, Q, O, pi, beta, lambda](x: f32[N, S, E, I, Q, O, pi, beta, lambda]) -> y: f32[N] { kernel k { y[n] = sum[s, e, i, q, o, p, b, l](x[n, s, e, i, q, o, p, b, l]) } }"
    assert flops(text) == {"vector.sum": "E*I*N*O*Q*S*beta*lambda*pi"}


def test_a_count_without_a_closed_form_is_refused_at_its_statement():
    from opspec.diagnostics import Failure

    text = """op t[M, N](x: f32[M, N], len: i32[M]) -> y: f32[M] {
      assume len[b] <= N
      kernel k { y[m] = sum[n | n < len[m], n <= m](x[m, n]) }
    }"""
    with pytest.raises(Failure) as caught:
        cost(op(text))
    (found,) = caught.value.diagnostics
    assert found.code.code == "OP701"
    assert found.span is not None
    assert "y[m]" in found.span.text


def test_three_factors_with_one_qualifying_pair():
    text = kernel(
        "y[n] = sum[k](w[n, k] * s[n, k // 8] * x[k])",
        "w: f32[N, 8 * K], s: f32[N, K], x: f32[8 * K]",
        "y: f32[N]",
        "N, K",
    )
    assert flops(text) == {"tensor.contraction": "16*K*N", "vector.mul": "8*K*N"}


def test_a_statement_read_in_part_is_written_whole():
    text = """op t[M](x: f32[M]) -> y: f32[M] {
      kernel a { e[m] = exp(x[m]) }
      kernel b { y[m] = where(m < 3, e[m], 0.0) }
    }"""
    terms = {(t.kernel, t.direction): str(t.elements) for t in cost(op(text)).byte_terms() if t.tensor == "e"}
    assert terms == {("a", "write"): "M", ("b", "read"): "Min(3, M)"}


def test_a_scan_is_one_combine_a_point():
    assert flops(kernel("y[m, n] = scan_sum[n](x[m, n])")) == {"vector.sum": "M*N"}


def test_a_decayed_scan_multiplies_too():
    body = "y[m, n] = scan_sum[n](x[m, n], exp(x[m, n]))"
    assert flops(kernel(body)) == {"vector.sum": "M*N", "vector.mul": "M*N", "sfu.exp": "M*N"}


def test_a_window_over_one_axis_is_exact():
    text = kernel("y[i] = max[r | r < R](x[S * i + r])", "x: f32[S * N + R]", "y: f32[N]", "N, S, R")
    assert elements(text)["k", "x", "read"] == "N*Min(R, S) + R - Min(R, S)"
