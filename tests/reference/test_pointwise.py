"""The radius covers f32: random expressions, computed in f32 by numpy, stay within it."""

import math

import numpy as np
import pytest

from opspec.ir.dtypes import BF16, F16, F32, I8
from opspec.reference.bounded import Bounded, known
from opspec.reference.casts import cast, written
from opspec.reference.compare import compare
from opspec.reference.evaluate import Result, evaluate
from opspec.reference.pointwise import binary, select, unary
from opspec.reference.pointwise import compare as compared
from opspec.reference.rounding import round_float
from tests.reference.building import apply, define, number, op, over, read, tensor
from tests.reference.building import cast as cast_node

INF, NAN = np.inf, np.nan

UNARY = {
    "neg": np.negative, "abs": np.abs, "round": np.rint, "floor": np.floor, "ceil": np.ceil, "exp": np.exp,
    "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x), "reciprocal": lambda x: np.float32(1) / x,
    "erf": np.vectorize(math.erf, otypes=[np.float32]),
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
COMPARE = {"lt": np.less, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}


def random_tree(rng: np.random.Generator, depth: int):
    """An expression of the IR and the function that computes it in f32."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.2:
            value = float(np.float32(rng.choice([0.0, 1.0, -1.5, 3.0, 0.1])))
            return number(value), lambda env: np.float32(value)
        name = str(rng.choice(["a", "b"]))
        return read(name, "n"), lambda env: env[name]
    kind = rng.random()
    x, f = random_tree(rng, depth - 1)
    if kind < 0.4:
        name = str(rng.choice(list(UNARY)))
        return apply(name, x), lambda env: np.float32(UNARY[name](f(env)))
    y, g = random_tree(rng, depth - 1)
    if kind < 0.85:
        name = str(rng.choice(list(BINARY)))
        return apply(name, x, y), lambda env: np.float32(BINARY[name](f(env), g(env)))
    if kind < 0.9:
        dtype = (BF16, F16)[int(rng.integers(2))]
        rounded = lambda env: np.float32(round_float(dtype.name, np.float64(f(env))))  # noqa: E731
        return cast_node(dtype, x), rounded
    z, h = random_tree(rng, depth - 1)
    name = str(rng.choice(list(COMPARE)))
    return (
        apply("where", apply(name, x, y), y, z),
        lambda env: np.where(COMPARE[name](f(env), g(env)), g(env), h(env)),
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions_in_f32_stay_within_the_radius(seed):
    rng = np.random.default_rng(seed)
    special = np.array([0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 1e-3, 88.0, 1e-40], dtype=np.float32)
    decided = []
    for _ in range(40):
        value, compute = random_tree(rng, int(rng.integers(1, 5)))
        example = op(
            [tensor("a", F32, "N"), tensor("b", F32, "N"), tensor("y", F32, "N", role="out")],
            [define("y", [over("n", "N")], value, to="y")],
            dims="N",
        )
        env = {
            k: np.concatenate([rng.permutation(special), np.float32(rng.standard_normal(60) * scale)])
            for k, scale in (("a", 1.0), ("b", 10.0))
        }
        got = evaluate(example, {k: v.astype(np.float64) for k, v in env.items()}, {}, {"N": 70})["y"]
        with np.errstate(all="ignore"):
            actual = np.broadcast_to(compute(env), (70,)).astype(np.float64)
        found = compare(got, actual, F32)
        assert found is None, f"{found}\n{value}"
        decided.append(got.decided)
    assert np.mean(decided) > 0.8


def wide(value: float, error: float) -> Bounded:
    return Bounded(np.array([value]), np.array([error]))


def test_errors_grow_through_derivatives():
    assert unary("exp", wide(2.0, 1e-3)).error[0] == pytest.approx(math.exp(2) * 1e-3, rel=1e-2)
    assert unary("reciprocal", wide(4.0, 1e-3)).error[0] == pytest.approx(1e-3 / 16, rel=1e-2)
    assert unary("log", wide(4.0, 1e-3)).error[0] == pytest.approx(1e-3 / 4, rel=1e-2)
    assert binary("mul", wide(3.0, 1e-3), wide(5.0, 2e-3)).error[0] == pytest.approx(11e-3, rel=1e-2)
    assert binary("div", wide(3.0, 1e-3), wide(5.0, 2e-3)).error[0] == pytest.approx(
        0.2e-3 + 0.24e-3, rel=1e-2
    )


def test_what_an_interval_crosses_is_not_decided():
    assert unary("reciprocal", wide(1e-6, 1e-3)).error[0] == INF
    assert unary("log", wide(1e-6, 1e-3)).error[0] == INF
    assert unary("floor", wide(2.9999, 1e-3)).error[0] == 1
    assert unary("floor", wide(2.9, 1e-3)).error[0] == 0
    assert compared("lt", wide(1.0, 1e-3), wide(1.0005, 0.0)).error[0] == 1
    assert compared("lt", wide(1.0, 1e-3), wide(1.1, 0.0)).error[0] == 0
    open_ = compared("lt", wide(1.0, 1e-3), wide(1.0005, 0.0))
    assert select(open_, known(np.array([5.0])), known(np.array([7.5]))).error[0] == 2.5


def test_exact_operations_have_no_radius():
    """What f32 computes exactly is not excused: a tie after it is decided."""
    half = binary("div", known(np.array([0.25])), known(np.array(0.5)), precise=True)
    assert half.error[0] == 0
    assert binary("div", known(np.array([0.25])), known(np.array(0.5))).error[0] > 0
    assert binary("mul", known(np.array([3.0])), known(np.array(5.0))).error == 0
    assert binary("mul", known(np.array([0.1])), known(np.array(0.1))).error > 0


def test_infinities_are_exact_and_nan_too():
    minus = known(np.array([-INF]))
    assert unary("exp", minus).value[0] == 0
    assert unary("exp", minus).error[0] == 0
    difference = binary("sub", minus, minus)
    assert np.isnan(difference.value[0])
    assert difference.error[0] == 0
    # zero times infinity is NaN, but a product that is only near zero may be infinite
    assert binary("mul", known(np.array([0.0])), minus).error[0] == 0
    assert binary("mul", wide(0.0, 1e-9), minus).error[0] == INF


def test_a_quantised_code_is_free_only_at_a_tie():
    assert cast(wide(2.5, 1e-6), I8, "sat").error[0] == 1
    assert cast(wide(2.4, 1e-6), I8, "sat").error[0] == 0
    assert cast(wide(127.5, 1e-6), I8, "sat").error[0] == 0
    assert cast(wide(NAN, 0.0), I8, "sat").value[0] == 0
    assert cast(wide(300.0, 0.0), I8, "wrap").value[0] == 44


def test_an_output_may_be_one_unit_off():
    one = written(known(np.array([1.0])), BF16)
    assert one.error[0] == 2.0**-7
    result = Result(one.value, one.error)
    assert compare(result, np.array([1 + 2.0**-7]), BF16) is None
    assert compare(result, np.array([1 + 2.0**-6]), BF16) is not None
