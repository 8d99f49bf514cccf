"""Kernels whose launchers join neighbouring axes, on views with and without gaps; run by the interpreting process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from exact_cases import built, same

from opspec.emit.configure import SMALL
from opspec.runtime import adjacent

CASES: dict[str, Callable[[], None]] = {}
MAP = "op f[B, C, H, W](x: f32[B, C, H, W], z: f32[B, C, H, W]) -> y: f32[B, C, H, W] { kernel k { y[b, c, h, w] = 2 * x[b, c, h, w] + z[b, c, h, w] } }\n"
BIAS = "op f[B, C, H, W](x: f32[B, C, H, W], v: f32[C]) -> y: f32[B, C, H, W] { kernel k { y[b, c, h, w] = x[b, c, h, w] * v[c] } }\n"
NORM = """op f[N, C, S](x: f32[N, C, S], w: f32[C, S]) -> y: f32[N, C, S], s: f32[N] {
  kernel k {
    y[n, c, s] = layernorm[c, s](x[n, c, s], 1e-5) * w[c, s]
    s[n] = sum[c, s](x[n, c, s])
  }
}
"""
CHAIN = """op f[M, N](x: f32[M, N], v: f32[N]) -> y: f32[M, N], t: f32[M, N] {
  kernel first { h[m, n] = 2 * x[m, n] }
  kernel second { y[m, n] = h[m, n] + v[n] }
  kernel third { t[m, n] = h[m, n] - y[m, n] }
}
"""


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def watched(call: Callable[[], Any]) -> tuple[Any, list[tuple[int, ...]]]:
    """What a call gives, and the extents with which its kernels were started."""
    merge, seen = adjacent.merge, []

    def watch(*args: Any, **more: Any) -> tuple[int, ...]:
        seen.append(merge(*args, **more))
        return seen[-1]

    adjacent.merge = watch
    try:
        return call(), seen
    finally:
        adjacent.merge = merge


def views(*shape: int) -> Iterator[tuple[torch.Tensor, bool]]:
    """Tensors of a shape, and whether they have no gaps."""
    whole = torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape)
    yield whole, True
    wide = torch.full((*shape[:-1], shape[-1] + 3), float("nan"))
    wide[..., : shape[-1]] = whole
    yield wide[..., : shape[-1]], False
    yield whole.mT.contiguous().mT, False
    yield whole.repeat_interleave(2, -1)[..., ::2], True
    yield whole[:, :1].expand(shape), False


@case
def a_map_of_any_view() -> None:
    shape = (2, 3, 5, 7)
    for module in (built(MAP), built(MAP, SMALL)):
        z = torch.randn(shape)
        for x, whole in views(*shape):
            found, seen = watched(lambda x=x, z=z, m=module: m.f(x, z))
            same(found, 2 * x + z, 1e-6)
            assert (seen[0] == (1, 1, 1, 210)) == whole, (x.stride(), seen)


@case
def a_result_with_gaps() -> None:
    x, z = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 7)
    place = torch.full((2, 3, 5, 9), -1.0)
    out = place[..., 1:8]
    found, seen = watched(lambda: built(MAP).f(x, z, out=out))
    same(found, 2 * x + z, 1e-6)
    assert seen[0] == (1, 1, 30, 7) or seen[0] == (1, 30, 1, 7), seen
    assert bool((place[..., [0, 8]] == -1).all())


@case
def a_value_a_channel() -> None:
    v = torch.randn(3)
    for x, whole in views(2, 3, 5, 7):
        found, seen = watched(lambda x=x: built(BIAS, SMALL).f(x, v))
        same(found, x * v[:, None, None], 1e-6)
        assert (seen[0] == (1, 35)) == (whole or x.stride()[2:] == (7, 1)), (x.stride(), seen)


@case
def nothing_along_an_axis() -> None:
    module = built(MAP)
    for shape in ((0, 3, 5, 7), (2, 0, 5, 7), (2, 3, 5, 0), (0, 0, 0, 0)):
        assert module.f(torch.empty(shape), torch.empty(shape)).shape == shape
    y, s = built(NORM, SMALL).f(torch.empty(2, 0, 5), torch.empty(0, 5))
    assert y.shape == (2, 0, 5)
    same(s, torch.zeros(2))


@case
def axes_of_one_index() -> None:
    for shape in ((1, 1, 1, 9), (9, 1, 1, 1), (1, 9, 1, 1), (3, 1, 5, 1)):
        x = torch.randn(shape)
        same(built(MAP).f(x, x), 3 * x, 1e-6)


@case
def a_norm_over_two_axes() -> None:
    w = torch.randn(5, 7)
    for module in (built(NORM), built(NORM, SMALL)):
        for x, whole in views(4, 5, 7):
            for weight, even in ((w, True), (w.mT.contiguous().mT, False)):
                (y, s), seen = watched(lambda x=x, v=weight, m=module: m.f(x, v))
                same(y, torch.layer_norm(x, (5, 7), w), 1e-4)
                same(s, x.sum((1, 2)), 1e-3)
                assert (seen[0] == (1, 35)) == (whole and even), (x.stride(), seen)


@case
def kernels_one_after_another() -> None:
    x, v = torch.randn(5, 9), torch.randn(9)
    (y, t), seen = watched(lambda: built(CHAIN).f(x, v))
    same(y, 2 * x + v, 1e-6)
    same(t, 2 * x - (2 * x + v), 1e-6)
    assert seen == [(1, 45), (1, 45)]
