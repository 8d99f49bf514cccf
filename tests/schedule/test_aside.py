"""Sums beside a fold of what it loads, and operands that something else uses, too."""

from __future__ import annotations

import pytest

from opspec.schedule.tile import Fetch, Let, Multiply, statements

NORMED = """op f[M, N, K](x: bf16[M, K], gain: bf16[K], w: bf16[K, N]) -> y: bf16[M, N] {
  kernel k { y[m, n] = sum[k] using bf16 (rmsnorm[k](x[m, k], 1e-6) * gain[k] * w[k, n]) }
}
workload w for f { M = 4096, N = 4096, K = 4096 }
"""
ZEROS = """op f[M, N, K](a: i8[M, K], b: i8[N, K], za: i32[M], zb: i32[N]) -> y: i32[M, N] {
  kernel k {
    r[m] = sum[k](a[m, k])
    c[n] = sum[k](b[n, k])
    y[m, n] = sum[k](a[m, k] * b[n, k]) - za[m] * c[n] - zb[n] * r[m]
  }
}
workload w for f { M = 4096, N = 4096, K = 4096 }
"""
CAUCHY = """op f[L, T, D](q: bf16[L, D], k: bf16[T, D], v: bf16[T, D]) -> o: bf16[L, D] {
  kernel k {
    k2[j] = sum[d](square(k[j, d]))
    c[i, j] = 1 / (1 + abs(k2[j] - 2 * sum[d](q[i, d] * k[j, d])))
    o[i, d] = sum[j] using bf16 (c[i, j] * v[j, d])
  }
}
workload w for f { L = 4096, T = 4096, D = 128 }
"""
WEIGHTED = """op f[N, K, D](x: f32[N, D], mu: f32[K, D], w: f32[D]) -> y: f32[N] {
  kernel k { y[n] = logsumexp[c](-sum[d](square((x[n, d] - mu[c, d]) * w[d]))) + sum[d](log(abs(w[d]))) }
}
workload w for f { N = 65536, K = 64, D = 32 }
"""
UNWEIGHTED = WEIGHTED.replace("- mu[c, d]) * w[d]", "- mu[c, d])")
CENTRED = NORMED.replace("rmsnorm", "layernorm")
OTHERS = NORMED.replace("gain: bf16[K]", "gain: bf16[K], z: bf16[M, K]").replace(
    "rmsnorm[k](x[m, k], 1e-6)", "(x[m, k] * max[k](z[m, k]))"
)


def asides(found) -> set[str]:
    return {f"{a.statement} {a.text.split()[3]}" for a in found.rewrites if a.rule == "aside"}


@pytest.mark.parametrize(
    ("text", "grid", "again"),
    [
        (NORMED, {"m", "n"}, {"y n"}),
        (ZEROS, {"m", "n"}, {"r n", "c m"}),
        (CAUCHY, {"i"}, {"k2 i"}),
        (WEIGHTED, {"n"}, {"y n"}),
        (UNWEIGHTED, set(), set()),
        # the product waits for the mean, or nothing else loads what the other sum needs: columns are walked
        (CENTRED, {"m"}, set()),
        (OTHERS, {"m"}, set()),
    ],
    ids=["normed", "zeros", "cauchy", "weighted", "unweighted", "centred", "others"],
)
def test_a_sum_of_what_a_product_loads_keeps_no_axis_out_of_the_grid(plan, text, grid, again):
    found = plan(text)
    assert set(found.variants[-1].roles.grid) == grid
    assert asides(found) == again


def test_an_operand_enters_its_product_as_stored_and_is_widened_for_others(plan):
    program = plan(CAUCHY).variants[-1].program
    every = list(statements(program.body))
    fetches = [s for s in every if isinstance(s, Fetch) and s.tensor == "k"]
    assert [s.raw for s in fetches] == [True]
    (fetch,) = fetches
    wide = next(s for s in every if isinstance(s, Let) and s.var.name.endswith("_wide"))
    product = next(s for s in every if isinstance(s, Multiply))
    assert fetch.var.name in {getattr(o.value, "name", "") for o in (product.a, product.b)}
    assert wide.value.x.name == fetch.var.name
