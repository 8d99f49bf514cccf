"""Chains of products: rows lent, tiles inside the domain, exponentials in base 2, streams in parts."""

from __future__ import annotations

import pytest

from opspec.emit.describe import describe
from opspec.ir.values import Unary, walk
from opspec.schedule.tile import Collapse, Fetch, Let, Loop, Multiply, Write, statements, values_of

DECODE = """op f[B, H, T, D](q: bf16[B, H, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]) -> o: bf16[B, H, D] {
  kernel k {
    s[b, h, t] = sum[d](q[b, h, d] * k[b, h, t, d]) / sqrt(D)
    p[b, h, t] = softmax[t](s[b, h, t])
    o[b, h, d] = sum[t] using bf16 (p[b, h, t] * v[b, h, t, d])
  }
}
"""
GROUPED = """op f[B, Hq, Hkv, T, D](q: bf16[B, Hq, D], k: bf16[B, Hkv, T, D], v: bf16[B, Hkv, T, D]) -> o: bf16[B, Hq, D] {
  require Hq % Hkv == 0
  let G = Hq // Hkv
  kernel k {
    s[b, h, t] = sum[d](q[b, h, d] * k[b, h // G, t, d])
    p[b, h, t] = softmax[t](s[b, h, t])
    o[b, h, d] = sum[t] using bf16 (p[b, h, t] * v[b, h // G, t, d])
  }
}
"""
CAUSAL = """op f[L, D](q: bf16[L, D], k: bf16[L, D], v: bf16[L, D], scale: f32) -> o: bf16[L, D] {{
  kernel k {{
    s[i, j] = sum[d](q[i, d] * k[j, d]) * scale {domain}
    p[i, j] = softmax[j](s[i, j])
    o[i, d] = sum[j] using bf16 (p[i, j] * v[j, d])
  }}
}}
"""


def last(found):
    return found.variants[-1]


def rules(found) -> set[str]:
    return {r.rule for r in found.rewrites}


def loop_of(program) -> Loop:
    return next(s for s in program.body if isinstance(s, Loop))


def test_a_vector_of_a_chain_is_a_row(plan):
    found = plan(DECODE)
    assert "pad" in rules(found)
    assert len(last(found).roles.products) == 2
    assert found.block.axis("row").extent.constant == 1


def test_a_single_vector_stays_one(plan):
    text = "op f[N, K](x: bf16[K], w: bf16[N, K]) -> y: bf16[N] {\n  kernel k { y[n] = sum[k](x[k] * w[n, k]) }\n}\n"
    found = plan(text)
    assert "pad" not in rules(found)
    assert not last(found).roles.products


def test_members_of_a_group_are_rows(plan):
    found = plan(GROUPED)
    assert "group" in rules(found)
    rows = {p.rows for p in last(found).roles.products.values()}
    assert rows == {"h_member"}
    fetch = next(s for s in statements(last(found).program.body) if isinstance(s, Fetch) and s.tensor == "k")
    assert "h_group" in {n for i in fetch.at for n in i.free_indices()}


@pytest.mark.parametrize(
    ("domain", "start", "stop"),
    [
        ("", None, "L"),
        ("for j <= i", None, "i.first + 1"),
        ("for 0 <= i - j < 8", "i.last - 7", "i.first + 1"),
        ("for j < max(5, i + 1)", None, "max(i.first + 1, 5)"),
        ("for j < max(L - i, 9)", None, "max(-i.last + L, 9)"),
    ],
)
def test_tiles_inside_the_domain_are_known(plan, domain, start, stop):
    inner = loop_of(last(plan(CAUSAL.format(domain=domain))).program).inner
    assert inner is not None
    assert stop in str(inner.stop.value)
    assert (inner.start is None) == (start is None)
    if start is not None:
        assert start in str(inner.start.value)


def test_a_mask_of_data_stays_everywhere(plan):
    text = CAUSAL.format(domain="for j < len[i]").replace("scale: f32)", "scale: f32, len: i32[L])")
    text = text.replace("  kernel", "  assume len[i] <= L\n  kernel")
    inner = loop_of(last(plan(text)).program).inner
    assert inner is None or not any("len" in str(m) for m in inner.implied)


def test_a_length_that_a_program_reads_once_ends_its_whole_tiles(plan):
    text = """op f[H, L, D](q: bf16[H, L, D], k: bf16[H, L, D], v: bf16[H, L, D], len: i32[H]) -> o: bf16[H, L, D] {
      assume len[h] <= L
      kernel k {
        s[h, i, j] = sum[d](q[h, i, d] * k[h, j, d])  for j < len[h]
        o[h, i, d] = sum[j] using bf16 (softmax[j](s[h, i, j]) * v[h, j, d])
      }
    }
    """
    loop = loop_of(last(plan(text)).program)
    assert loop.inner is not None
    assert any("len" in str(m) for m in loop.inner.implied)
    assert loop.inner.stop == loop.stop


def test_whole_tiles_end_with_the_stream_where_a_mask_stays(plan):
    loop = loop_of(last(plan(CAUSAL.format(domain="for j < max(i + 1, 9 - i)"))).program)
    assert loop.inner is not None
    assert len(loop.inner.implied) == 1
    assert loop.inner.stop == loop.stop


def powers(program) -> set[str]:
    """The operations whose results are exponents of 2."""
    every = [v for s in statements(program.body) for value in values_of(s) for v in walk(value)]
    return {v.x.op for v in every if isinstance(v, Unary) and v.op == "exp2"}


def test_online_sums_take_exponentials_in_base_2(plan):
    found = last(plan(DECODE)).program
    assert powers(found) == {"sub"}
    maximum = next(s for s in statements(found.body) if isinstance(s, Collapse) and s.monoid == "max")
    # the positive factor 1 / sqrt(D) is left to the exponential
    assert not any(isinstance(s, Let) and s.var.name == "s" for s in statements(found.body))
    assert "s_sum" in {getattr(v, "name", "") for v in walk(maximum.value)}


def test_a_factor_of_unknown_sign_stays_before_the_maximum(plan):
    found = last(plan(CAUSAL.format(domain=""))).program
    assert any(isinstance(s, Let) and s.var.name == "s" for s in statements(found.body))
    assert powers(found) == {"sub"}


def test_the_exponent_of_what_is_stored_is_scaled_after_the_difference(plan):
    text = "op f[M, N](x: f32[M, N]) -> y: f32[M, N] {\n  kernel k { y[m, n] = softmax[n](x[m, n]) }\n}\n"
    assert all(powers(v.program) == {"mul"} for v in plan(text).variants)


def test_a_stream_in_parts_stores_what_it_carries(plan):
    split = last(plan(DECODE)).split
    assert split is not None
    assert [p.name for p in split.parts] == ["m_part", "p_sum_part", "o_sum_part"]
    stored = [s.tensor for s in split.partial.body if isinstance(s, Write)]
    assert stored == ["m_part", "p_sum_part", "o_sum_part"]
    assert not any(isinstance(s, Loop | Multiply) for s in statements(split.merge.body))
    assert next(t.name for t in split.merge.tensors) == "o"


def test_a_product_is_split_along_its_sum(plan):
    text = "op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] {\n  kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) }\n}\n"
    split = last(plan(text)).split
    assert split is not None
    assert split.axis == "k"


def test_what_is_stored_along_the_stream_can_not_be_split(plan):
    text = CAUSAL.format(domain="").replace("-> o: bf16[L, D]", "-> o: bf16[L, D], s: f32[L, L]")
    assert last(plan(text)).split is None


def test_operands_are_moved_as_tiles(plan):
    tiles = describe(last(plan(CAUSAL.format(domain=""))).program, ())
    assert tiles == {"q": ("i", "d"), "k": ("j", "d"), "v": ("j", "d")}


def test_what_is_not_a_tile_is_read_by_pointers(plan):
    text = DECODE.replace("k: bf16[B, H, T, D]", "table: i32[B, T], k: bf16[T, H, D]")
    text = text.replace("k[b, h, t, d])", "k[table[b, t], h, d])")
    assert set(describe(last(plan(text)).program, ())) == {"v"}
