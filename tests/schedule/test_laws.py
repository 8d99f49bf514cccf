"""Which sums may run beside a running extreme, and what the factor gives at the edges of its states."""

from __future__ import annotations

import math

import pytest

from opspec.ir.values import Binary, Literal, Read, Unary, Value
from opspec.schedule.graph import Fold
from opspec.schedule.laws import NEW, OLD, Law, find_law

OP = """op f[M, N](x: f32[M, N], u: f32[M, N], w: f32[N]) -> y: f32[M] {{
  kernel k {{
    m[i] = {monoid}[n](x[i, n])
    y[i] = sum[n]({body})
  }}
}}
"""

ACCEPTED = {
    "softmax": ("max", "exp(x[i, n] - m[i])"),
    "base four": ("max", "exp(2 * (x[i, n] - m[i]))"),
    "weighted": ("max", "u[i, n] * exp(x[i, n] - m[i])"),
    "weighted twice, on both sides": ("max", "w[n] * exp(x[i, n] - m[i]) * u[i, n]"),
    "divided": ("max", "exp(x[i, n] - m[i]) / (abs(w[n]) + 1)"),
    "a minimum from below": ("min", "exp(m[i] - x[i, n])"),
    "by a literal": ("max", "3 * exp(x[i, n] - m[i])"),
}
REFUSED = {
    "exp against a minimum": ("min", "exp(x[i, n] - m[i])", "overflow"),
    "linear in the state": ("max", "x[i, n] * m[i]", ""),
    "a square": ("max", "(x[i, n] - m[i]) ** 2", ""),
    "an entropy": ("max", "exp(x[i, n] - m[i]) * (x[i, n] - m[i])", ""),
    "the state grows": ("max", "exp(m[i] - x[i, n])", "overflow"),
    "through a function": ("max", "tanh(x[i, n] - m[i])", ""),
    "through a cast": ("max", "bf16(exp(x[i, n] - m[i]))", ""),
    "a constant beside it": ("max", "exp(x[i, n] - m[i]) + 1", ""),
    "another row": ("max", "exp(u[i, n] - m[i])", ""),
    "no state": ("max", "exp(x[i, n])", ""),
}


def law(plan, monoid: str, body: str) -> Law | str:
    graph = plan(OP.format(monoid=monoid, body=body)).graph
    folds = [n for n in graph.nodes if isinstance(n, Fold)]
    state = next((f for f in folds if f.monoid == monoid), None)
    if state is None:
        return "the state is not used"
    return find_law(graph, next(f for f in folds if f.monoid == "sum"), state)


def factor(value: Value, old: float, new: float) -> float:
    match value:
        case Read(name=name):
            return {OLD: old, NEW: new}[name]
        case Literal(value=number):
            return float(number)
        case Unary(op="exp", x=x):
            return math.exp(factor(x, old, new))
        case Unary(op="neg", x=x):
            return -factor(x, old, new)
        case Binary(op=op, a=a, b=b):
            left, right = factor(a, old, new), factor(b, old, new)
            return {"add": left + right, "sub": left - right, "mul": left * right}[op]
    raise AssertionError(value)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_law_is_found(plan, name: str):
    found = law(plan, *ACCEPTED[name])
    assert isinstance(found, Law), found
    assert found.at_identity_nan


@pytest.mark.parametrize("name", ACCEPTED)
@pytest.mark.parametrize("step", [0.0, 1e-3, 1.0, 50.0, 1e30, math.inf])
def test_the_factor_never_grows(plan, name: str, step: float):
    monoid, body = ACCEPTED[name]
    found = law(plan, monoid, body)
    assert isinstance(found, Law)
    for old in (-3.0, 0.0, 7.0):
        new = old + step if monoid == "max" else old - step
        assert 0.0 <= factor(found.factor, old, new) <= 1.0
    # nothing seen yet: the accumulator is dropped, not multiplied by NaN
    identity = -math.inf if monoid == "max" else math.inf
    assert factor(found.factor, identity, 0.0) == 0.0


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_factor_composes(plan, name: str):
    monoid, body = ACCEPTED[name]
    found = law(plan, monoid, body)
    assert isinstance(found, Law)
    a, b, c = (0.0, 0.5, 2.0) if monoid == "max" else (0.0, -0.5, -2.0)
    assert factor(found.factor, a, a) == 1.0
    whole = factor(found.factor, a, c)
    assert math.isclose(factor(found.factor, a, b) * factor(found.factor, b, c), whole, rel_tol=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_there_is_no_law(plan, name: str):
    monoid, body, reason = REFUSED[name]
    found = law(plan, monoid, body)
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize(
    "name", [n for n in REFUSED if n not in ("no state", "another row", "linear in the state")]
)
def test_without_a_law_the_stream_is_walked_twice(plan, name: str):
    from opspec.schedule.tile import Loop, statements

    monoid, body, _ = REFUSED[name]
    found = plan(OP.format(monoid=monoid, body=body))
    streamed = next(v for v in found.variants if v.roles.stream)
    loops = [s for s in statements(streamed.program.body) if isinstance(s, Loop)]
    assert len(loops) == 2


@pytest.mark.parametrize("name", ACCEPTED)
def test_with_a_law_it_is_walked_once(plan, name: str):
    from opspec.schedule.tile import Loop, statements

    found = plan(OP.format(monoid=ACCEPTED[name][0], body=ACCEPTED[name][1]))
    streamed = next(v for v in found.variants if v.roles.stream)
    assert len([s for s in statements(streamed.program.body) if isinstance(s, Loop)]) == 1


def test_a_linear_state_leaves_the_sum(plan):
    found = plan(OP.format(monoid="max", body="x[i, n] * m[i]"))
    assert [(r.rule, r.statement) for r in found.rewrites] == [("pull", "y")]
