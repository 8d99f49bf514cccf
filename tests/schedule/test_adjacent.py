"""Which axes of a kernel may be walked as one."""

from __future__ import annotations

import pytest

from opspec.schedule.adjacent import adjacent_axes

OP = "op f[{dims}]({inputs}) -> {outputs} {{ kernel k {{ {body} }} }}\n"
ONE = {
    "a map of rank 4": ("B, C, H, W", "x: f32[B, C, H, W]", "y: f32[B, C, H, W]", "y[b, c, h, w] = exp(x[b, c, h, w])", ["B C H W"]),
    "a bias a channel": ("B, C, H, W", "x: f32[B, C, H, W], v: f32[C]", "y: f32[B, C, H, W]", "y[b, c, h, w] = x[b, c, h, w] + v[c]", ["H W"]),
    "a weight a column": ("B, T, N", "x: f32[B, T, N], w: f32[N]", "y: f32[B, T, N]", "y[b, t, n] = x[b, t, n] * w[n]", ["B T"]),
    "two groups": ("A, B, C, D", "x: f32[A, B, C, D], w: f32[C, D]", "y: f32[A, B, C, D]", "y[a, b, c, d] = x[a, b, c, d] * w[c, d]", ["C D"]),
    "a gathered row": ("M, S, H, D", "x: f32[M, H, D], at: i32[M]", "y: f32[M, H, D]", "y[m, h, d] = x[at[m], h, d]", ["H D"]),
    "a sum over two axes": ("N, C, S", "x: f32[N, C, S]", "y: f32[N]", "y[n] = sum[c, s](x[n, c, s])", ["C S"]),
    "a norm over two axes": ("N, C, S", "x: f32[N, C, S], w: f32[C, S]", "y: f32[N, C, S]", "y[n, c, s] = layernorm[c, s](x[n, c, s], 0) * w[c, s]", ["C S"]),
    "a norm of rows": ("B, T, N", "x: f32[B, T, N]", "y: f32[B, T, N]", "y[b, t, n] = softmax[n](x[b, t, n])", ["B T"]),
    "several results": ("M, N", "x: f32[M, N]", "y: f32[M, N], z: bf16[M, N]", "y[m, n] = 2 * x[m, n]; z[m, n] = x[m, n]", ["M N"]),
}  # fmt: skip
APART = {
    "a transpose": ("M, N", "x: f32[M, N], z: f32[N, M]", "y: f32[M, N]", "y[m, n] = x[m, n] + z[n, m]"),
    "a bias a column": ("M, N", "x: f32[M, N], v: f32[N]", "y: f32[M, N]", "y[m, n] = x[m, n] + v[n]"),
    "a sum over one of them": ("M, N", "x: f32[M, N]", "y: f32[M]", "y[m] = sum[n](x[m, n])"),
    "a triangle": ("M, N", "x: f32[M, N]", "y: f32[M, N]", "y[m, n] = where(n <= m, x[m, n], 0)"),
    "an index as a value": ("M, N", "x: f32[M, N]", "y: f32[M, N]", "y[m, n] = x[m, n] * n"),
    "an extent as a value": ("M, N", "x: f32[M, N]", "y: f32[M, N]", "y[m, n] = x[m, n] / N"),
    "a shifted read": ("M, N", "x: f32[M, N]", "y: f32[M, N]", "y[m, n] = x[m, n - 1] else 0"),
    "a scan": ("M, N", "x: f32[M, N]", "y: f32[M, N]", "y[m, n] = scan_sum[n](x[m, n])"),
    "a place": ("M, N, K", "x: f32[K, M, N]", "y: i64[K, M]", "y[k, m] = argmax[n](x[k, m, n] * 1)"),
    "one of them twice": ("M", "x: f32[M, M]", "y: f32[M, M]", "y[m, n] = 2 * x[m, n]"),
    "a length": ("M, N", "x: f32[M, N], len: i32[M]", "y: f32[M, N]", "y[m, n] = where(n < len[m], x[m, n], 0)"),
    "a product": ("M, N, K", "x: bf16[M, K], w: bf16[K, N]", "y: f32[M, N]", "y[m, n] = sum[k](x[m, k] * w[k, n])"),
}  # fmt: skip


def groups(plan, dims: str, inputs: str, outputs: str, body: str) -> list[str]:
    return [
        " ".join(g.dims)
        for g in adjacent_axes(plan(OP.format(dims=dims, inputs=inputs, outputs=outputs, body=body)))
    ]


@pytest.mark.parametrize("name", ONE)
def test_axes_that_all_have_side_by_side(plan, name: str):
    *parts, wanted = ONE[name]
    assert groups(plan, *parts) == wanted


@pytest.mark.parametrize("name", APART)
def test_axes_that_mean_something_apart(plan, name: str):
    found = groups(plan, *APART[name])
    assert found == (["K M"] if name == "a place" else [])


def test_a_group_knows_where_it_stands(plan):
    text = OP.format(
        dims="N, C, S",
        inputs="x: f32[N, C, S], w: f32[C, S]",
        outputs="y: f32[N, C, S]",
        body="y[n, c, s] = layernorm[c, s](x[n, c, s], 0) * w[c, s]",
    )
    (group,) = adjacent_axes(plan(text))
    assert group.axes == ("c", "s")
    assert set(group.places) == {("x", 1), ("w", 0), ("y", 1)}
    assert group.reduced


def test_axes_that_fill_no_tile_stay(plan):
    text = OP.format(
        dims="B, H, T, D",
        inputs="x: f32[B, H, T, D], v: f32[T, D]",
        outputs="y: f32[B, H, T, D]",
        body="y[b, h, t, d] = x[b, h, t, d] * v[t, d]",
    )
    assert [g.axes for g in adjacent_axes(plan(text))] == [("t", "d")]


def test_part_of_a_tensor_is_no_group(plan):
    text = (
        "op f[M, N](x: f32[M, 2 * N]) -> y: f32[M, N] { kernel k { y[m, n] = x[m, n] for m < M, n < N } }\n"
    )
    assert adjacent_axes(plan(text)) == ()
