"""Block products over domains that cut one operand where they can't cut the other: what lies outside never counts."""

from __future__ import annotations

import pytest
from checking import ask, faults

PRODUCTS = {
    "rows": "op tri[M, N, K](a: {t}[M, K], b: {t}[K, N]) -> c: f32[M, N] {{\n"
    "  kernel k {{ c[m, n] = sum[k | k <= m](a[m, k] * b[k, n]) }}\n}}\n",
    "both": "op tri[M, N, K](a: {t}[M, K], b: {t}[K, N]) -> c: f32[M, N] {{\n"
    "  kernel k {{ c[m, n] = sum[k | k <= m, k >= n](a[m, k] * b[k, n]) }}\n}}\n",
    "steep": "op tri[M, N, K](a: {t}[M, K], b: {t}[K, N]) -> c: f32[M, N] {{\n"
    "  kernel k {{ c[m, n] = sum[k | 2 * k <= m](a[m, k] * b[k, n]) }}\n}}\n",
}


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_an_operand_outside_the_domain_of_a_product_may_hold_anything(name: str, dtype: str):
    answer = ask(PRODUCTS[name].format(t=dtype), 24, seed=3, limit=600)
    assert not faults(answer), "\n".join(faults(answer))
    assert "dot_inside" in answer["kernel"]


def test_a_domain_that_cuts_both_operands_alike_needs_no_look():
    text = PRODUCTS["rows"].format(t="bf16").replace("k <= m", "k < K - 3")
    assert "dot_inside" not in ask(text, 0)["kernel"]
