"""Inputs on which others' kernels have failed, with the right values; run by the interpreting process.

Each function builds a spec, calls what was generated for it and compares. It raises where a value is wrong.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from opspec.driver.targets import limits
from opspec.driver.verify import load_module
from opspec.emit.configure import SMALL, Sizes
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.runtime.calls import Call
from opspec.runtime.launch import LaunchError

CASES: dict[str, Callable[[], None]] = {}
INF = math.inf


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def built(text: str, sizes: Sizes | None = None, *, debug: bool = False) -> Any:
    """The generated module of a spec."""
    with tempfile.TemporaryDirectory(prefix="opspec-test-") as folder:
        spec = Path(folder) / "spec.op"
        spec.write_text(text, encoding="utf-8")
        path = Path(folder) / "kernel.py"
        path.write_text(
            build_package(load(spec), "spec.op", limits(), sizes or Sizes(), debug=debug).files["kernel.py"],
            encoding="utf-8",
        )
        return load_module(path)


def both(text: str) -> tuple[Any, Any]:
    return built(text), built(text, SMALL)


def same(found: torch.Tensor, wanted: Any, within: float = 0.0) -> None:
    right = torch.as_tensor(wanted, dtype=torch.float64)
    value = found.to(torch.float64)
    assert value.shape == right.shape, (value.shape, right.shape)
    assert torch.allclose(value, right, rtol=within, atol=within, equal_nan=True), f"{value} != {right}"


def fails(call: Callable[[], Any], *words: str) -> None:
    try:
        call()
    except LaunchError as error:
        for word in words:
            assert word in str(error), f"`{word}` is not in: {error}"
        return
    raise AssertionError("no LaunchError")


@case
def n01_masked_rows() -> None:
    for m in both(
        "op a[M, N](s: f32[M, N], keep: bool[M, N], v: f32[N]) -> o: f32[M], lse: f32[M] { kernel k {\n"
        "t[m, n] = s[m, n] for keep[m, n]\no[m] = sum[n](softmax[n](t[m, n]) * v[n])\n"
        "lse[m] = logsumexp[n](t[m, n]) } }\n"
    ):
        s = torch.tensor([[0, math.log(2), math.log(4)], [0, 0, 0]])
        keep = torch.tensor([[True] * 3, [False] * 3])
        o, lse = m.a(s, keep, torch.tensor([1.0, 2.0, 4.0]))
        same(o, [3.0, 0.0], 1e-6)
        same(lse, [math.log(7), -INF], 1e-6)


@case
def n02_merge_of_empty_states() -> None:
    for m in both(
        "op merge[S, N](o: f16[S, N], l: f32[S, N]) -> y: f16[N], lse: f32[N] { kernel k {\n"
        "lse[n] = logsumexp[s](l[s, n])\ny[n] = sum[s](softmax[s](l[s, n]) * o[s, n]) } }\n"
    ):
        order = [(2.0, math.log(3)), (0.0, -INF), (6.0, 0.0)]
        for turn in range(3):
            part = order[turn:] + order[:turn]
            o = torch.tensor([[p[0]] for p in part], dtype=torch.float16)
            y, lse = m.merge(o, torch.tensor([[p[1]] for p in part]))
            same(y, [3.0], 1e-3)
            same(lse, [math.log(4)], 1e-6)


@case
def n06_squares_in_f32() -> None:
    m = built(
        "op r[K](x: f16[K]) -> y: f16[K] { kernel k { y[k] = x[k] * rsqrt(mean[j](x[j] ** 2) + 1e-6) } }\n"
    )
    same(m.r(torch.full((8,), 300.0, dtype=torch.float16)), [1.0] * 8)


@case
def n08_centred_variance() -> None:
    for m in both((Path(__file__).parent / "corpus" / "layer_norm.op").read_text(encoding="utf-8")):
        y = m.layer(torch.tensor([[10000.0, 10001.0, 10002.0, 10003.0]]))
        same(y, [[-1.341635, -0.447212, 0.447212, 1.341635]], 2e-6)


@case
def n09_f32_is_not_tf32() -> None:
    m = built(
        "op mm[M, N, K](a: f32[M, K], b: f32[K, N]) -> c: f32[M, N] "
        "{ kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) } }\n"
    )
    same(m.mm(torch.full((16, 16), 1 + 2.0**-12), torch.ones(16, 16)), torch.full((16, 16), 16.00390625))


@case
def n10_sums_in_f32() -> None:
    for m in both("op s[K](x: bf16[K]) -> y: bf16[] { kernel k { y = sum[k](x[k]) } }\n"):
        same(m.s(torch.ones(512, dtype=torch.bfloat16)), 512.0)


@case
def n11_fp8_overflow() -> None:
    m = built(
        "op c[N](x: f32[N]) -> a: f8e4m3[N], b: f8e4m3[N], c: f8e5m2[N], d: f8e5m2[N] { kernel k {\n"
        "a[n] = f8e4m3.sat(x[n])\nb[n] = f8e4m3.nonsat(x[n])\nc[n] = f8e5m2.sat(x[n])\nd[n] = f8e5m2.nonsat(x[n]) } }\n"
        "op decode[N](p: f8e4m3[N], q: f8e5m2[N]) -> y: f32[N], z: f32[N] { kernel k { y[n] = p[n]\nz[n] = q[n] } }\n"
    )
    nan = math.nan
    x = torch.tensor([448, 464, 465, -1000, INF, nan, 2.0**-9, 2.0**-10, 1.0625, 1.1875])
    a, b, c, d = m.c(x)
    same(a.float(), [448, 448, 448, -448, 448, nan, 2.0**-9, 0, 1, 1.25])
    same(b.float(), [448, 448, nan, nan, nan, nan, 2.0**-9, 0, 1, 1.25])
    same(c.float()[4:6], [57344, nan])
    same(d.float()[4:6], [INF, nan])
    e, f, g, h = m.c(torch.tensor([61439.0, 61440.0, -61440.0, 1e9]))
    del e, f
    same(g.float(), [57344, 57344, -57344, 57344])
    same(h.float(), [57344, INF, -INF, INF])
    codes = torch.tensor([0x7E, 0x7F, 0xFF, 0x80, 0x01], dtype=torch.uint8).view(torch.float8_e4m3fn)
    wide = torch.tensor([0x7B, 0x7C, 0xFC, 0x7D, 0x00], dtype=torch.uint8).view(torch.float8_e5m2)
    y, z = m.decode(codes, wide)
    same(y, [448, nan, nan, -0.0, 2.0**-9])
    same(z, [57344, INF, -INF, nan, 0.0])


@case
def n12_ties_to_even() -> None:
    m = built(
        "op q[N](x: f32[N]) -> y: i8[N] { kernel k { y[n] = i8.sat(clamp(round(x[n] / 0.5), -128, 127)) } }\n"
        "op p[N](x: f32[N]) -> y: i8[N] { kernel k { y[n] = i8.sat(x[n] / 0.5) } }\n"
    )
    x = torch.tensor([0.25, 0.75, 1.25, -0.25, -0.75, 63.75, -64.25, 0.6])
    for f in (m.q, m.p):
        same(f(x), [0, 2, 2, 0, -2, 127, -128, 1])


@case
def n13_lowest_place() -> None:
    for m in both(
        "op top[M, N](x: f32[M, N]) -> i: i64[M], v: f32[M], j: i64[M], k: i64[M] {\nrequire N >= 1\nkernel k {\n"
        "i[m] = argmax[n](x[m, n])\nv[m] = max[n](x[m, n])\nj[m] = argmin[n](x[m, n])\n"
        "k[m] = argmax[n | n >= 200](x[m, n]) else -1 } }\n"
    ):
        x = torch.zeros(6, 700)
        x[0, [5, 140, 290, 690]] = 2.0
        x[1, [650, 699]] = math.nan
        x[1, 3] = INF
        x[2] = -INF
        x[3, [130, 600]] = -1.0
        x[4] = torch.arange(700.0)
        x[5, :] = math.nan
        i, v, j, k = m.top(x)
        same(i, [5, 650, 0, 0, 699, 0])
        same(v, [2.0, math.nan, -INF, 0.0, 699.0, math.nan])
        same(j, [0, 650, 0, 130, 0, 0])
        same(k, [290, 650, 200, 200, 699, 200])
        _, _, _, short = m.top(x[:, :100])
        same(short, [-1] * 6)


@case
def lowest_place_in_full_tiles() -> None:
    text = (
        "dtype X in {bf16, f32}\nop top[M, N](x: X[M, N]) -> i: i64[M], j: i64[M] {\nrequire N >= 1\n"
        "kernel k { i[m] = argmax[n](x[m, n])\nj[m] = argmin[n](x[m, n]) } }\n"
        "workload w for top { M = 5, N = 4096, X = bf16 }\n"
    )
    m = built(text)
    x = torch.zeros(7, 4096)
    x[0, [1025, 2048, 4095]] = 2.0
    x[1, [3001, 4000]] = math.nan
    x[1, 3] = INF
    x[2] = -INF
    x[3] = -1.0
    x[3, 77::5] = -0.5
    x[4, :9], x[4, 9:] = -0.0, 0.0
    x[5, 5:] = INF
    x[6] = -INF
    x[6, 4095] = -3.0e38
    for dtype in (torch.bfloat16, torch.float32):
        i, j = m.top(x.to(dtype))
        same(i, [1025, 3001, 0, 77, 0, 5, 4095])
        same(j, [0, 3001, 0, 0, 0, 0, 0])
    tiny = torch.full((1, 4096), 2.0**-149)
    tiny[0, 70], tiny[0, 80] = 2.0**-148, 0.0
    same(torch.stack(m.top(tiny)), [[70], [80]])


@case
def n15_running_values() -> None:
    text = (
        "op run[M, N](x: f32[M, N], a: f32[M, N]) -> s: f32[M, N], h: f32[M, N], d: f32[M, N], b: f32[M, N] {\n"
        "kernel k {\ns[m, n] = scan_sum[n](x[m, n])\nh[m, n] = scan_max[-n](x[m, n])\n"
        "d[m, n] = scan_sum[n](x[m, n], a[m, n])\nb[m, n] = (s[m, n - 1] else 0) + (h[m, n + 1] else -7) } }\n"
    )
    for m in both(text):
        x = torch.ones(3, 300)
        x[1] = torch.arange(300.0).flip(0)
        x[2, 250] = math.nan
        a = torch.full((3, 300), 0.5)
        a[:, 100] = 0.0
        s, h, d, b = m.run(x, a)
        same(s, x.double().cumsum(1))
        same(h, x.double().flip(1).cummax(1).values.flip(1))
        state, right = torch.zeros(3, dtype=torch.float64), []
        for n in range(300):
            state = x[:, n].double() + (a[:, n].double() * state if n else 0.0)
            right.append(state)
        same(d, torch.stack(right, 1), 1e-5)
        before = torch.cat((torch.zeros(3, 1), s[:, :-1]), 1).double()
        behind = torch.cat((h[:, 1:], torch.full((3, 1), -7.0)), 1).double()
        same(b, before + behind, 1e-6)
    # factors that overflow together meet a state of 0 as if it were none
    grown = built(text.replace("scan_max[-n]", "scan_max[n]").replace("n + 1", "n - 1"), SMALL)
    x, a = torch.zeros(1, 64), torch.full((1, 64), 1e20)
    x[0, 63] = 3.0
    same(grown.run(x, a)[2], [[0.0] * 63 + [3.0]])


@case
def n14_one_rounding() -> None:
    m = built("op c[N](x: f32[N]) -> a: f8e4m3[N] { kernel k { a[n] = f8e4m3.sat(x[n]) } }\n")
    same(m.c(torch.tensor([1.0625 + 2.0**-12])).float(), [1.125])


@case
def scales_of_blocks_are_one_number_a_tile() -> None:
    text = (Path(__file__).parents[2] / "specs/gemm/matmul_fp8.op").read_text(encoding="utf-8")
    for m in both(text):
        # tiles inside a block of columns, of the same length, and blocks that are shorter than a tile or odd
        for M, N, K, S in (
            (20, 256, 256, 128),
            (20, 256, 384, 64),
            (33, 128, 64, 16),
            (20, 192, 288, 96),
            (1, 4, 8, 4),
        ):
            rows = torch.randint(-4, 5, (M, K)).to(torch.float8_e4m3fn)
            columns = torch.randint(-4, 5, (N, K)).to(torch.float8_e4m3fn)
            by_row, by_block = (2.0 ** torch.randint(-2, 3, s) for s in ((M, K // S), (N // S, K // S)))
            left = rows.double() * by_row.double().repeat_interleave(S, 1)
            right = columns.double() * by_block.double().repeat_interleave(S, 1).repeat_interleave(S, 0)
            found = m.matmul_fp8_block(rows, by_row, columns, by_block, S=S)
            same(found.double(), (left @ right.T).to(torch.bfloat16))


@case
def n16_identities_beyond_the_edge() -> None:
    for m in both((Path(__file__).parent / "corpus" / "monoids.op").read_text(encoding="utf-8")):
        _, p, hi, _ = m.fold(torch.tensor([[-3.0, -1, -2, -5, -4]]))
        same(hi, [-1.0])
        same(p, [-120.0])
        same(m.fold(torch.tensor([[3.0, 1, 2]]))[3], [1.0])


@case
def i03_empty_extents() -> None:
    m = built(
        "op inc[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = x[m, n] + 1 } }\n"
        "op mm[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: f32[M, N] { kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) } }\n"
        "op top[M, N](x: f32[M, N]) -> y: f32[M] { kernel k { y[m] = max[n](x[m, n]) } }\n"
        "op low[M, N](x: f32[M, N]) -> y: f32[M] { kernel k { y[m] = max[n](x[m, n]) else -2 } }\n"
    )
    assert m.inc(torch.zeros(0, 7)).shape == (0, 7)
    zero = m.mm(torch.zeros(5, 0, dtype=torch.bfloat16), torch.zeros(0, 9, dtype=torch.bfloat16))
    same(zero, torch.zeros(5, 9))
    fails(lambda: m.top(torch.zeros(3, 0)), "N >= 1")
    same(m.low(torch.zeros(3, 0)), [-2.0] * 3)


@case
def i04_strides() -> None:
    for m in both(
        "op s[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = softmax[n](x[m, n]) } }\n"
    ):
        x = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]).t()
        right = [[0.015876, 0.117310, 0.866813]] * 2
        same(m.s(x), right, 1e-6)
        out = torch.full((3, 2), -1.0).t()
        assert m.s(x, out=out) is out
        same(out, right, 1e-6)


@case
def i07_head_sizes() -> None:
    text = (Path(__file__).parent / "corpus" / "attention.op").read_text(encoding="utf-8")
    m = built(text)
    torch.manual_seed(0)
    for d in (80, 96, 192):
        q, k, v = (torch.randn(1, 1, 24, d).to(torch.bfloat16) for _ in range(3))
        o, _ = m.attention(q, k, v)
        mask = torch.ones(24, 24, dtype=torch.bool).tril()
        s = (q.double() @ k.double().transpose(-1, -2) / math.sqrt(d)).masked_fill(~mask, -INF)
        same(o, s.softmax(-1) @ v.double(), 0.02)


@case
def i11_alignment_of_causal() -> None:
    text = """op a[L, T](s: f32[L, T], v: f32[T]) -> o: f32[L], p: f32[L] { kernel k {
      u[i, j] = s[i, j] for j < i + 1 + T - L
      w[i, j] = s[i, j] for j <= i
      o[i] = sum[j](softmax[j](u[i, j]) * v[j])
      p[i] = sum[j](softmax[j](w[i, j]) * v[j]) } }
"""
    for m in both(text):
        o, p = m.a(torch.zeros(2, 5), torch.arange(1.0, 6.0))
        same(o, [2.5, 3.0], 1e-6)
        same(p, [1.0, 1.5], 1e-6)


@case
def i13_head_groups() -> None:
    m = built((Path(__file__).parent / "corpus" / "gqa_decode.op").read_text(encoding="utf-8"))
    v = torch.arange(4.0).reshape(1, 4, 1, 1).expand(1, 4, 6, 16).to(torch.bfloat16)
    k = torch.zeros(1, 4, 6, 16, dtype=torch.bfloat16)
    o = m.gqa(torch.zeros(1, 28, 16, dtype=torch.bfloat16), k, v)
    same(o[0, [0, 6, 7, 13, 27], 0], [0, 0, 1, 1, 3])
    fails(lambda: m.gqa(torch.zeros(1, 10, 16, dtype=torch.bfloat16), k, v), "Hq = 10", "Hkv = 4")


@case
def i15_floor_division() -> None:
    m = built((Path(__file__).parent / "corpus" / "floor_mod.op").read_text(encoding="utf-8"))
    y, q = m.floors(torch.arange(10.0, 15.0))
    same(y, [12, 13, 14, 10, 11])
    same(q, [-2, -1, -1, 0, 0])


@case
def i16_many_segments() -> None:
    """More segments than are sought at once, most of them empty and before the first place."""
    kernel = built(
        "op f[N, E, K, F](x: f32[N, K], w: f32[E, K, F], offs: i32[E + 1]) -> y: f32[N, F] {\n"
        "  kernel k { y[n, f] = sum[k](x[n, k] * w[e, k, f])  for n in offs[e]..offs[e + 1] }\n}\n"
    )
    for count, places in ((1, 5), (127, 40), (128, 40), (129, 40), (300, 60), (17000, 20)):
        torch.manual_seed(count)
        inner = torch.randint(0, places + 1, (min(count - 1, 6),)).sort().values
        offs = torch.cat([torch.zeros(count - len(inner)), inner, torch.full((1,), places)]).to(torch.int32)
        x = torch.ones(places, 1)
        w = torch.arange(count, dtype=torch.float32)[:, None, None]
        owner = torch.bucketize(torch.arange(places), offs[1:].long(), right=True)
        same(kernel.f(x, w, offs)[:, 0], owner.to(torch.float64))


@case
def i16_tiles_of_segments() -> None:
    """Tiles that begin where a segment does, some of it empty, the first with places that no segment has; and more
    segments than a program finds at once."""
    kernel = built(
        "op f[N, E, K, F](x: bf16[N, K], w: bf16[E, K, F], offs: i32[E + 1]) -> y: f32[N, F] {\n"
        "  kernel k { y[n, f] = sum[k](x[n, k] * w[e, k, f])  for n in offs[e]..offs[e + 1] }\n}\n"
    )
    assert hasattr(kernel, "segment_tiles")
    for inner, count, places in (([], 1, 5), ([3, 20, 20, 21], 5, 70), ([33] * 8, 40, 150), ([7], 1025, 30)):
        ends = [2, *inner, *[places] * (count - len(inner))]
        offs = torch.tensor(ends, dtype=torch.int32)
        x, y = torch.ones(places, 8).bfloat16(), torch.full((places, 24), -1.0)
        w = (torch.arange(count) % 256).bfloat16()[:, None, None].expand(count, 8, 24).contiguous()
        kernel.f(x, w, offs, out=y)
        owner = torch.bucketize(torch.arange(places), offs[1:].long(), right=True)
        same(y[2:, 17], (8 * (owner % 256))[2:].to(torch.float64))
        same(y[:2, 17], [-1.0, -1.0])


@case
def c01_in_place_once() -> None:
    m = built("op halve[N](inout x: f32[N]) { kernel k { x[n] = 0.5 * x[n] } }\n")
    x = torch.full((7,), 64.0)
    m.halve(x)
    same(x, [32.0] * 7)
    m.halve(x)
    same(x, [16.0] * 7)


@case
def c08_names() -> None:
    m = built(
        "op y[N](lambda: f32[N], num_warps: f32) -> grid: f32[N] { kernel tl { grid[i] = lambda[i] * num_warps } }\n"
    )
    same(m.y(torch.tensor([1.0, 2.0]), 3.0), [3.0, 6.0])
    same(m.y(torch.tensor([1.0, 2.0]), 3), [3.0, 6.0])


@case
def values_of_keys_that_a_query_does_not_see() -> None:
    for domain, seen in (
        ("t < l + 1 + T - L", lambda l, t: t <= l + 3),
        ("0 <= l + T - L - t < 3", lambda l, t: 0 <= l + 3 - t < 3),
        ("keep[l, t]", lambda l, t: (l + t) % 3 != 0),
    ):
        for m in both(
            "op a[L, T, D](q: bf16[L, D], k: bf16[T, D], v: bf16[T, D], keep: bool[L, T]) -> o: f32[L, D] {\n"
            f"require L <= T\nkernel k {{ s[l, t] = sum[d](q[l, d] * k[t, d]) for {domain}\n"
            "o[l, d] = sum[t] using bf16 (softmax[t](s[l, t]) * v[t, d]) } }\n"
        ):
            rows, keys = 41, 44
            q, k = torch.zeros(rows, 2).bfloat16(), torch.zeros(keys, 2).bfloat16()
            v = torch.stack([torch.arange(float(keys)), torch.ones(keys)], 1).bfloat16()
            bad = {7: INF, 19: math.nan, 30: -INF, 31: INF, 43: -INF}
            for t, value in bad.items():
                v[t, t % 2] = value
            keep = torch.tensor([[seen(l, t) for t in range(keys)] for l in range(rows)])
            weights = keep / keep.sum(1, keepdim=True)
            right = torch.where(keep[:, :, None], weights[:, :, None].double() * v.double(), 0.0).sum(1)
            assert right.isfinite().any()
            same(m.a(q, k, v, keep), right, 2e-2)


@case
def divergence_of_rows_with_large_offsets() -> None:
    generator = torch.Generator().manual_seed(1)
    for m in both(
        "op a[M, V](p: f32[M, V], q: f32[M, V]) -> kl: f32[M], h: f32[M] { kernel k {\n"
        "let a[m, v] = log_softmax[v](p[m, v])\nlet b[m, v] = log_softmax[v](q[m, v])\n"
        "kl[m] = sum[v](exp(a[m, v]) * (a[m, v] - b[m, v]))\nh[m] = -sum[v](exp(a[m, v]) * a[m, v]) } }\n"
    ):
        for offset, width, near in (
            (0, 1, 1),
            (1000, 3, 0.01),
            (-1000, 3, 30),
            (1e4, 30, 0.1),
            (0, 100, 100),
        ):
            p = torch.randn(2, 301, generator=generator) * width + offset
            q = p + torch.randn(2, 301, generator=generator) * near - offset / 2
            for rows in ((p, q), (p.sort(1)[0], q.sort(1)[0]), (p.sort(1, descending=True)[0], q.sort(1)[0])):
                a, b = (r.double().log_softmax(1) for r in rows)
                kl, h = m.a(*rows)
                # distances from a maximum are exact, and at most as wide as the rows: their sum errs by less
                same(kl, (a.exp() * (a - b)).sum(1), 2e-6 * (1 + width + near))
                same(h, -(a.exp() * a).sum(1), 2e-6 * (1 + width))
        p, q = torch.zeros(4, 9), torch.zeros(4, 9)
        q[0, 3], p[1, 2], p[2, 5], q[3, 1] = -INF, -INF, INF, INF
        same(m.a(p, q)[0], [INF, math.nan, math.nan, math.nan])


@case
def used_pages_out_of_range() -> None:
    text = (
        "op a[B, H, T, N, P](k: f32[N, P, H], table: i32[B, T // P], len: i32[B]) -> y: f32[B, H] {\n"
        "require T % P == 0\nassume len[b] <= T\n"
        "kernel q { y[b, h] = sum[t | t < len[b]](k[table[b, t // P], t % P, h]) } }\n"
    )
    plain, m = built(text), built(text, debug=True)
    assert not hasattr(plain, "_a__used")
    k = torch.arange(24.0).reshape(4, 2, 3)
    table, lengths = (
        torch.tensor([[3, 99], [0, 1]], dtype=torch.int32),
        torch.tensor([2, 4], dtype=torch.int32),
    )
    for module in (plain, m):
        same(module.a(k, table, lengths, T=4), [[39, 41, 43], [18, 22, 26]])
    lengths[0] = 3
    found = "`table[b, t // P]` is 99 at b = 0, t = 2: axis 1 of `k` (N) needs 0 <= table[b, t // P] < 4"
    fails(lambda: m.a(k, table, lengths, T=4), found)
    table[0, 1], table[1, 0] = 1, -1
    fails(lambda: m.a(k, table, lengths, T=4), "is -1 at b = 1, t = 0, and 1 more")
    lengths[1] = 0
    m.a(k, table, lengths, T=4)
    lengths[1] = 5
    fails(lambda: m.a(k, table, lengths, T=4), "`T - len[b]` is -1 at b = 1", "assumption")


@case
def used_indices_of_gathers_and_scatters() -> None:
    m = built(
        "op f[M, V](x: f32[M, V], label: i64[M], ignore: i64 = -100) -> y: f32[M] {\n"
        "kernel k { y[m] = where(label[m] == ignore, 0, x[m, label[m]]) } }\n"
        "op g[M, S, D](x: f32[M, D], slot: i64[M], inout c: f32[S, D]) { assume distinct(slot)\n"
        "kernel k { c[slot[m], d] = x[m, d] } }\n"
        "op h[L, T, N](x: f32[N], at: i32[T]) -> y: f32[L] { require L <= T\n"
        "kernel k { y[l] = sum[t | t < l + 1 + T - L](x[at[t]]) } }\n"
        "op e[M, N](x: f32[N], at: i32[M]) -> y: f32[M] { kernel k { y[m] = x[at[m]] else 7 } }\n",
        debug=True,
    )
    x = torch.arange(6.0).reshape(2, 3)
    same(m.f(x, torch.tensor([-100, 2])), [0, 5])
    fails(lambda: m.f(x, torch.tensor([-100, 3])), "`label[m]` is 3 at m = 1", "axis 2 of `x` (V)")
    c = torch.zeros(4, 3)
    m.g(x, torch.tensor([3, 0]), c)
    same(c[0], [3, 4, 5])
    fails(lambda: m.g(x, torch.tensor([3, 4]), c), "`slot[m]` is 4 at m = 1", "axis 1 of `c` (S)")
    fails(lambda: m.g(x, torch.tensor([2, 2]), c), "slot[0] and slot[1] are both 2")
    at = torch.tensor([0, 1, 2, 9], dtype=torch.int32)
    fails(lambda: m.h(torch.arange(3.0), at, L=2), "`at[t]` is 9 at t = 3")
    same(m.h(torch.arange(3.0), at[:3], L=1), [3])
    same(m.e(torch.arange(3.0), at), [0, 1, 2, 7])
    if not torch.cuda.is_available():
        m.f(x.to("meta"), torch.tensor([0, 9]).to("meta"))


@case
def launch_errors() -> None:
    m = built(
        "dtype X in {bf16, f16}\nop f[M, N](x: X[M, 2 * N], w: X[N], u: f32[M]) -> y: X[M, N] {\n"
        "require N % 4 == 0\nkernel k { y[m, n] = x[m, 2 * n] * w[n] + u[m] } }\n"
    )
    x, w, u = torch.zeros(3, 16, dtype=torch.bfloat16), torch.zeros(8, dtype=torch.bfloat16), torch.zeros(3)
    assert m.f(x, w, u).shape == (3, 8)
    fails(lambda: m.f(x[0], w, u), "`x`", "1 axes")
    fails(lambda: m.f(x.float(), w, u), "`x`", "float32", "bf16 or f16")
    fails(lambda: m.f(x, w.half(), u), "`w`", "float16")
    fails(lambda: m.f(x, w, u[:2]), "`u`", "(2,)", "(3,)")
    fails(lambda: m.f(x, w, u.to("meta")), "`u`", "meta")
    fails(lambda: m.f(x[:, :12], w[:6], u), "N % 4 == 0", "N = 6")
    fails(lambda: m.f(x, w, u, out=torch.zeros(3, 7, dtype=torch.bfloat16)), "`y`", "(3, 7)")
    fails(lambda: m.f(x, w, u, out=torch.zeros(3, 8)), "`y`", "float32")
    fails(lambda: m.f(x, w, u, out=torch.zeros(3, 1, dtype=torch.bfloat16).expand(3, 8)), "`y`", "stride 0")


@case
def solved_dims() -> None:
    m = built("op f[N](x: f32[2 * N + 1]) -> y: f32[N] { kernel k { y[n] = x[2 * n + 1] } }\n")
    same(m.f(torch.arange(7.0)), [1, 3, 5])
    fails(lambda: m.f(torch.arange(6.0)), "`x`", "6")


@case
def a_joint_extreme_of_streams_without_mass() -> None:
    for m in both(
        "op f[M, I, T](a: f32[M, I], s: f32[M, T], v: f32[I], u: f32[T]) -> y: f32[M], l: f32[M] {\n"
        "require I >= 1, T >= 1\nkernel k {\nm[r] = max(max[i](a[r, i]), max[t](s[r, t]))\n"
        "l[r] = sum[i](exp(a[r, i] - m[r])) + sum[t](exp(s[r, t] - m[r]))\n"
        "n[r] = sum[i](exp(a[r, i] - m[r]) * v[i]) + sum[t](exp(s[r, t] - m[r]) * u[t])\n"
        "y[r] = n[r] / l[r] } }\n"
    ):
        a, s = torch.full((6, 40), -INF), torch.full((6, 3), -INF)
        a[0, 5] = a[1, 5] = a[4, 0] = 7.0
        s[0, 1] = s[2, 2] = 7.0
        a[4, 1], s[5, 0] = INF, math.nan
        y, total = m.f(a, s, torch.ones(40), torch.full((3,), 3.0))
        # both, the first alone, the second alone, neither, infinity, no number
        same(y, [2.0, 1.0, 3.0, math.nan, math.nan, math.nan], 1e-6)
        same(total, [2.0, 1.0, 1.0, math.nan, math.nan, math.nan], 1e-6)


@case
def a_joint_extreme_in_parts() -> None:
    text = (
        "op f[B, S, T, D](q: bf16[B, D], kp: bf16[S, D], k: bf16[B, T, D]) -> o: f32[B, D] {\n"
        "require S >= 1, T >= 1, D >= 1\nkernel k {\na[b, i] = sum[d](q[b, d] * kp[i, d])\n"
        "s[b, t] = sum[d](q[b, d] * k[b, t, d])\nm[b] = max(max[i](a[b, i]), max[t](s[b, t]))\n"
        "l[b] = sum[i](exp(a[b, i] - m[b])) + sum[t](exp(s[b, t] - m[b]))\n"
        "n[b, d] = sum[i] using bf16 (exp(a[b, i] - m[b]) * kp[i, d])\n"
        "w[b, d] = sum[t] using bf16 (exp(s[b, t] - m[b]) * k[b, t, d])\n"
        "o[b, d] = (n[b, d] + w[b, d]) / l[b] } }\n"
    )
    m = built(text, SMALL)
    started: list[str] = []
    start = Call.start
    Call.start = lambda self, kernel, *rest, **more: (  # type: ignore[method-assign]
        started.append(kernel.fn.__name__),
        start(self, kernel, *rest, **more),
    )[1]
    bf16 = torch.bfloat16
    torch.manual_seed(0)
    q, kp, k = (torch.randn(*shape).to(bf16) for shape in ((3, 16), (100, 16), (3, 50, 16)))
    try:
        o = m.f(q, kp, k)
    finally:
        Call.start = start  # type: ignore[method-assign]
    keys = torch.cat([kp.double().expand(3, -1, -1), k.double()], 1)
    weights = torch.softmax(torch.einsum("bd,btd->bt", q.double(), keys), -1)
    same(o, torch.einsum("bt,btd->bd", weights, keys), 2e-2)
    assert len(started) == 2
    assert "_part" in started[0]
    assert "_merge" in started[1]


@case
def long_rows_are_made_again_from_what_was_loaded() -> None:
    m = built(
        "dtype X in {bf16, f32}\nop f[M, N](x: X[M, N]) -> y: X[M, N] { kernel k { y[m, n] = softmax[n](x[m, n]) } }\n"
        "workload w for f { M = 4, N = 32768, X = bf16 }\n"
    )
    x = torch.randn(3, 32768, generator=torch.Generator().manual_seed(0))
    x[1, 7] = 80.0
    x[2, 32767] = math.nan
    for kind, within in ((torch.bfloat16, 4e-3), (torch.float32, 1e-6)):
        rows = x.to(kind)
        same(m.f(rows), torch.softmax(rows.to(torch.float64), 1), within)


@case
def rows_of_odd_length_begin_where_a_wide_load_can() -> None:
    m = built(  # chunks of 32 elements
        "op top[M, N](x: bf16[M, N]) -> at: i64[M], lse: f32[M] { kernel k { at[m] = argmax[n](x[m, n]); lse[m] = logsumexp[n](x[m, n]) } }\n"
        "op squares[M, N](x: bf16[M, N]) -> y: f32[M] { kernel k { y[m] = sum[n](1 + x[m, n] ** 2) } }\n",
        SMALL,
    )
    kind = torch.bfloat16
    # one after the other, at any address, and along no memory
    views = (torch.empty(6, 43, dtype=kind), torch.empty(6, 57, dtype=kind)[:, 3:46])
    for x in (*views, torch.empty(43, 6, dtype=kind).T):
        x.copy_(torch.linspace(-2, 2, 43).repeat(6, 1))
        x[1], x[2, 20], x[2, 30], x[3], x[5, 7], x[5, 40] = -INF, math.nan, math.nan, -0.0, 9.0, 9.0
        at, lse = m.top(x)
        same(at, [42, 0, 20, 0, 42, 7])
        some = torch.tensor([0, 3, 4, 5])
        rows = x.to(torch.float64)[some]
        same(lse[some], torch.logsumexp(rows, 1), 1e-5)
        same(m.squares(x)[some], (1 + rows**2).sum(1), 1e-5)
