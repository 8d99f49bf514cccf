"""Which axis a formula can be cut along: only one that every statement walks along and nothing else."""

from __future__ import annotations

import pytest

from opspec.emit.formula_rows import row_axes
from opspec.frontend import load_text

SHAPES = {"x": "x: f32[M, N]", "w": "w: f32[N, M]", "len": "len: i32[M]"}


def rows(body, shapes="", result="y: f32[M, N]", dims="M, N"):
    shapes = shapes or ", ".join(text for name, text in SHAPES.items() if f"{name}[" in body)
    text = f"op f[{dims}]({shapes}) -> {result} {{ kernel k {{ {body} }} }}"
    return row_axes(load_text(text).ops[0], ())


@pytest.mark.parametrize(
    "body, found",
    [
        ("y[m, n] = exp(x[m, n])", {"x": 0, "y": 0}),
        ("y[m, n] = softmax[n](x[m, n])", {"x": 0, "y": 0}),
        ("y[m, n] = softmax[m](x[m, n])", {"x": 1, "y": 1}),
        ("y[m, n] = x[m, n] + w[n, m]", {"x": 0, "w": 1, "y": 0}),
        ("y[m, n] = x[m, n] * (x[m - 1, n] else 0)", {"x": 1, "y": 1}),
        ("y[m, n] = scan_sum[m](x[m, n])", {"x": 1, "y": 1}),
        ("y[m, n] = x[m, n] + len[m]", {"x": 0, "len": 0, "y": 0}),
        ("y[m, n] = x[m, n] / M", {"x": 1, "y": 1}),
        ("y[m, n] = x[m, n] * m", {"x": 1, "y": 1}),
        ("y[m, n] = where(n < len[m], x[m, n], 0)", {"x": 0, "len": 0, "y": 0}),
        ("y[m, n] = x[m, n] * m * n", {}),
        ("t = sum[m, n](x[m, n]) y[m, n] = x[m, n] / t", {}),
        ("y[m, n] = x[m, n] + sum[m2](x[m2, n])", {"x": 1, "y": 1}),
    ],
)
def test_axes(body, found):
    body = body.replace(" y[", "\n y[")
    assert rows(body) == found


def test_a_matrix_is_not_cut_where_it_is_summed():
    shapes, result = "a: f32[M, M], b: f32[M, N]", "y: f32[M, N]"
    assert rows("y[m, n] = sum[k](a[m, k] * b[k, n])", shapes, result) == {"b": 1, "y": 1}


def test_a_tensor_that_is_read_across_the_axis_ties_it():
    assert rows("y[m, n] = x[m, n] + sum[k](w[n, k])") == {"x": 1, "w": 0, "y": 1}


def test_results_without_a_common_axis_are_whole():
    result = "y: f32[M], z: f32[N]"
    assert rows("y[m] = sum[n](x[m, n])\n z[n] = sum[m](x[m, n])", result=result) == {}


def test_bytes_of_two_codes_are_not_cut():
    assert rows("y[m] = w[m] * 0.5", "w: i4[M]", "y: f32[M]", "M") == {}


def test_the_longest_axis_of_the_workloads_is_taken():
    text = """op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = exp(x[m, n]) } }
    workload w for f { M = 4, N = 4096 }"""
    module = load_text(text)
    assert row_axes(module.ops[0], module.workloads) == {"x": 1, "y": 1}
