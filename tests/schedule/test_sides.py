"""Products of several factors come to two sides, whatever order they are written in."""

from __future__ import annotations

import pytest

from opspec.ir.values import Binary

TEXT = """op f[M, N, K](x: bf16[M, K], w: bf16[K, N], g: f32[K], s: f32[N], r: f32[M, K]) -> y: f32[M, N] {{
  kernel k {{ y[m, n] = sum[k] {using} ({body}) }}
}}
"""
BODIES = [
    "x[m, k] * w[k, n] * g[k]",
    "g[k] * (x[m, k] * w[k, n])",
    "x[m, k] * w[k, n] * sigmoid(r[m, k])",
    "-x[m, k] * w[k, n] * (1 / (1 + abs(g[k])))",
    "x[m, k] * w[k, n] * g[k] * s[n]",
]


@pytest.mark.parametrize("body", BODIES)
def test_every_order_meets_the_matrix_unit(plan, body):
    found = plan(TEXT.format(using="using bf16", body=body))
    (product,) = found.variants[-1].roles.products.values()
    assert (product.rows, product.columns, product.k) == ("m", "n", "k")
    assert product.unit


def test_without_using_the_product_is_one_of_f32(plan):
    found = plan(TEXT.format(using="", body=BODIES[0]))
    (product,) = found.variants[-1].roles.products.values()
    assert not product.unit


def test_a_factor_of_both_free_indices_stays_where_it_is(plan):
    found = plan(
        "op f[M, N, K](x: bf16[M, K], w: bf16[K, N], g: f32[M, N, K]) -> y: f32[M, N] {\n"
        "  kernel k { y[m, n] = sum[k](x[m, k] * w[k, n] * g[m, n, k]) }\n}\n"
    )
    assert not found.variants[-1].roles.products


@pytest.mark.parametrize(
    "body", ["x[m, k] * w[k, n] / g[k]", "x[m, k] / g[k] * w[k, n]", "w[k, n] * (x[m, k] / r[m, k])"]
)
def test_what_divides_divides_its_side(plan, body):
    found = plan(TEXT.format(using="using bf16", body=body))
    (product,) = found.variants[-1].roles.products.values()
    assert product.unit
    assert any(isinstance(side, Binary) and side.op == "div" for side in (product.a, product.b))
