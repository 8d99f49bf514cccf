"""What only a GPU shows of launchers; run by the process that does not interpret."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from exact_cases import built, same
from launcher_cases import BETWEEN, SCALE, SPLIT, STEP

from opspec.runtime import warp_specialised
from opspec.runtime.calls import Call
from opspec.runtime.copying import all_aligned_rows

CASES: dict[str, Any] = {}
DOUBLE = "op double[M, N](x: bf16[M, N]) -> y: bf16[M, N] { kernel k { y[m, n] = 2 * x[m, n] } }\n"
VECTOR = "op twice[N](x: f32[N]) -> y: f32[N] { kernel k { y[n] = 2 * x[n] } }\n"


def case(function: Any) -> Any:
    CASES[function.__name__] = function
    return function


@case
def a_call_is_repeated() -> None:
    m = built(SCALE + SPLIT + BETWEEN + STEP)
    w = torch.randn(300, device="cuda")
    for k in range(5):
        x, z = torch.randn(2, 70, 300, device="cuda").unbind()
        same(m.scaled(x, w, a=k).cpu(), (x * w * k).cpu(), 1e-5)
        same(m.split(x, z)[1].cpu(), ((x - z) ** 2).sum(1).cpu(), 1e-4)
        same(m.between(x).cpu(), ((x + 1) * (x + 1).sum(1, keepdim=True)).cpu(), 1e-3)
    p, v, g = torch.ones(900, device="cuda"), torch.zeros(900, device="cuda"), torch.ones(900, device="cuda")
    for rate in (0.5, 0.25):
        m.step(g, rate, p=p, m=v)
    same(p.cpu(), torch.full((900,), 0.125))
    for op in (m._scaled__operator, m._split__operator, m._between__operator, m._step__operator):
        (replay,) = op.kinds.values()
        assert replay.compact is not None


@case
def products_are_repeated_with_descriptors() -> None:
    body = "-> c: f32[M, N] { kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) } }\n"
    m = built(
        f"op wide[M, N, K](a: bf16[M, K], b: bf16[K, N]) {body}"
        f"op narrow[M, N, K](a: bf16[M, K], b: i8[K, N]) {body}"
    )
    for _ in range(4):
        for k, n in ((640, 768), (515, 513)):  # rows that are moved as they are, and rows that are copied
            a = torch.randn(600, k, device="cuda").bfloat16()
            b = torch.randn(k, n, device="cuda").bfloat16()
            w = torch.randint(-128, 128, (k, n), device="cuda", dtype=torch.int8)
            same(m.wide(a, b).cpu(), (a.float() @ b.float()).cpu(), 1e-3)
            same(m.narrow(a, w).cpu(), (a.float() @ w.float()).cpu(), 1e-3)
    for op in (m._wide__operator, m._narrow__operator):
        assert all(replay.compact is not None for replay in op.kinds.values())


@case
def rows_of_several_tensors_are_copied_together() -> None:
    tensors = [torch.randn(s, device="cuda").bfloat16() for s in ((70_000, 9), (3, 4099), (5, 7, 33), (2, 1))]
    tensors[2] = tensors[2].permute(1, 0, 2)
    tensors.append(torch.randint(-9, 9, (65, 67), device="cuda", dtype=torch.int8)[:, 1:])
    for x, y in zip(tensors, all_aligned_rows(Call(tensors[0].device, list(tensors)), *tensors), strict=True):
        assert torch.equal(y[..., : x.shape[-1]], x)
        assert not y[..., x.shape[-1] :].any()


@case
def a_call_is_captured_in_a_graph() -> None:
    m = built(SCALE + BETWEEN)
    x, w = torch.randn(64, 256, device="cuda"), torch.randn(256, device="cuda")
    m.between(m.scaled(x, w))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = m.between(m.scaled(x, w))
    for _ in range(3):
        x.copy_(torch.randn(64, 256))
        graph.replay()
        t = x * w * 2 + 1
        same(y.cpu(), (t * t.sum(1, keepdim=True)).cpu(), 1e-2)


@case
def compiled_by_inductor() -> None:
    m = built(SCALE)
    x, w = torch.randn(64, 256, device="cuda"), torch.randn(256, device="cuda")
    for mode in ("default", "reduce-overhead"):
        torch.compiler.reset()
        whole = torch.compile(lambda x, w: m.scaled(x + 1, w).sin(), fullgraph=True, mode=mode)
        for _ in range(4):
            same(whole(x, w).cpu(), ((x + 1) * w * 2).sin().cpu(), 1e-4)


@case
def tensors_beyond_31_bits() -> None:
    m = built(DOUBLE)
    x = torch.ones(1 << 17, (1 << 14) + 8, dtype=torch.bfloat16, device="cuda")
    assert x.numel() > 2**31
    x[-1, -3:] = torch.tensor([5, 6, 7], device="cuda")
    y = m.double(x)
    assert y[-1, -3:].tolist() == [10, 12, 14]
    assert y.amin() == 2
    wide = torch.ones(3, 1 << 30, dtype=torch.bfloat16, device="cuda")[:, :40]
    wide[2] = 4
    assert m.double(wide)[2].tolist() == [8] * 40


@case
def products_beyond_31_bits() -> None:
    # the result alone is so large; with warps that have roles, and without
    text = "op f[M, N, K](a: bf16[M, K], b: bf16[N, K]) -> c: bf16[M, N] { kernel k { c[m, n] = sum[k](a[m, k] * b[n, k]) } }\n"
    a, b = (torch.randn(n, 64, device="cuda", dtype=torch.bfloat16) for n in (1 << 16, 1 << 15 | 8))
    right = a[-300:].double() @ b.double().T
    for always in (True, False):
        with mock.patch.object(warp_specialised, "ALWAYS", always):
            c = built(text).f(a, b)
        assert c.numel() > 2**31
        assert (c[-300:].double() - right).norm() < 4e-3 * right.norm()


@case
def roles_are_repeated_with_descriptors() -> None:
    text = (
        "op f[M, N, K](a: X[M, K], b: X[K, N], r: X[M, N]) -> c: X[M, N], s: f32[M, N] {\n"
        "  dtype X in {bf16, f16}\n  kernel k { s[m, n] = sum[k](a[m, k] * b[k, n])\n"
        "    c[m, n] = silu(s[m, n]) + r[m, n] }\n}\n"
    )
    m = built(text)
    for dtype in (torch.bfloat16, torch.float16):
        for _ in range(3):
            for rows in (1500, 2000):
                a, b, r = (
                    torch.randn(shape, device="cuda", dtype=dtype)
                    for shape in ((rows, 1096), (1096, 3080), (rows, 3080))
                )
                c, s = m.f(a, b, r)
                right = a.double() @ b.double()
                assert (s - right).norm() < 1e-5 * right.norm()
                after = torch.nn.functional.silu(right) + r.double()
                assert (c - after).norm() < 4e-3 * after.norm()
    (started,) = {
        type(launch.kernel).__name__
        for op in (m._f__operator,)
        for x in op.kinds.values()
        for launch in x.launches
    }
    assert "Gluon" in started


@case
def long_axes() -> None:
    m = built(DOUBLE)
    for shape in ((200_000, 3), (3, 200_000), (70_000, 70)):
        x = torch.randn(*shape, device="cuda").bfloat16()
        same(m.double(x).cpu(), (2 * x).cpu())


@case
def any_device() -> None:
    last = torch.cuda.device_count() - 1
    m = built(SCALE)
    before = torch.cuda.current_device()
    for index in (last, 0, last):
        device = torch.device("cuda", index)
        x, w = torch.randn(40, 64, device=device), torch.randn(64, device=device)
        for _ in range(2):
            same(m.scaled(x, w).cpu(), (x * w * 2).cpu(), 1e-5)
        assert torch.cuda.current_device() == before


@case
def few_binaries() -> None:
    m = built(VECTOR)
    for n in (1, 3, 8, 16, 32, 48):
        x = torch.randn(n, device="cuda")
        same(m.twice(x).cpu(), (2 * x).cpu())
    kernels = [v for k, v in vars(m).items() if k.startswith("_twice_k")]
    counted = sum(len(cache[0]) for k in kernels for cache in k.device_caches.values())
    assert 1 <= counted <= 3, counted


@case
def a_transformer_block() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    import transformer_block as example

    sizes = example.Sizes(length=128, heads=4, head=64, hidden=704, vocabulary=1000)
    found = example.losses(sizes, torch.bfloat16, "cuda", "inductor")
    assert max(found.values()) - min(found.values()) < 2e-2, found
