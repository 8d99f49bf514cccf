"""Segments are walked inside the program that owns their places; outer sums stand around a block product."""

from __future__ import annotations

from opspec.driver.traffic import program_traffic, segment_loops
from opspec.schedule.segments import Segment, segments_of
from opspec.schedule.tile import Loop, Multiply, statements

ROUTED = (
    "op routed[N, E, K, F](x: bf16[N, K], w: bf16[E, K, F], offs: i32[E + 1]) -> y: bf16[N, F] {\n"
    "  kernel k { y[n, f] = sum[k](x[n, k] * w[e, k, f])  for n in offs[e]..offs[e + 1] }\n}\n"
    "workload large for routed { N = 4096, E = 16, K = 1024, F = 1024 }\n"
)
BLOCKS = (
    "op blocks[M, N, G, S](a: bf16[M, G * S], b: bf16[N, G * S], u: f32[M, G]) -> c: f32[M, N] {{\n  kernel k {{\n"
    "    p[m, n, g] = sum[k](a[m, g * S + k] * b[n, g * S + k])  for g < G, k < S\n"
    "    c[m, n] = {} \n  }}\n}}\nworkload large for blocks {{ M = 1024, N = 1024, G = 32, S = 128 }}\n"
)


def test_a_program_walks_the_segments_of_its_own_places(plan):
    found = plan(ROUTED)
    assert segments_of(found.graph) == {"e": Segment(axis="e", tensor="offs", place="n")}
    (variant,) = found.variants
    assert (variant.roles.grid, variant.roles.stream) == (("n", "f"), ("e", "k"))
    ((loop, place),) = segment_loops(variant.program.body)
    assert (loop.axis, loop.segments, place) == ("e", "offs", "n")
    assert [next(iter(v.value.free_indices())) for v in (loop.start, loop.stop)] == ["n.first", "n.last"]
    assert any(isinstance(s, Multiply) for s in statements(variant.program.body))


def test_all_programs_together_meet_each_segment_and_one_more_for_each_edge(plan):
    found = plan(ROUTED)
    op = found.block.op
    form = program_traffic(op, op.boundaries[0], found.variants[-1].program, {})
    sizes = {"N": 4096, "E": 16, "K": 1024, "F": 1024, "BLOCK_N": 128, "BLOCK_F": 256}
    tiles, columns = 4096 // 128, 1024 // 256
    rows, matrices = 4096 + 15 * 128, tiles + 15
    wanted = (
        2 * rows * 1024 * columns + 2 * matrices * 1024 * 1024 + 2 * 4 * matrices * columns + 2 * 4096 * 1024
    )
    assert form.subs({s: sizes[str(s)] for s in form.free_symbols}) == wanted


def test_a_segment_that_is_reduced_is_an_ordinary_axis(plan):
    found = plan(
        "op f[N, E](x: f32[N], offs: i32[E + 1]) -> y: f32[E] {\n  assume offs[e] <= N\n"
        "  kernel k { y[e] = sum[n | offs[e] <= n, n < offs[e + 1]](x[n])  for e < E }\n}\n"
    )
    assert segments_of(found.graph) == {}


def test_a_sum_around_a_block_product_goes_one_index_at_a_time(plan):
    found = plan(BLOCKS.format("sum[g](p[m, n, g] * (u[m, g] + 1))"))
    for variant in found.variants:
        (product,) = variant.roles.products.values()
        assert (product.k, product.around) == ("k", frozenset("g"))
        assert "g" in variant.roles.stream
        assert "g" not in variant.roles.blocked
    outer = [s for s in found.variants[0].program.body if isinstance(s, Loop)]
    assert [s.axis for s in outer] == ["g"]


def test_an_axis_that_is_stored_is_none(plan):
    text = BLOCKS.format("sum[g](p[m, n, g])").replace("c: f32[M, N]", "c: f32[M, N], q: f32[M, N, G]")
    found = plan(text.replace("    c[m, n]", "    q[m, n, g] = p[m, n, g] / max[h](p[m, n, h])\n    c[m, n]"))
    assert not any(p.around for v in found.variants for p in v.roles.products.values())


def test_a_scan_of_block_products_carries_their_sum(plan):
    found = plan(
        "op f[N, C, D, E](x: bf16[N, C, D], y: bf16[N, C, E]) -> a: f32[N, D, E] {\n"
        "  kernel k { a[n, d, e] = scan_sum[n](sum[c](x[n, c, d] * y[n, c, e])) }\n}\n"
        "workload w for f { N = 64, C = 64, D = 64, E = 64 }\n"
    )
    (product,) = found.variants[0].roles.products.values()
    assert product.around == frozenset("n")
    (loop,) = [s for s in found.variants[0].program.body if isinstance(s, Loop)]
    assert (loop.axis, any(isinstance(s, Multiply) for s in loop.body)) == ("n", True)
