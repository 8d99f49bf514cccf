"""Single elements of values that are never stored."""

from __future__ import annotations

import pytest

from opspec.diagnostics import Failure
from opspec.schedule.graph import Fold

TEXT = (
    "op f[M, N, K](a: bf16[M, K], b: bf16[K, N], at: i32[M]) -> y: f32[M] {{\n  require N >= 1\n  kernel k {{\n"
    "    z[m, n] = sum[k](a[m, k] * b[k, n])\n    y[m] = max[n](z[m, n]) - {read}\n  }}\n}}\n"
)


def rules(found) -> list[str]:
    return [r.rule for r in found.rewrites]


@pytest.mark.parametrize("read", ["z[m, at[m]]", "z[m, 0]", "z[m, N - 1]"])
def test_an_element_of_a_row_is_selected_beside_its_other_uses(plan, read):
    found = plan(TEXT.format(read=read))
    assert rules(found) == ["select"]
    sums = [
        n for n in found.graph.nodes if isinstance(n, Fold) and n.define.kind == "temp" and n.monoid == "sum"
    ]
    assert [len(n.constraints) for n in sums] == [2]
    assert all(v.roles.products for v in found.variants)


def test_a_diagonal_is_an_element_of_each_row(plan):
    found = plan(
        "op f[N, K](a: bf16[N, K], b: bf16[N, K]) -> y: f32[N] {\n  kernel k {\n"
        "    z[i, j] = sum[k](a[i, k] * b[j, k])\n    y[i] = logsumexp[j](z[i, j]) - z[i, i]\n  }\n}\n"
    )
    assert "select" in rules(found)
    assert all(v.roles.products for v in found.variants)


def test_equal_reads_are_selected_once(plan):
    found = plan(TEXT.format(read="z[m, at[m]] * z[m, at[m]]"))
    assert rules(found) == ["select"]


def test_a_row_of_elements_is_not(plan):
    with pytest.raises(Failure) as caught:
        plan(
            "op f[M, N](x: f32[M, N]) -> y: f32[M, N] {\n  kernel k {\n    e[m, n] = exp(x[m, n])\n"
            "    y[m, n] = e[m, N - 1 - n]\n  }\n}\n"
        )
    assert [d.code.code for d in caught.value.diagnostics] == ["OP641"]


def test_a_value_that_is_read_at_its_own_indices_is_left_alone(plan):
    assert rules(plan(TEXT.format(read="1"))) == []
