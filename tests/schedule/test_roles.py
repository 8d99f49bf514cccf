"""Axes: how letters are joined, what runs in parallel, whole or streamed, and where streams start and stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from opspec.diagnostics import Failure
from opspec.frontend import load
from opspec.ir.values import Extent
from opspec.schedule.plan import schedule_kernel
from opspec.schedule.tile import Loop, statements

SPECS = Path(__file__).parents[2] / "specs"
WANTED = {
    # spec: (grid, then per variant: whole, streamed)
    "gemm/matmul": ("m n", [("", "k")]),
    "loss/cross_entropy": ("m", [("v", ""), ("", "v")]),
    "norm/add_rmsnorm": ("m", [("n", ""), ("", "n")]),
    "reduce/softmax": ("m", [("n", ""), ("", "n")]),
}


@pytest.mark.parametrize("name", WANTED)
def test_the_roles_of_the_specs(name: str):
    module = load(SPECS / f"{name}.op")
    op = module.ops[0]
    cases = [dict(d) for w in module.workloads_of(op.name) for _, d in w.cases]
    plan = schedule_kernel(
        op, op.boundaries[0], op.boundaries[0].kernels[0], typical=lambda e: max(e.evaluate(c) for c in cases)
    )
    grid, variants = WANTED[name]
    assert {" ".join(v.roles.grid) for v in plan.variants} == {grid}
    assert [(" ".join(v.roles.tile), " ".join(v.roles.stream)) for v in plan.variants] == variants


def test_a_map_has_no_inner_axes():
    module = load(SPECS / "map" / "rope.op")
    op = module.ops[0]
    plan = schedule_kernel(op, op.boundaries[0], op.boundaries[0].kernels[0])
    assert len(plan.variants) == 1
    assert not plan.variants[0].roles.tile
    assert not plan.variants[0].roles.stream


CAUSAL = """op f[L, T, D](q: bf16[L, D], k: bf16[T, D], v: bf16[T, D]) -> o: bf16[L, D] {{
  kernel k {{
    s[i, j] = sum[d](q[i, d] * k[j, d])  for {domain}
    o[i, d] = sum[j] using bf16 (softmax[j](s[i, j]) * v[j, d])
  }}
}}
workload w for f {{ L = 4096, T = 4096, D = 128 }}
"""


@pytest.mark.parametrize(
    ("domain", "start", "stop"),
    [
        ("j < T", "0", "T"),
        ("j <= i", "0", "min(T, 1 + i.last)"),
        ("j < i + 1 + T - L", "0", "min(T, T + 1 + i.last - L)"),
        ("0 <= i - j, i - j < 64", "max(0, i.first - 63)", "min(T, 1 + i.last)"),
        ("j > i", "max(0, 1 + i.first)", "T"),
        ("j < max(16, i + 1)", "0", "min(T, max(16, 1 + i.last))"),
        ("j < max(16, i, 20 - i)", "0", "T"),
    ],
)
def test_a_stream_keeps_to_what_a_block_of_rows_needs(plan, domain: str, start: str, stop: str):
    found = plan(CAUSAL.format(domain=domain))
    loop = next(
        s for v in found.variants for s in statements(v.program.body) if isinstance(s, Loop) and s.axis == "j"
    )
    assert isinstance(loop.start, Extent)
    assert isinstance(loop.stop, Extent)

    def at(value: Extent, **names: int) -> int:
        return value.value.evaluate({"L": 40, "T": 50, **names})

    for first in (0, 8, 32):
        env = {"i.first": first, "i.last": first + 7}
        scope = {
            "L": 40,
            "T": 50,
            "i": type("i", (), {"first": first, "last": first + 7}),
            "min": min,
            "max": max,
        }
        assert at(loop.start, **env) == eval(start, {}, scope)
        assert at(loop.stop, **env) == eval(stop, {}, scope)


def test_taps_go_one_at_a_time_beside_a_tile_of_places(plan):
    found = plan(
        "op f[B, T, C, K](x: bf16[B, T, C], w: f32[K, C]) -> y: bf16[B, T, C] {\n"
        "  kernel k { y[b, t, c] = sum[r](w[r, c] * (x[b, t + r - K + 1, c] else 0)) }\n}\n"
    )
    (variant,) = found.variants
    assert (variant.roles.grid, variant.roles.stream) == (("b", "t", "c"), ("r",))
    assert variant.roles.blocked == {"t", "c"}
    assert variant.roles.laned is None


def test_places_that_data_or_blocks_give_are_no_taps(plan):
    paged = plan(
        "op f[B, R, P](pool: f32[P, P], table: i32[B, R], len: i32[B]) -> y: f32[B] {\n"
        "  require P >= 1\n  assume len[b] <= R * P\n"
        "  kernel k { y[b] = sum[t | t < len[b]](pool[table[b, t // P], t % P])  for b < B }\n}\n"
    )
    assert paged.variants[0].roles.tile == ("t",)
    grouped = plan(
        "op f[N, G, K](x: f32[N, G * K]) -> y: f32[N, G] {\n"
        "  kernel k { y[n, g] = sum[k | k < K](x[n, g * K + k])  for n < N, g < G }\n}\n"
    )
    assert grouped.variants[0].roles.tile == ("k",)


def test_one_letter_over_one_range_is_one_axis(plan):
    found = plan(
        "op f[M, N](x: f32[M, N], y: f32[N, M]) -> a: f32[M, N], b: f32[M] {\n  kernel k {\n"
        "    a[m, n] = x[m, n] + y[n, m]\n    b[r] = sum[c](x[r, c])\n  }\n}\n"
    )
    assert len(found.block.axes) == 2


def test_two_indices_of_one_statement_are_two_axes(plan):
    found = plan("op f[N](x: f32[N]) -> y: f32[N, N] { kernel k { y[i, j] = x[i] * x[j] } }\n")
    assert [a.name for a in found.block.axes] == ["i", "j"]


def test_a_value_at_two_points_of_one_axis_is_refused(plan):
    with pytest.raises(Failure) as caught:
        plan(
            "op f[N](x: f32[N, N]) -> y: f32[N, N] {\n  kernel k {\n    e[i, j] = exp(x[i, j])\n"
            "    y[i, j] = e[i, j] + e[j, i]\n  }\n}\n"
        )
    (fault,) = caught.value.diagnostics
    assert fault.code.code == "OP641"
    assert fault.span is not None
    assert fault.notes[0].span is not None


GROUPS = """op f[C, G](x: f32[C]) -> y: f32[C] {
  require C % G == 0
  let P = C // G
  kernel k {
    m[g] = sum[p](x[g * P + p])  for g < G, p < P
    y[c] = x[c] - m[c // P]
  }
}
"""
TWICE = """op f[T, D](x: f32[T, D]) -> y: f32[D, D] {
  kernel k {
    m[d] = mean[t](x[t, d])
    y[d, e] = m[d] * m[e]
  }
}
"""


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        (GROUPS, "write `c` as `g * (C // G)` and an index for the rest, so that it is read at `g`"),
        (TWICE, "write its value out at one of the points"),
    ],
)
def test_a_block_that_no_launch_carries_is_refused_with_another_way_to_write_it(plan, text, help_):
    with pytest.raises(Failure) as caught:
        plan(text)
    (fault,) = caught.value.diagnostics
    assert fault.code.code == "OP641"
    assert help_ in fault.help


@pytest.mark.parametrize(
    "text",
    [
        GROUPS.replace("y[c] = x[c] - m[c // P]", "y[g * P + p] = x[g * P + p] - m[g]  for g < G, p < P"),
        TWICE.replace("m[e]", "mean[t](x[t, e])"),
    ],
)
def test_what_the_help_says_can_be_built(plan, text):
    assert plan(text).variants


def test_an_axis_that_one_product_takes_one_at_a_time_is_no_tile_of_another(plan):
    """Keys of a place of its own and keys that all places share: rows are frames in both products."""
    found = plan(
        "op f[F, P, D](q: bf16[F, P, D], k: bf16[F, P, D], a: bf16[F, D]) -> s: f32[P, F, F], t: f32[P, F, F] {\n"
        "  kernel k {\n    s[p, i, j] = sum[d](q[i, p, d] * k[j, p, d])\n"
        "    t[p, i, j] = sum[d](q[i, p, d] * a[j, d])\n  }\n}\n"
    )
    products = found.variants[-1].roles.products.values()
    assert {(p.rows, p.columns) for p in products} == {("i", "j")}
    assert "p" not in found.variants[-1].roles.blocked
