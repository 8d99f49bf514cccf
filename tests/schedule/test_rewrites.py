"""Sharing, and factors that leave a sum."""

from __future__ import annotations

from opspec.ir.values import Select
from opspec.schedule.graph import Fold, Load, Point

SOFTMAX_V = """op f[M, N](x: f32[M, N], v: f32[N]) -> y: f32[M], lse: f32[M] {{
  {require}
  kernel k {{
    y[m] = sum[n](softmax[n](x[m, n]) * v[n])
    lse[m] = logsumexp[n](x[m, n])
  }}
}}
"""


def rules(found) -> list[tuple[str, str]]:
    return [(r.rule, r.statement) for r in found.rewrites]


def pulled(found) -> Point:
    return next(n for n in found.graph.nodes if isinstance(n, Point) and n.name == "y")


def test_equal_reductions_are_one(plan):
    found = plan(SOFTMAX_V.format(require=""))
    assert rules(found) == [("share", "lse"), ("share", "lse"), ("pull", "y")]
    folds = [n.monoid for n in found.graph.nodes if isinstance(n, Fold)]
    assert sorted(folds) == ["max", "sum", "sum"]


def test_a_factor_of_what_may_be_empty_is_guarded(plan):
    found = plan(SOFTMAX_V.format(require=""))
    assert isinstance(pulled(found).value, Select)


def test_a_factor_of_what_is_never_empty_is_not(plan):
    found = plan(SOFTMAX_V.format(require="require N >= 1"))
    assert not isinstance(pulled(found).value, Select)


def test_a_domain_is_a_guard_too(plan):
    found = plan(
        "op f[N](x: f32[N, N], v: f32[N]) -> y: f32[N] {\n  require N >= 1\n  kernel k {\n"
        "    s[i, j] = x[i, j] for j < i\n    y[i] = sum[j](softmax[j](s[i, j]) * v[j])\n  }\n}\n"
    )
    assert ("pull", "y") in rules(found)
    assert isinstance(pulled(found).value, Select)


def test_a_scale_leaves_a_contraction_for_the_matrix_unit(plan):
    found = plan(
        "op f[M, N, K](a: f8e4m3[M, K], b: f8e4m3[K, N], s: f32[M], t: f32[N]) -> c: bf16[M, N] {\n"
        "  kernel k { c[m, n] = sum[k](a[m, k] * s[m] * b[k, n] * t[n]) }\n}\n"
    )
    assert ("pull", "c") in rules(found)
    assert found.variants[0].roles.products


def test_a_cast_is_a_barrier(plan):
    found = plan(
        "op f[M, N](x: f32[M, N], v: f32[N]) -> y: f32[M] {\n"
        "  kernel k { y[m] = sum[n](bf16(softmax[n](x[m, n])) * v[n]) }\n}\n"
    )
    assert not any(rule == "pull" for rule, _ in rules(found))


def test_a_factor_with_the_index_stays(plan):
    found = plan(
        "op f[M, N](x: f32[M, N], v: f32[N]) -> y: f32[M] { kernel k { y[m] = sum[n](x[m, n] * v[n]) } }\n"
    )
    assert not found.rewrites


def test_one_load_under_the_weaker_conditions_serves_both(plan):
    text = """op f[N](x: f32[N, N]) -> y: f32[N], z: f32[N] {
      kernel k {
        s[i, j] = x[i, j]  for j <= i
        y[i] = sum[j](s[i, j])
        z[i] = max[j](x[i, j]) else 0
      }
    }
    """
    loads = [n for n in plan(text).graph.nodes if isinstance(n, Load)]
    assert [n.constraints for n in loads] == [()]
