"""A product inside a stream of its own columns: how it is found, folded and walked in parts."""

from __future__ import annotations

import pytest

from opspec.ir.values import Unary, walk
from opspec.schedule.nested import Nested, nested_product
from opspec.schedule.tile import Collapse, Loop, statements, values_of

LOGITS = """op f[M, V, K](x: bf16[M, K], w: bf16[V, K]{more}) -> l: f32[M] {{
  kernel k {{
    z: f32[m, v] = sum[k](x[m, k] * w[v, k])
    l[m] = {what}
  }}
}}
"""


def streamed(plan, what: str, more: str = ""):
    return plan(LOGITS.format(what=what, more=more)).variants[-1]


@pytest.mark.parametrize(
    ("what", "more"),
    [("logsumexp[v](z[m, v])", ""), ("max[v](z[m, v] + b[v])", ", b: f32[V]"), ("z[m, i[m]]", ", i: i64[M]")],
)
def test_a_product_in_a_stream_of_its_columns_is_found(plan, what: str, more: str):
    found = streamed(plan, what, more)
    assert nested_product(found.program) == Nested(rows="m", stream="v", k="k")
    assert found.split is not None
    assert nested_product(found.split.partial) == Nested(rows="m", stream="v", k="k")


def test_a_product_that_is_stored_is_none(plan):
    text = "op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] {\n  kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) }\n}\n"
    assert nested_product(plan(text).variants[-1].program) is None


def test_its_exponentials_are_in_base_2(plan):
    program = streamed(plan, "logsumexp[v](z[m, v])").program
    loop = next(s for s in program.body if isinstance(s, Loop))
    powers = [
        v.op
        for s in statements((loop,))
        for value in values_of(s)
        for v in walk(value)
        if isinstance(v, Unary) and v.op.startswith("exp")
    ]
    assert powers == ["exp2", "exp2"]
    assert any(isinstance(s, Collapse) and isinstance(s.value, Unary) for s in loop.body)


def test_the_join_of_its_parts_walks_none_of_its_loops(plan):
    split = streamed(plan, "logsumexp[v](z[m, v])").split
    assert split is not None
    assert {a.name for a in split.merge.axes} == {"m", "part"}
