"""Products whose factors that wait for a reduction multiply last."""

from __future__ import annotations

from opspec.schedule.tile import Collapse, Fetch

SCALED = """op f[M, N](x: f32[M, N], w: f32[N]) -> top: f32[M], y: f32[M, N] {
  require N >= 1
  kernel k {
    z[m, n] = x[m, n] * rsqrt(sum[n](x[m, n] * x[m, n])) * w[n]
    top[m] = max[n](z[m, n])
    y[m, n] = z[m, n] / top[m]
  }
}
"""


def test_a_product_that_is_reduced_again_takes_its_row_factor_last(plan):
    found = plan(SCALED)
    assert [(r.rule, r.statement) for r in found.rewrites if r.rule == "defer"] == [("defer", "z")]


def test_what_it_is_multiplied_with_is_loaded_before_the_first_reduction(plan):
    body = plan(SCALED).variants[0].program.body
    loads = [k for k, s in enumerate(body) if isinstance(s, Fetch)]
    folds = [k for k, s in enumerate(body) if isinstance(s, Collapse)]
    assert len(loads) == len(folds) == 2
    assert max(loads) < min(folds)


def test_a_product_that_is_only_stored_keeps_its_order(plan):
    text = SCALED.replace("max[n](z[m, n])", "max[n](x[m, n])")
    assert not any(r.rule == "defer" for r in plan(text).rewrites)
