"""Sums about the extreme of several streams: each about that of its own, so that no stream is walked twice."""

from __future__ import annotations

import pytest

from opspec.schedule.graph import Fold
from opspec.schedule.tile import Loop, Write, statements

TWO = """op f[M, I, T](a: f32[M, I], s: f32[M, T], v: f32[I], u: f32[T]) -> y: f32[M] {{
  require I >= 1, T >= 1
  kernel k {{
    m[r] = {joint}
    l[r] = sum[i](exp(a[r, i] - m[r])) + sum[t](exp(s[r, t] - m[r]))
    n[r] = sum[i]({body} * v[i]) + sum[t](exp(s[r, t] - m[r]) * u[t])
    y[r] = n[r] / l[r]
  }}
}}
"""
MAX = "max(max[i](a[r, i]), max[t](s[r, t]))"
BODY = "exp(a[r, i] - m[r])"
PREFIX = """op f[B, S, T, D](q: bf16[B, D], kp: bf16[S, D], k: bf16[B, T, D]) -> o: f32[B, D] {
  require S >= 1, T >= 1, D >= 1
  kernel k {
    a[b, i] = sum[d](q[b, d] * kp[i, d])
    s[b, t] = sum[d](q[b, d] * k[b, t, d])
    m[b] = max(max[i](a[b, i]), max[t](s[b, t]))
    l[b] = sum[i](exp(a[b, i] - m[b])) + sum[t](exp(s[b, t] - m[b]))
    n[b, d] = sum[i] using bf16 (exp(a[b, i] - m[b]) * kp[i, d])
    w[b, d] = sum[t] using bf16 (exp(s[b, t] - m[b]) * k[b, t, d])
    o[b, d] = (n[b, d] + w[b, d]) / l[b]
  }
}
workload typical for f { B = 32, S = 8192, T = 512, D = 128 }
"""


def rebased(found) -> list[str]:
    return [r.statement for r in found.rewrites if r.rule == "rebase"]


def loops(found) -> list[Loop]:
    return [s for s in statements(found.variants[-1].program.body) if isinstance(s, Loop)]


def test_each_stream_is_walked_once(plan):
    found = plan(TWO.format(joint=MAX, body=BODY))
    assert sorted(rebased(found)) == ["l", "n"]
    assert sorted((x.axis, x.sweeps) for x in loops(found)) == [("i", 1), ("t", 1)]
    assert all(any(c.state is not None for c in x.carried) for x in loops(found))


def test_an_exponential_that_several_sums_take_is_one(plan):
    found = plan(TWO.format(joint=MAX, body=BODY))
    sums = [n for n in found.graph.nodes if isinstance(n, Fold) and n.monoid == "sum"]
    read = [{dep for dep in found.graph.deps(s) if dep.endswith(".e")} for s in sums]
    assert len(sums) == 4
    assert all(len(names) == 1 for names in read)
    assert len(set.union(*read)) == 2


@pytest.mark.parametrize(
    ("joint", "body"),
    [
        ("max[i](a[r, i])", BODY),
        (MAX.replace("max(", "min(", 1), BODY),
        (MAX.replace("max[t](s[r, t])", "u[0]"), BODY),
        (MAX.replace("max[i](a[r, i])", "max[i | a[r, i] > 0] (a[r, i]) else -inf"), BODY),
    ],
)
def test_what_is_no_extreme_of_whole_streams_stays(plan, joint, body):
    assert rebased(plan(TWO.format(joint=joint, body=body))) == []


def test_a_sum_without_a_law_stays(plan):
    found = plan(TWO.format(joint=MAX, body="a[r, i] * m[r]"))
    assert [n.name for n in found.graph.nodes if n.name.endswith(".own")] == [
        "n.sum.2.own", "l.sum.1.own", "l.sum.2.own",
    ]  # fmt: skip


def test_streams_apart_are_cut_together(plan):
    split = plan(PREFIX).variants[-1].split
    assert split is not None
    assert {split.axis, *(axis for axis, _ in split.beside)} == {"i", "t"}
    assert split.partial.sizes == split.sizes
    assert len(split.sizes) == 3
    cut = [s for s in split.partial.body if isinstance(s, Loop)]
    assert len(cut) == 2
    assert len([s for s in split.partial.body if isinstance(s, Write)]) == len(split.parts) == 6
    assert not any(isinstance(s, Loop) for s in statements(split.merge.body))


def test_plain_sums_over_streams_of_their_own_are_not_cut(plan):
    text = (
        "op f[M, N, K, R](x: bf16[M, K], w: bf16[K, N], t: bf16[M, R], b: bf16[R, N]) -> y: f32[M, N] {\n"
        "  kernel k { y[m, n] = sum[k](x[m, k] * w[k, n]) + sum[r](t[m, r] * b[r, n]) }\n}\n"
    )
    assert plan(text).variants[-1].split is None
