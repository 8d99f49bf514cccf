"""Means and variances of rows that stream, against float64; run by the interpreting process.

Each case compares what was generated for a spec with the two-pass result of its float32 inputs in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from exact_cases import both, built, same

from opspec.emit.configure import SMALL

CASES: dict[str, Callable[[], None]] = {}
VAR = """op f[M, N](x: f32[M, N]) -> mu: f32[M], v: f32[M] {
  kernel k { mu[m] = mean[n](x[m, n]); v[m] = var[n](x[m, n]) }
}
"""


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def near(found: torch.Tensor, wanted: torch.Tensor, within: float) -> None:
    error = ((found.double() - wanted) / wanted).abs().max().item()
    assert error <= within, f"off by {error:.2e} of the value"


def streamed(text: str) -> Any:
    """A module whose rows stream: with tiny blocks any row does."""
    return built(text, SMALL)


def normal(*shape: int, mean: float = 0.0, deviation: float = 1.0, seed: int = 0) -> torch.Tensor:
    return mean + deviation * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@case
def a_large_mean_beside_a_small_variance() -> None:
    x = normal(1, 20_001, mean=1e4)
    wanted = x.double().var(1, unbiased=False)
    # rows of odd length are joined point by point, which keeps half a digit less than steps do
    for module, within in zip(both(VAR), (5e-5, 4e-4), strict=True):
        mu, v = module.f(x)
        near(mu, x.double().mean(1), 1e-6)
        near(v, wanted, within)
    # a difference of squares has lost every digit here
    assert ((x * x).mean(1) - x.mean(1) ** 2 - wanted).abs().min() > 0.05


@case
def a_large_mean_in_a_short_row() -> None:
    x = normal(4, 300, mean=-1e4, seed=1)
    near(streamed(VAR).f(x)[1], x.double().var(1, unbiased=False), 1e-3)


@case
def a_row_that_drifts() -> None:
    x = normal(2, 20_000, deviation=1e-2, seed=2) + torch.linspace(-1e3, 1e3, 20_000)
    near(built(VAR).f(x)[1], x.double().var(1, unbiased=False), 1e-6)


@case
def an_outlier_first() -> None:
    x = normal(2, 1000, seed=3)
    x[:, 0] = 1e6
    near(streamed(VAR).f(x)[1], x.double().var(1, unbiased=False), 1e-5)


@case
def constant_rows() -> None:
    x = torch.tensor([[3.0], [1e20], [-7.25]]).expand(3, 77).contiguous()
    mu, v = streamed(VAR).f(x)
    near(mu, x[:, 0].double(), 1e-6)
    # what is left is the rounding of the mean, squared
    assert bool((v[[0, 2]] < 1e-9).all())
    assert bool((v[1] < (1e20 * 1e-6) ** 2).all())


@case
def rows_of_any_length() -> None:
    text = """op f[M, N](x: f32[M, N], len: i32[M]) -> n: f32[M], v: f32[M], s: f32[M] {
  assume len[m] <= N
  kernel k {
    t[m, n] = x[m, n]  for n < len[m]
    n[m] = sum[n](t[m, n])
    v[m] = var[n](t[m, n])
    s[m] = sum[n]((t[m, n] - mean[n](t[m, n])) ** 2)
  }
}
"""
    lengths = torch.tensor([0, 1, 2, 7, 8, 33, 100, 0, 99], dtype=torch.int32)
    x = normal(9, 100, mean=1e3, seed=4)
    _, v, s = streamed(text).f(x, lengths)
    for row, k in enumerate(lengths.tolist()):
        if k == 0:
            assert v[row].isnan()
            assert s[row] == 0
        else:
            wanted = x[row, :k].double().var(unbiased=False)
            assert abs(v[row].double() - wanted) <= 1e-4 * max(1e-2, float(wanted)), row
            assert abs(s[row].double() - k * wanted) <= 1e-4 * max(1.0, k * float(wanted)), row


@case
def points_that_a_mask_picks() -> None:
    text = """op f[M, N](x: f32[M, N], keep: bool[M, N]) -> s: f32[M] {
  kernel k {
    t[m, n] = x[m, n]  for keep[m, n]
    s[m] = sum[n](square(t[m, n] - mean[n](t[m, n])))
  }
}
"""
    x = normal(4, 90, mean=100.0, seed=5)
    keep = torch.rand(4, 90, generator=torch.Generator().manual_seed(6)) < 0.3
    keep[2] = False
    keep[3] = torch.arange(90) >= 80
    x[~keep] = float("nan")
    found = streamed(text).f(x, keep)
    assert found[2] == 0
    for row in (0, 1, 3):
        some = x[row][keep[row]].double()
        near(found[row], some.var(unbiased=False) * len(some), 1e-5)


@case
def no_columns() -> None:
    mu, v = streamed(VAR).f(torch.empty(3, 0))
    assert bool(mu.isnan().all())
    assert bool(v.isnan().all())
    sums = "op f[M, N](x: f32[M, N]) -> s: f32[M] { kernel k { s[m] = sum[n](square(x[m, n] - mean[n](x[m, n]))) } }\n"
    same(streamed(sums).f(torch.empty(3, 0)), torch.zeros(3))


@case
def infinity_and_nan() -> None:
    x = normal(3, 70, seed=7)
    x[0, 40], x[1, 40], x[2, 3] = float("inf"), float("nan"), float("-inf")
    mu, v = streamed(VAR).f(x)
    same(mu, x.double().mean(1))
    assert bool(v.isnan().all())


@case
def two_values_that_vary_together() -> None:
    text = """op f[M, N](x: f32[M, N], y: f32[N]) -> c: f32[M] {
  kernel k { c[m] = mean[n]((x[m, n] - mean[n](x[m, n])) * (y[n] - mean[n](y[n]))) }
}
"""
    y = normal(500, mean=-3e3, seed=8)
    x = normal(3, 500, mean=1e4, seed=9) + torch.tensor([[2.0], [-1.0], [0.5]]) * y
    a, b = x.double(), y.double()
    wanted = ((a - a.mean(1, keepdim=True)) * (b - b.mean())).mean(1)
    near(streamed(text).f(x, y), wanted, 2e-3)


@case
def groups_of_two_axes() -> None:
    text = """op f[N, C, S](x: f32[N, C, S]) -> y: f32[N, C, S], v: f32[N] {
  kernel k {
    v[n] = var[c, s](x[n, c, s])
    y[n, c, s] = layernorm[c, s](x[n, c, s], 0)
  }
}
"""
    x = normal(2, 5, 37, mean=1e3, seed=10)
    y, v = streamed(text).f(x)
    a = x.double()
    near(v, a.var((1, 2), unbiased=False), 1e-4)
    wanted = (a - a.mean((1, 2), keepdim=True)) / a.std((1, 2), unbiased=False, keepdim=True)
    assert float((y.double() - wanted).abs().max()) < 1e-3


@case
def scores_in_parts() -> None:
    text = """op f[M, N, D](q: f32[M, D], k: f32[N, D], len: i32[M]) -> v: f32[M], s: f32[M] {
  assume len[m] <= N
  kernel k {
    t[i, j] = sum[d](q[i, d] * k[j, d])
    u[i, j] = t[i, j]  for j < len[i]
    v[i] = var[j](t[i, j])
    s[i] = sum[j]((u[i, j] - mean[j](u[i, j])) ** 2)
  }
}
"""
    module = streamed(text)
    assert any(name.endswith("_part") for name in vars(module))
    q, k = normal(5, 8, mean=10.0, seed=11), normal(200, 8, mean=10.0, deviation=0.1, seed=12)
    lengths = torch.tensor([0, 1, 40, 200, 150], dtype=torch.int32)
    t = q.double() @ k.double().T
    v, s = module.f(q, k, lengths)
    near(v, t.var(1, unbiased=False), 1e-3)
    assert s[0] == 0
    for row, n in enumerate(lengths.tolist()):
        if n > 1:
            near(s[row], t[row, :n].var(unbiased=False) * n, 1e-3)


@case
def columns() -> None:
    text = """op f[M, N](x: f32[M, N]) -> mu: f32[N], v: f32[N] {
  kernel k { mu[n] = mean[m](x[m, n]); v[n] = var[m](x[m, n]) }
}
op g[B, C, S](x: f32[B, C, S], z: f32[B, S]) -> c: f32[C] {
  kernel k { c[c] = sum[b, s]((x[b, c, s] - mean[b, s](x[b, c, s])) * (z[b, s] - mean[b, s](z[b, s]))) }
}
"""
    for module in both(text):
        for shape in ((1, 3), (2, 5), (257, 20), (3000, 2)):
            x = normal(*shape, mean=1e3, seed=16)
            mu, v = module.f(x)
            near(mu, x.double().mean(0), 1e-6)
            assert float((v.double() - x.double().var(0, unbiased=False)).abs().max()) < 1e-4
        x, z = normal(9, 3, 14, mean=100.0, seed=17), normal(9, 14, mean=-100.0, seed=18)
        x += z[:, None]
        a, b = x.double(), z.double()
        wanted = ((a - a.mean((0, 2), keepdim=True)) * (b - b.mean())[:, None]).sum((0, 2))
        near(module.g(x, z), wanted, 1e-4)
        x = torch.full((40, 4), 1e20)
        assert float(module.f(x)[1].max()) < (1e20 * 1e-6) ** 2
        assert bool(module.f(torch.empty(0, 4))[1].isnan().all())


@case
def a_variance_of_everything() -> None:
    text = """op f[M, N](x: f32[M, N]) -> m: f32[], v: f32[] {
  kernel k { m = mean[i, n](x[i, n]); v = var[i, n](x[i, n]) }
}
op g[N](x: f32[N], z: f32[N]) -> c: f32[] {
  kernel k { c = sum[i]((x[i] - mean[i](x[i])) * (z[i] - mean[i](z[i]))) }
}
workload w for f { M = 4096, N = 4096 }
workload long for g { N = 16777216 }
"""
    for module in both(text):
        assert any("parts" in name for name in vars(module))
        for shape in ((1, 1), (3, 700), (600, 5)):
            x = normal(*shape, mean=1e3, seed=13)
            mean, v = module.f(x)
            assert abs(mean.double() - x.double().mean()) <= 1e-6 * 1e3
            assert abs(v.double() - x.double().var(unbiased=False)) <= 1e-4
        x, z = normal(5000, mean=100.0, seed=14), normal(5000, mean=-1e3, seed=15)
        z += 3 * x
        a, b = x.double(), z.double()
        near(module.g(x, z), ((a - a.mean()) * (b - b.mean())).sum(), 1e-5)
        same(module.g(x[:0], z[:0]), 0.0)
        assert bool(module.f(torch.empty(0, 3))[1].isnan())
