"""Totals over everything: which blocks get a launch for partial results, and what is left alone."""

from __future__ import annotations

import pytest

from opspec.frontend import load_text
from opspec.ir.show import show_boundary
from opspec.schedule.totals import split_totals, typical_of


def split(text: str):
    module = load_text(text)
    op = module.ops[0]
    return split_totals(op, op.boundaries[0], typical_of(module.workloads_of(op.name)))


def vector(body: str, results: str = "y: f32[]", n: int = 1 << 24, more: str = "") -> str:
    return f"op f[N](x: f32[N]) -> {results} {{\n{more}\nkernel k {{\n{body}\n}} }}\nworkload w for f {{ N = {n} }}\n"


def test_a_total_leaves_partial_results():
    made = split(vector("y = sqrt(sum[i](x[i] ** 2))"))
    assert [k.name for k in made.kernels] == ["k_parts", "k"]
    first, second = show_boundary(made).split("kernel k\n")
    assert "-> " not in first
    assert "y.sum.1.parts[part < " in first
    assert "y.sum.1[] = sum[part < " in second


def test_what_stands_along_the_index_is_stored_by_the_first_launch():
    made = split(vector("y[i] = exp(x[i])\nz = sum[i](y[i])", "y: f32[N], z: f32[]"))
    first, second = made.kernels
    assert [d.output.tensor for d in first.body if d.output] == ["y"]
    assert [d.output.tensor for d in second.body if d.output] == ["z"]


COLUMNS = (
    "op f[M, N](x: f32[M, N]) -> y: f32[N] { kernel k { y[n] = sum[m](x[m, n]) } }\n"
    "workload w for f { M = 8192, N = 8192 }\n"
)


@pytest.mark.parametrize(
    "text",
    [
        vector("y = sum[i](x[i])", n=4096),  # small
        vector("y = sum[i](x[i])").partition("workload")[0],  # of unknown size
        vector("s = sum[i](x[i])\ny[i] = x[i] / s", "y: f32[N]"),  # goes along the index again
        vector("y = logsumexp[i](x[i])"),  # a total that needs another
        vector("y = max[i](x[i])", more="require N >= 1"),  # a part may be empty
        vector("y = argmax[i](x[i])", "y: i64[]", more="require N >= 1"),
        vector("s[i] = scan_sum[i](x[i])\ny = max[i](s[i]) else -inf"),
        COLUMNS,
    ],
)
def test_other_blocks_stay_one_launch(text: str):
    assert [k.name for k in split(text).kernels] == ["k"]


@pytest.mark.parametrize(
    "body, results",
    [
        ("y = var[i](x[i])", "y: f32[]"),
        ("m = mean[i](x[i])\ny = sum[i]((x[i] - m) ** 2)", "m: f32[], y: f32[]"),
        ("let e[i] = exp(x[i])\ny = var[i](e[i])", "y: f32[]"),
    ],
    ids=["variance", "with its mean", "of a computed value"],
)
def test_a_total_about_means_is_summed_about_those_of_its_part(body: str, results: str):
    made = split(vector(body, results))
    assert [k.name for k in made.kernels] == ["k_parts", "k"]
    first, second = show_boundary(made).split("kernel k\n")
    assert ".parts[part] * reciprocal(implicit f32(int(" in first  # its own mean
    assert ".parts[part] + " in second  # each joined to the mean of all


def test_what_else_needs_the_mean_along_the_index_keeps_one_launch():
    text = vector("y[i] = x[i] - mean[i](x[i])\nv = sum[i](y[i] * y[i])", "y: f32[N], v: f32[]")
    assert [k.name for k in split(text).kernels] == ["k"]


def test_rows_are_split_before_columns():
    made = split(
        "op f[M, N](x: f32[M, N]) -> y: f32[] { kernel k { y = sum[m, n](x[m, n]) } }\n"
        "workload w for f { M = 8192, N = 32768 }\n"
    )
    (part,) = made.kernels[0].body
    assert [str(r.upper) for r in part.value.ranges] == ["((M + 511) // 512)", "N"]
