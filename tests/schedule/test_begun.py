"""Sums of block products that begin at what is added to them."""

from __future__ import annotations

import pytest

from opspec.schedule.begun import begun_products
from opspec.schedule.tile import Begin, Let, Multiply, statements

ADAPTED = """op f[M, N, K, R](x: bf16[M, K], w: bf16[K, N], t: bf16[M, R], b: bf16[R, N]{more}) -> y: f32[M, N] {{
  kernel k {{ y[m, n] = {what} }}
}}
workload large for f {{ M = 1024, N = 1024, K = 4096, R = 16 }}
"""
SUM, PRODUCT = "sum[k](x[m, k] * w[k, n])", "sum[r](t[m, r] * b[r, n])"


@pytest.mark.parametrize("what", [f"{SUM} + 3 * {PRODUCT}", f"exp({PRODUCT}) + {SUM}"])
def test_a_sum_begins_at_a_tile_that_is_known_before_its_stream(plan, what: str):
    for variant in plan(ADAPTED.format(what=what, more="")).variants:
        (name,) = begun_products(variant.program)
        body = variant.program.body
        assert any(isinstance(s, Let) and s.var.name == name for s in body)
        assert not any(isinstance(s, Begin) and s.var.name == name for s in body)
        assert [s.var.name for s in statements(body) if isinstance(s, Multiply)][-1] == name


@pytest.mark.parametrize(
    ("what", "more"),
    [
        (f"{SUM} + u[n]", ", u: f32[N]"),  # a row of numbers takes few registers
        (f"{SUM} + u[m, n]", ", u: f32[M, N]"),  # a tile that is loaded comes when it is used
        (f"{SUM} * {PRODUCT}", ""),
        (f"{SUM} - {PRODUCT}", ""),
        (f"exp({SUM} + u[n]) - {PRODUCT}", ", u: f32[N]"),
    ],
)
def test_other_sums_begin_at_nothing(plan, what: str, more: str):
    for variant in plan(ADAPTED.format(what=what, more=more)).variants:
        assert not begun_products(variant.program)


def test_a_sum_that_is_used_beside_begins_at_nothing(plan):
    text = (
        "op f[M, N, K, R](x: bf16[M, K], w: bf16[K, N], t: bf16[M, R], b: bf16[R, N])\n"
        "    -> y: f32[M, N], z: f32[M, N] {\n  kernel k {\n"
        f"    s: f32[m, n] = {SUM}\n    y[m, n] = s[m, n] + {PRODUCT}\n    z[m, n] = s[m, n]\n  }}\n}}\n"
        "workload large for f { M = 1024, N = 1024, K = 4096, R = 16 }\n"
    )
    for variant in plan(text).variants:
        assert not begun_products(variant.program)
