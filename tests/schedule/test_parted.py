"""Totals of few and large groups: which blocks get launches for partial results, and how these lie in memory."""

from __future__ import annotations

import pytest

from opspec.frontend import load_text
from opspec.ir.show import show_boundary
from opspec.schedule.parted import split_groups, with_parts
from opspec.schedule.totals import typical_of


def split(text: str):
    module = load_text(text)
    op = module.ops[0]
    return split_groups(op, op.boundaries[0], typical_of(module.workloads_of(op.name)))


def names(text: str) -> list[str]:
    return [k.name for k in split(text).kernels]


def group_norm(
    at: str, shape: str, body: str = "layernorm[k, s](v[n, g, k, s], 1e-5)", n: int = 8, s: int = 4096
) -> str:
    return (
        f"op f[N, G, C, S](x: bf16[{shape}]) -> y: bf16[{shape}] {{\n"
        "  require G >= 1\n  require C % G == 0\n  let K = C // G\n"
        f"  kernel k {{\n    v[n, g, k, s] = x[{at}] for g < G, k < K\n    z[n, g, k, s] = {body}\n"
        f"    y[{at}] = z[n, g, k, s] for g < G, k < K\n  }}\n}}\n"
        f"workload w for f {{ N = {n}, G = 32, C = 320, S = {s} }}\n"
    )


BEFORE = group_norm("n, g * K + k, s", "N, C, S", s=16384)
BEHIND = group_norm("n, s, g * K + k", "N, S, C")


def rows(body: str, m: int, n: int, results: str = "y: f32[M]") -> str:
    return f"op f[M, N](x: f32[M, N]) -> {results} {{ kernel k {{ {body} }} }}\nworkload w for f {{ M = {m}, N = {n} }}\n"


@pytest.mark.parametrize("text", [BEFORE, BEHIND], ids=["before space", "behind space"])
def test_a_norm_of_few_groups_takes_three_launches_over_channels(text: str):
    made = split(text)
    assert [k.name for k in made.kernels] == ["k_parts", "k_totals", "k"]
    first, rest = show_boundary(made).split("kernel k_totals\n")
    second, third = rest.split("kernel k\n")
    assert "c < C" in first  # a channel is one index, along memory where tensors have it so
    assert "g < G" not in first
    assert "g*(C // G) + k]" in second
    assert "c // (C // G)" in third


def test_channels_along_memory_are_summed_in_runs_of_rows():
    first = show_boundary(split(BEHIND)).split("kernel k_totals\n")[0]
    assert "part < ((S + 63) // 64)" in first
    assert "sum[s < 64 | " in first
    assert "part <" not in show_boundary(split(BEFORE))


@pytest.mark.parametrize(
    "text",
    [
        group_norm("n, g * K + k, s", "N, C, S", n=64),  # groups enough
        group_norm("n, g * K + k, s", "N, C, S", s=256),  # a program holds one
        group_norm("n, g * K + k, s", "N, C, S"),  # or keeps its rows
        BEFORE.partition("workload")[0],  # of unknown size
        group_norm("n, g * K + k, s", "N, C, S", "softmax[k, s](v[n, g, k, s])"),  # a total that needs another
        rows("y[m] = sum[n | n < 3 * m](x[m, n])", 16, 1 << 20),
        rows("s[m, n] = scan_sum[n](x[m, n])\ny[m] = sum[n](s[m, n])", 16, 1 << 20),
        rows("y[m] = argmax[n](x[m, n])", 16, 1 << 20, "y: i64[M]").replace("{ kernel", "{ require N >= 1\nkernel", 1),
    ],
    ids=["many", "short", "kept", "unknown", "two levels", "condition", "scan", "place"],
)  # fmt: skip
def test_other_blocks_stay_one_launch(text: str):
    assert names(text) == ["k"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (rows("y[m] = sum[n](x[m, n])", 16, 1 << 20), "part < ((N + 4095) // 4096), m < M"),
        (rows("y[n] = sum[m](x[m, n])", 8192, 4096, "y: f32[N]"), "part < ((M + 63) // 64), n < N"),
        # longer runs where they would be too many
        (rows("y[n] = sum[m](x[m, n])", 1 << 18, 512, "y: f32[N]"), "part < ((M + 127) // 128), n < N"),
    ],
    ids=["rows", "columns", "long columns"],
)
def test_totals_without_a_map_take_two_launches(text: str, parts: str):
    made = split(text)
    assert [k.name for k in made.kernels] == ["k_parts", "k"]
    assert parts in show_boundary(made)


def test_each_index_is_a_part_where_that_fills_a_device():
    text = (
        "op f[N, C, S](x: f32[N, C, S]) -> v: f32[C] { kernel k { v[c] = var[n, s](x[n, c, s]) } }\n"
        "workload w for f { N = 32, C = 256, S = 3136 }\n"
    )
    made = show_boundary(split(text))
    assert "v.sum.2.parts[c < C, n < N] = sum[s < S]" in made
    # what is summed about means is so about those of its part
    assert "v.sum.1.parts[c, n] * reciprocal(implicit f32(int(S)))" in made


def test_equal_totals_are_one():
    text = rows("y[m] = mean[n](x[m, n])\nv[m] = var[n](x[m, n])", 16, 1 << 20, "y: f32[M], v: f32[M]")
    assert show_boundary(split(text)).count("sum.1.parts[part < ") == 1


def test_a_result_that_its_block_uses_unrounded_keeps_one_launch():
    body = "y[m] = mean[n](x[m, n])\nz[m, n] = x[m, n] - y[m]"
    wide = rows(body, 16, 1 << 20, "y: f32[M], z: f32[M, N]")
    assert names(wide) == ["k_parts", "k_totals", "k"]
    assert names(wide.replace("y: f32[M]", "y: bf16[M]")) == ["k"]


def test_what_is_stored_along_the_totals_is_stored_once():
    body = "h[m, n] = exp(x[m, n])\ny[m] = sum[n](h[m, n])"
    first, second = split(rows(body, 16, 1 << 20, "h: f32[M, N], y: f32[M]")).kernels
    assert [d.output.tensor for d in first.body if d.output] == ["h"]
    assert [d.output.tensor for d in second.body if d.output] == ["y"]
    body = "h[m, n] = exp(x[m, n])\ny[m, n] = h[m, n] / (1 + sum[n](h[m, n]))"
    made = split(rows(body, 16, 1 << 20, "h: f32[M, N], y: f32[M, N]")).kernels
    assert [[d.output.tensor for d in k.body if d.output] for k in made] == [[], [], ["h", "y"]]


def test_totals_over_everything_are_split_as_before():
    text = "op f[N](x: f32[N]) -> y: f32[] { kernel k { y = sum[n](x[n]) } }\nworkload w for f { N = 16777216 }\n"
    module = load_text(text)
    op = with_parts(module.ops[0], typical_of(module.workloads_of("f")))
    assert [k.name for k in op.boundaries[0].kernels] == ["k_parts", "k"]


def test_statistics_about_a_mean_that_is_a_result_come_in_order():
    """The variance joins its parts about ``mu``, which the second launch must have by then."""
    text = (
        "op f[N, C, S](x: bf16[N, C, S]) -> y: bf16[N, C, S], mu: f32[C], v: f32[C] {\n"
        "  require N * S >= 1\n"
        "  kernel a { mu[c] = mean[n, s](x[n, c, s])\n  v[c] = mean[n, s](square(x[n, c, s] - mu[c])) }\n"
        "  kernel b { y[n, c, s] = x[n, c, s] - mu[c] * v[c] }\n}\n"
        "workload w for f { N = 32, C = 64, S = 3136 }\n"
    )
    made = split(text)
    assert [k.name for k in made.kernels] == ["a_parts", "a", "b"]
    order = [d.origin for d in made.kernels[1].body if d.kind == "value" or d.name.endswith("sum.1")]
    assert order.index("mu") < order.index("v")
