"""Sums that are taken apart so that one sweep is enough, and those that are not."""

from __future__ import annotations

import pytest

from opspec.ir.values import Unary, walk
from opspec.schedule.graph import Point
from opspec.schedule.tile import Loop, statements

OP = """op f[M, N](x: f32[M, N], z: f32[M, N], len: i32[M]) -> y: f32[M] {{
  assume len[m] <= N
  kernel k {{
    {body}
  }}
}}
"""
FOUND = {
    "a divergence": "let a[m, n] = log_softmax[n](x[m, n])\nlet b[m, n] = log_softmax[n](z[m, n])\n"
    "y[m] = sum[n](exp(a[m, n]) * (a[m, n] - b[m, n]))",
    "an entropy": "let a[m, n] = log_softmax[n](x[m, n])\ny[m] = -sum[n](exp(a[m, n]) * a[m, n])",
    "a cross-entropy of two rows": "let a[m, n] = log_softmax[n](x[m, n])\n"
    "let b[m, n] = log_softmax[n](z[m, n])\ny[m] = sum[n](exp(a[m, n]) * b[m, n])",
    "twice and half": "let a[m, n] = log_softmax[n](x[m, n])\nlet b[m, n] = log_softmax[n](z[m, n])\n"
    "y[m] = sum[n](exp(a[m, n]) * (2 * a[m, n] - 0.5 * b[m, n]))",
    "as long as the data says": "let t[m, n] = x[m, n] for n < len[m]\n"
    "let a[m, n] = log_softmax[n](t[m, n])\ny[m] = -sum[n](exp(a[m, n]) * a[m, n])",
}
NONE = {
    "a square": "let a[m, n] = log_softmax[n](x[m, n])\ny[m] = sum[n](exp(a[m, n]) * a[m, n] ** 2)",
    "a product": "let a[m, n] = log_softmax[n](x[m, n])\nlet b[m, n] = log_softmax[n](z[m, n])\n"
    "y[m] = sum[n](exp(a[m, n]) * a[m, n] * b[m, n])",
    "no maximum of the other": "let a[m, n] = log_softmax[n](x[m, n])\n"
    "y[m] = sum[n](exp(a[m, n]) * (a[m, n] - z[m, n]))",
    "a rounded value": "let a[m, n] = log_softmax[n](x[m, n])\ny[m] = sum[n](exp(a[m, n]) * bf16(a[m, n]))",
    "no weights": "let a[m, n] = log_softmax[n](x[m, n])\ny[m] = sum[n](a[m, n])",
}


def sweeps(found) -> int:
    """Loops over n in the variant that streams."""
    program = found.variants[-1].program
    return sum(isinstance(s, Loop) for s in statements(program.body))


@pytest.mark.parametrize("name", FOUND)
def test_one_sweep_is_enough(plan, name: str):
    found = plan(OP.format(body=FOUND[name]))
    assert [a.rule for a in found.rewrites].count("expand") == 1
    assert sweeps(found) == 1
    assert any("moved by what its maxima move" in n for n in found.variants[-1].program.notes)


@pytest.mark.parametrize("name", NONE)
def test_what_is_not_linear_in_distances_from_maxima_stays(plan, name: str):
    found = plan(OP.format(body=NONE[name]))
    assert "expand" not in [a.rule for a in found.rewrites]
    assert sweeps(found) > 1


def exponentials(found, name: str) -> list[str]:
    """Those of the value that is left behind the stream."""
    node = found.graph.by_name[name]
    return [str(v.op) for v in walk(node.value) if isinstance(v, Unary) and v.op in ("exp", "exp2")]


def test_the_order_of_indices_does_not_keep_a_maximum_from_itself(plan):
    text = (
        "op f[E, B, V](x: f32[E, B, V]) -> y: f32[B] {\n  require E >= 1\n  kernel k {\n"
        "    a[e, b, v] = log_softmax[v](x[e, b, v])\n    y[b] = mean[e](sum[v](exp(a[e, b, v]) * a[e, b, v]))\n  }\n}\n"
    )
    found = plan(text)
    left = [
        n.name for n in found.graph.nodes if isinstance(n, Point) and f"{n.name}.apart" in found.graph.by_name
    ]
    assert left
    assert not any(exponentials(found, name) for name in left)


def test_what_is_left_of_an_exponential_stays_one(plan):
    """``exp(m) * exp(-z)`` overflows where ``exp(m - z)`` is small."""
    text = (
        "op f[M, N](x: f32[M, N], z: f32[M]) -> y: f32[M], s: f32[M] {\n  require N >= 1\n  kernel k {\n"
        "    m[i] = max[n](x[i, n])\n    s[i] = sum[n](exp(x[i, n] - m[i]))\n"
        "    y[i] = sum[n](exp(x[i, n] - z[i]) * (x[i, n] - log(s[i])))\n  }\n}\n"
    )
    found = plan(text)
    (name,) = [
        n.name for n in found.graph.nodes if isinstance(n, Point) and f"{n.name}.apart" in found.graph.by_name
    ]
    node = found.graph.by_name[name]
    inner = {v.x for v in walk(node.value) if isinstance(v, Unary) and v.op == "exp"}
    assert len(inner) == 1
    assert {type(x).__name__ for x in inner} == {"Binary"}
