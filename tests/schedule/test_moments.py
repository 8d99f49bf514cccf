"""Which sums are about means of their own stream, and how many sweeps that saves."""

from __future__ import annotations

import pytest

from opspec.schedule.graph import Fold
from opspec.schedule.moments import find_moment
from opspec.schedule.tile import Loop, statements

OP = """op f[M, N](x: f32[M, N], z: f32[M, N], keep: bool[M, N], len: i32[M]) -> y: f32[M] {{
  assume len[m] <= N
  kernel k {{
    {body}
  }}
}}
"""
FOUND = {
    "a variance": "y[m] = var[n](x[m, n])",
    "a square written out": "y[m] = sum[n]((x[m, n] - sum[n](x[m, n]) / N) ** 2)",
    "a product of two differences": "y[m] = sum[n]((x[m, n] - mean[n](x[m, n])) * (x[m, n] - mean[n](x[m, n])))",
    "the mean first": "y[m] = sum[n]((mean[n](x[m, n]) - x[m, n]) ** 2)",
    "a mean with a name": "let mu[m] = mean[n](x[m, n])\ny[m] = sum[n](square(x[m, n] - mu[m]))",
    "of a computed value": "let e[m, n] = exp(x[m, n])\ny[m] = var[n](e[m, n])",
    "a covariance": "y[m] = sum[n]((x[m, n] - mean[n](x[m, n])) * (z[m, n] - mean[n](z[m, n])))",
    "as long as the data says": "let t[m, n] = x[m, n] for n < len[m]\ny[m] = var[n](t[m, n])",
    "of a triangle": "let t[m, n] = x[m, n] for n <= m\ny[m] = var[n](t[m, n])",
    "of what a mask keeps": "let t[m, n] = x[m, n] for keep[m, n]\ny[m] = var[n](t[m, n])",
}
NONE = {
    "another divisor": "y[m] = sum[n]((x[m, n] - sum[n](x[m, n]) / (N + 1)) ** 2)",
    "another value": "y[m] = sum[n]((x[m, n] - mean[n](z[m, n])) ** 2)",
    "another domain": "let t[m, n] = x[m, n] for n < len[m]\ny[m] = sum[n]((x[m, n] - mean[n](t[m, n])) ** 2)",
    "a cube": "y[m] = sum[n]((x[m, n] - mean[n](x[m, n])) ** 3)",
    "an absolute difference": "y[m] = sum[n](abs(x[m, n] - mean[n](x[m, n])))",
    "two signs": "y[m] = sum[n]((x[m, n] - mean[n](x[m, n])) * (mean[n](z[m, n]) - z[m, n]))",
    "a rounded mean": "y[m] = sum[n]((x[m, n] - bf16(mean[n](x[m, n]))) ** 2)",
    "a difference from a maximum": "y[m] = sum[n]((x[m, n] - (max[n](x[m, n]) else 0)) ** 2)",
    "a sum of squares": "y[m] = sum[n](x[m, n] ** 2)",
}


def sweeps(found) -> int:
    """Loops over n in the variant that streams."""
    program = found.variants[-1].program
    return sum(isinstance(s, Loop) for s in statements(program.body))


def moments(found) -> list:
    folds = [n for n in found.graph.nodes if isinstance(n, Fold)]
    return [m for m in (find_moment(found.graph, f) for f in folds) if m is not None]


@pytest.mark.parametrize("name", FOUND)
def test_a_sum_about_means_takes_one_sweep(plan, name: str):
    found = plan(OP.format(body=FOUND[name]))
    assert len(moments(found)) == 1
    assert sweeps(found) == 1
    assert any("by Chan's law" in n for n in found.variants[-1].program.notes)


@pytest.mark.parametrize("name", NONE)
def test_other_sums_take_their_sweeps(plan, name: str):
    found = plan(OP.format(body=NONE[name]))
    assert moments(found) == []
    assert sweeps(found) == (1 if name == "a sum of squares" else 2)


def test_a_norm_reads_its_rows_twice(plan):
    found = plan(
        "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = layernorm[n](x[m, n], 1e-5) } }\n"
    )
    assert sweeps(found) == 2


def test_a_mean_that_only_the_law_needs_is_not_computed(plan):
    program = plan(OP.format(body=FOUND["a mean with a name"])).variants[-1].program
    assert "mu" not in {v.name for v in program.vars}


def test_a_resident_row_is_walked_twice_where_it_lies(plan):
    program = plan(OP.format(body=FOUND["a variance"])).variants[0].program
    assert not any(isinstance(s, Loop) for s in statements(program.body))
    assert program.notes == ()


def test_groups_of_two_axes_stream_together(plan):
    found = plan(
        "op f[N, C, S](x: f32[N, C, S]) -> y: f32[N] { kernel k { y[n] = var[c, s](x[n, c, s]) } }\n"
    )
    assert sweeps(found) == 2  # one loop in another


COLUMNS = "op f[M, N](x: f32[M, N]) -> y: f32[N] {{ kernel k {{ {} }} }}\n"


def test_one_point_a_step_and_lane_is_divided_by_scalars(plan):
    found = plan(COLUMNS.format("y[n] = var[m](x[m, n])"))
    assert len(moments(found)) == 1
    assert sweeps(found) == 1
    program = found.variants[-1].program
    assert [v.name for v in program.vars if v.name.endswith("_steps")]
    divided = {v.name: v.axes for v in program.vars if "inverse" in v.name}
    assert set(divided.values()) == {()}


def test_where_lanes_differ_by_more_than_a_step_columns_take_two_sweeps(plan):
    body = "let t[m, n] = x[m, n] for m <= n\ny[n] = var[m](t[m, n])"
    assert sweeps(plan(COLUMNS.format(body))) == 2


def test_a_covariance_of_values_that_need_the_stream_waits(plan):
    found = plan(
        OP.format(
            body="let p[m, n] = abs(x[m, n] - (max[n](x[m, n]) else 0))\n"
            "y[m] = sum[n]((p[m, n] - mean[n](p[m, n])) * (z[m, n] - mean[n](z[m, n])))"
        )
    )
    assert sweeps(found) == 3


SCORES = """op f[M, N, D](q: bf16[M, D], k: bf16[N, D]) -> y: f32[M] {
  kernel k {
    s[i, j] = sum[d](q[i, d] * k[j, d])
    y[i] = var[j](s[i, j])
  }
}
"""


def test_a_stream_in_parts_is_joined_by_the_same_law(plan):
    split = plan(SCORES).variants[-1].split
    assert split is not None
    (loop,) = [s for s in split.partial.body if isinstance(s, Loop)]
    (about,) = [c for c in loop.carried if c.sums is not None]
    names = {c.var.name for c in loop.carried}
    assert {*about.sums, about.count} < names
    assert len(names) == 3
    assert len(split.parts) == 3
