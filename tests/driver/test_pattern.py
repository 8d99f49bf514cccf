"""Patterns know folds, laws and maps, and no names."""

from __future__ import annotations

import re

import pytest

from opspec.driver.pattern import contractions, pattern_of
from opspec.frontend import load_text
from opspec.schedule.plan import schedule_kernel

SOFTMAX = "op f[M, N](x: bf16[M, N]) -> y: bf16[M, N] { kernel k { y[m, n] = softmax[n](x[m, n]) } }"
PRODUCT = "op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] { kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) } }"


def plan(text: str):
    op = load_text(text).ops[0]
    boundary = op.boundaries[0]
    return schedule_kernel(op, boundary, boundary.kernels[0])


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("y[m, n] = x[m, n] + 1", ("a map",)),
        ("y[m, n] = x[m, n] / sum[n](x[m, n])", ("sum over a", "a map over a")),
        ("y[m, n] = softmax[n](x[m, n])", ("max over a", "sum over a beside the max", "a map over a")),
        ("y[m, n] = scan_sum[n](x[m, n])", ("running sum along a",)),
        (
            "y[m, n] = scan_max[n](x[m, n]) - max[n](x[m, n])",
            ("running max along a", "max over a", "a map over a"),
        ),
        (
            "y[m, n] = x[m, n] - sum[n](abs(x[m, n] - max[n](x[m, n])))",
            ("max over a", "sum over a after the max", "a map over a"),
        ),
    ],
)
def test_steps(body, steps):
    text = f"op f[M, N](x: f32[M, N]) -> y: f32[M, N] {{ kernel k {{ {body} }} }}"
    assert pattern_of(plan(text)).steps == steps


def test_names_have_no_say():
    renamed = re.sub(
        r"\bM\b", "rows", re.sub(r"\bN\b", "cols", SOFTMAX.replace("x", "logits").replace("maogits", "max"))
    )
    renamed = renamed.replace("softmalogits", "softmax")
    assert "logits" in renamed
    assert pattern_of(plan(renamed)) == pattern_of(plan(SOFTMAX))


def test_written_out_or_by_a_function_it_is_one_pattern():
    spelled = SOFTMAX.replace(
        "y[m, n] = softmax[n](x[m, n])",
        "t[m] = max[i](x[m, i])  y[m, n] = exp(x[m, n] - t[m]) / sum[i](exp(x[m, i] - t[m]))".replace(
            "  y", "\n y"
        ),
    )
    assert pattern_of(plan(spelled)).steps == pattern_of(plan(SOFTMAX)).steps


def test_transposed_operands_share_a_pattern_and_vectors_do_not():
    product = pattern_of(plan(PRODUCT))
    assert (
        pattern_of(plan(PRODUCT.replace("b: bf16[K, N]", "b: bf16[N, K]").replace("b[k, n]", "b[n, k]")))
        == product
    )
    vector = (
        "op f[M, K](a: bf16[M, K], b: bf16[K]) -> c: bf16[M] { kernel k { c[m] = sum[k](a[m, k] * b[k]) } }"
    )
    assert pattern_of(plan(vector)).steps == ("product with a vector over a",)
    assert product.steps == ("product over a",)


def test_contractions_tell_rows_columns_and_batch():
    text = (
        "op f[B, M, N, K](a: bf16[B, M, K], b: bf16[B, K, N]) -> c: bf16[B, M, N] {\n"
        "  kernel k { c[g, m, n] = sum[k](a[g, m, k] * b[g, k, n]) }\n}"
    )
    (c,) = contractions(plan(text))
    assert (c.rows, c.columns, c.batch, c.over, c.unit) == (("m",), ("n",), ("g",), ("k",), True)


@pytest.mark.parametrize(
    ("old", "new", "trait"),
    [
        ("sum[k](a[m, k] * b[k, n])", "exp(sum[k](a[m, k] * b[k, n]))", "an epilogue"),
        ("sum[k](a[m, k]", "sum[k](exp(a[m, k])", "computed operands"),
        ("b: bf16[K, N]", "b: f8e4m3[K, N]", "8-bit storage"),
        ("b: bf16[K, N]", "b: i4[K, N]", "4-bit storage"),
        ("(a[m, k] * b[k, n])", "(a[m, k] * b[k, n]) for n <= m", "a restricted domain"),
    ],
)
def test_traits(old, new, trait):
    text = PRODUCT.replace(old, new)
    if "for n" in new:
        text = text.replace(
            "-> c: bf16[M, N] { kernel k { c[m, n]", "-> c: f32[M] { kernel k { t[m, n]"
        ).replace("n <= m } }", "n <= m\n c[m] = max[n](t[m, n]) else 0 } }")
        text = text.replace("max[n](t[m, n]) else 0", "sum[n](t[m, n])")
    assert trait not in pattern_of(plan(PRODUCT)).traits
    assert trait in pattern_of(plan(text)).traits


def test_an_element_that_data_picks_is_no_length():
    text = (
        "op f[M, C](a: f32[M, C], at: i32[M]) -> y: f32[M] {\n"
        "  kernel k { p[m, c] = log_softmax[c](a[m, c])\n y[m] = p[m, at[m]] }\n}"
    )
    traits = pattern_of(plan(text)).traits
    assert "elements picked by data" in traits
    assert "lengths from data" not in traits


def test_a_window_is_read_more_than_once_and_that_is_not_denied():
    from opspec.driver.questions.problem import products_of

    window = "op f[T, C, K](x: f32[T, C], w: f32[C, K]) -> y: f32[T, C] { kernel k { y[t, c] = sum[r](w[c, r] * (x[t - r, c] else 0)) } }"
    (said,) = products_of(plan(window))
    assert "used once" not in said
    plain = "op f[M, K](a: f32[M, K], b: f32[K]) -> c: f32[M] { kernel k { c[m] = sum[k](a[m, k] * b[k]) } }"
    (said,) = products_of(plan(plain))
    assert "each element of that operand is used once" in said


def test_an_arg_reduction_runs_beside_its_extreme():
    text = "op f[M, N](x: f32[M, N]) -> v: f32[M], i: i64[M] { kernel k { v[m] = max[n](x[m, n])\n i[m] = argmax[n](x[m, n]) } }"
    assert pattern_of(plan(text)).steps == ("max over a", "argmax over a beside its extreme")
