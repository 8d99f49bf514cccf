"""Values of the reference, against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch

from opspec.ir.dtypes import BF16, BOOL, F8E4M3, F16, F32, I4, I8, I32
from opspec.ir.integers import Datum, Int, dim, floor_div, index, mod
from opspec.reference.compare import compare
from opspec.reference.evaluate import EmptyDomain, evaluate
from tests.reference.building import (
    apply,
    as_float,
    attention,
    cast,
    define,
    matmul,
    norm,
    number,
    op,
    over,
    read,
    reduce,
    scan,
    softmax,
    tensor,
    whole,
)

INF, NAN = np.inf, np.nan


def test_a_row_without_keys_is_zero_and_its_lse_minus_infinity():
    # keep[i, j] as data: the domain is j < keep[i]
    j_in = Int.of(Datum("keep", (index("i"),))) - index("j") - 1
    rows, keys = [over("i", "M")], [over("j", "N")]
    s = read("s", "i", "j")
    masked = op(
        [
            tensor("s", F32, "M", "N"), tensor("keep", I32, "M"), tensor("v", F32, "N"),
            tensor("o", F32, "M", role="out"), tensor("lse", F32, "M", role="out"),
        ],
        [
            define("top", rows, reduce("max", keys, s, where=[j_in], empty=number(-INF))),
            define("e", rows + keys, apply("exp", apply("sub", s, read("top", "i"))), where=[j_in]),
            define("total", rows, reduce("sum", keys, read("e", "i", "j"), where=[j_in])),
            define("p", rows + keys, apply("div", read("e", "i", "j"), read("total", "i")), where=[j_in]),
            define("o", rows, reduce("sum", keys, apply("mul", read("p", "i", "j"), read("v", "j")), where=[j_in]), to="o"),
            define("lse", rows, apply("add", read("top", "i"), apply("log", read("total", "i"))), to="lse"),
        ],
        dims="M N",
    )  # fmt: skip
    inputs = {
        "s": np.array([[0, math.log(2), math.log(4)], [0, 0, 0]]),
        "keep": np.array([3, 0]),
        "v": np.array([1.0, 2.0, 4.0]),
    }
    got = evaluate(masked, inputs, {}, {"M": 2, "N": 3})
    np.testing.assert_allclose(got["o"].value, [3, 0], rtol=1e-12)
    np.testing.assert_allclose(got["lse"].value, [math.log(7), -INF], rtol=1e-12)
    assert got["lse"].error[1] == 0
    assert got["lse"].error[0] < 1e-5


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_empty_partial_states_merge_to_nothing(order):
    """Merge of (o, lse): weights are exp(lse - top), an empty state weighs nothing."""
    r, c = [over("r", "R")], [over("c", "C")]
    lse = read("lse", "r", "c")
    present = apply("gt", lse, number(-INF))
    weight = apply("where", present, apply("exp", apply("sub", lse, read("top", "r"))), number(0))
    total = apply("div", read("mix", "r"), read("total", "r"))
    merge = op(
        [
            tensor("o", F16, "R", "C"), tensor("lse", F32, "R", "C"),
            tensor("out", F16, "R", role="out"), tensor("merged", F32, "R", role="out"),
        ],
        [
            define("top", r, reduce("max", c, lse)),
            define("w", r + c, weight),
            define("total", r, reduce("sum", c, read("w", "r", "c"))),
            define("mix", r, reduce("sum", c, apply("mul", read("w", "r", "c"), read("o", "r", "c")))),
            define("out", r, apply("where", apply("gt", read("total", "r"), number(0)), total, number(0)), to="out"),
            define("merged", r, apply("add", read("top", "r"), apply("log", read("total", "r"))), to="merged"),
        ],
        dims="R C",
    )  # fmt: skip
    o, l = np.array([2.0, 0.0, 6.0]), np.array([math.log(3), -INF, 0.0])
    got = evaluate(
        merge,
        {"o": np.array([o[list(order)], [0, 0, 0]]), "lse": np.array([l[list(order)], [-INF] * 3])},
        {},
        {"R": 2, "C": 3},
    )
    np.testing.assert_allclose(got["out"].value, [3, 0], rtol=1e-12)
    np.testing.assert_allclose(got["merged"].value, [math.log(4), -INF], rtol=1e-12)
    assert np.isfinite(got["out"].error).all()


def test_squares_do_not_overflow_f16():
    got = evaluate(norm(F16, F16), {"x": np.full((1, 8), 300.0)}, {}, {"M": 1, "N": 8})["y"]
    np.testing.assert_allclose(got.value, np.ones((1, 8)), rtol=1e-6)
    assert compare(got, torch.ones(1, 8, dtype=torch.float16), F16) is None
    assert compare(got, torch.zeros(1, 8, dtype=torch.float16), F16).reason == "every element is zero"


def test_variance_of_a_large_mean():
    row, both = [over("m", "M")], [over("m", "M"), over("n", "N")]
    deviation = apply("sub", read("x", "m", "n"), read("mean", "m"))
    layernorm = op(
        [tensor("x", F32, "M", "N"), tensor("y", F32, "M", "N", role="out"), tensor("var", F32, "M", role="out")],
        [
            define("sum1", row, reduce("sum", [over("n", "N")], read("x", "m", "n"))),
            define("mean", row, apply("div", read("sum1", "m"), as_float(dim("N")))),
            define("d", both, deviation),
            define("sum2", row, reduce("sum", [over("n", "N")], apply("mul", read("d", "m", "n"), read("d", "m", "n")))),
            define("var", row, apply("div", read("sum2", "m"), as_float(dim("N"))), to="var"),
            define("y", both, apply("mul", read("d", "m", "n"), apply("rsqrt", apply("add", read("var", "m"), number(1e-5)))), to="y"),
        ],
        dims="M N",
    )  # fmt: skip
    got = evaluate(layernorm, {"x": np.array([[10000.0, 10001, 10002, 10003]])}, {}, {"M": 1, "N": 4})
    assert got["var"].value[0] == 1.25
    np.testing.assert_allclose(got["y"].value, [[-1.341635, -0.447212, 0.447212, 1.341635]], atol=1e-6)
    assert got["y"].error.max() < 0.05
    assert compare(got["var"], np.array([0.0]), F32) is not None
    assert compare(got["var"], np.array([8.0]), F32) is not None


def test_a_long_sum_is_rounded_once():
    total = op(
        [tensor("x", BF16, "K"), tensor("y", BF16, role="out")],
        [define("y", [], reduce("sum", [over("k", "K")], read("x", "k")), to="y")],
        dims="K",
    )
    got = evaluate(total, {"x": torch.ones(512, dtype=torch.bfloat16)}, {}, {"K": 512})["y"]
    assert got.value == 512
    assert compare(got, torch.tensor(256.0, dtype=torch.bfloat16), BF16) is not None
    assert compare(got, torch.tensor(512.0, dtype=torch.bfloat16), BF16) is None


def test_casts_to_fp8_saturate_or_not_as_declared():
    x = np.array([448, 464, 465, -1000, INF, NAN, 2.0**-9, 2.0**-10, 1.0625, 1.1875, 1.0625 + 2.0**-12])
    for mode, expected in (
        ("sat", [448, 448, 448, -448, 448, NAN, 2.0**-9, 0, 1, 1.25, 1.125]),
        ("nonsat", [448, 448, NAN, NAN, NAN, NAN, 2.0**-9, 0, 1, 1.25, 1.125]),
    ):
        quantise = op(
            [tensor("x", F32, "N"), tensor("y", F8E4M3, "N", role="out")],
            [define("y", [over("n", "N")], cast(F8E4M3, read("x", "n"), mode), to="y")],
            dims="N",
        )
        got = evaluate(quantise, {"x": x}, {}, {"N": x.size})["y"]
        np.testing.assert_array_equal(got.value, expected)
        assert not got.error.any()


def quantise() -> object:
    value = apply("round", apply("div", read("x", "n"), number(0.5)))
    clamped = apply("max", apply("min", value, number(127)), number(-128))
    return op(
        [tensor("x", F32, "N"), tensor("q", I8, "N", role="out")],
        [define("q", [over("n", "N")], cast(I8, clamped, "sat"), to="q")],
        dims="N",
    )


def test_int8_ties_go_to_even_then_clamp():
    x = np.array([0.25, 0.75, 1.25, -0.25, -0.75, 63.75, -64.25, 0.6])
    got = evaluate(quantise(), {"x": x}, {}, {"N": 8})["q"]
    np.testing.assert_array_equal(got.value, [0, 2, 2, 0, -2, 127, -128, 1])
    assert not got.error.any()
    away = torch.tensor([1, 2, 3, -1, -2, 127, -128, 1], dtype=torch.int8)
    assert compare(got, away, I8) is not None


def test_quantised_outputs_move_only_at_a_tie():
    """A product that is inexact may fall either side of a tie, and nowhere else."""
    step = op(
        [tensor("x", F32, "N"), tensor("s", F32), tensor("q", I8, "N", role="out")],
        [
            define(
                "q",
                [over("n", "N")],
                cast(I8, apply("mul", read("x", "n"), apply("exp", read("s"))), "sat"),
                to="q",
            )
        ],
        dims="N",
    )
    scale = np.float64(np.float32(0.3))
    x = np.array([2.5, 2.4, 3.5]) / np.exp(scale)
    got = evaluate(step, {"x": x, "s": scale}, {}, {"N": 3})["q"]
    np.testing.assert_array_equal(got.error, [1, 0, 1])
    assert got.value[1] == 2


def test_masked_lanes_hold_the_identity():
    def over_x(monoid, values):
        plain = op(
            [tensor("x", F32, "N"), tensor("y", F32, role="out")],
            [define("y", [], reduce(monoid, [over("n", "N")], read("x", "n")), to="y")],
            dims="N",
        )
        return evaluate(plain, {"x": np.array(values, dtype=float)}, {}, {"N": len(values)})["y"].value

    assert over_x("max", [-3, -1, -2, -5, -4]) == -1
    assert over_x("prod", [-3, -1, -2, -5, -4]) == -120
    assert over_x("min", [3, 1, 2]) == 1
    assert over_x("sum", []) == 0
    assert over_x("prod", []) == 1
    assert np.isnan(over_x("max", [1, NAN, 2]))
    with pytest.raises(EmptyDomain, match="max over nothing"):
        over_x("max", [])


def test_empty_extents():
    plus = op(
        [tensor("x", F32, "M", "N"), tensor("y", F32, "M", "N", role="out")],
        [define("y", [over("m", "M"), over("n", "N")], apply("add", read("x", "m", "n"), number(1)), to="y")],
        dims="M N",
    )
    assert evaluate(plus, {"x": np.zeros((0, 7))}, {}, {"M": 0, "N": 7})["y"].value.shape == (0, 7)
    empty = {"a": torch.zeros(5, 0, dtype=torch.bfloat16), "b": torch.zeros(0, 9, dtype=torch.bfloat16)}
    got = evaluate(matmul(BF16, BF16), empty, {}, {"M": 5, "N": 9, "K": 0})["c"]
    np.testing.assert_array_equal(got.value, np.zeros((5, 9)))


@pytest.mark.parametrize(("aligned", "expected"), [("bottom", [2.5, 3.0]), ("top", [1.0, 1.5])])
def test_causal_alignment(aligned, expected):
    got = evaluate(
        attention(aligned=aligned), {"s": np.zeros((2, 5)), "v": np.arange(1.0, 6)}, {}, {"L": 2, "T": 5}
    )
    np.testing.assert_allclose(got["o"].value, expected, rtol=1e-12)
    assert np.isfinite(got["o"].error).all()


def test_floor_division_of_negative_indices():
    i = index("i")
    shifted = op(
        [tensor("x", F32, "N"), tensor("y", F32, "N", role="out"), tensor("q", F32, "N", role="out")],
        [
            define("y", [over("i", "N")], read("x", mod(i - 3, dim("N"))), to="y"),
            define("q", [over("i", "N")], as_float(floor_div(i - 3, Int.of(2))), to="q"),
        ],
        dims="N",
    )
    got = evaluate(shifted, {"x": np.arange(10.0, 15)}, {}, {"N": 5})
    np.testing.assert_array_equal(got["y"].value, [12, 13, 14, 10, 11])
    np.testing.assert_array_equal(got["q"].value, [-2, -1, -1, 0, 0])


def test_reads_outside_take_their_else_and_untaken_loads_are_not_made():
    i = index("i")
    stencil = op(
        [tensor("x", F32, "N"), tensor("l", I32, "N"), tensor("y", F32, "N", role="out"), tensor("g", F32, "N", role="out")],
        [
            define("y", [over("i", "N")], read("x", i - 1, otherwise=number(7)), to="y"),
            define(
                "g",
                [over("i", "N")],
                apply("where", apply("lt", read("l", "i", dtype=I32), whole(0)), number(0), read("x", Int.of(Datum("l", (i,))))),
                to="g",
            ),
        ],
        dims="N",
    )  # fmt: skip
    got = evaluate(stencil, {"x": np.array([1.0, 2, 3]), "l": np.array([2, -100, 0])}, {}, {"N": 3})
    np.testing.assert_array_equal(got["y"].value, [7, 1, 2])
    np.testing.assert_array_equal(got["g"].value, [3, 0, 1])


def test_a_row_of_minus_infinity_is_what_ieee_gives():
    got = evaluate(softmax(), {"x": np.array([[-INF, -INF], [-INF, 0]])}, {}, {"M": 2, "N": 2})["y"]
    np.testing.assert_array_equal(got.value, [[NAN, NAN], [0, 1]])
    assert not got.error[0].any()
    assert got.error[1, 0] <= 2.0**-148
    assert compare(got, np.array([[NAN, NAN], [0, 1.0]]), F32) is None
    assert compare(got, np.array([[0, 0], [0, 1.0]]), F32) is not None


def test_arg_reductions_take_the_lowest_index_and_nan_first():
    where = op(
        [tensor("x", F32, "M", "N"), tensor("y", I32, "M", role="out")],
        [define("y", [over("m", "M")], reduce("argmax", [over("n", "N")], read("x", "m", "n")), to="y")],
        dims="M N",
    )
    got = evaluate(
        where, {"x": np.array([[1.0, 5, 5], [-INF, -INF, -INF], [1, NAN, INF]])}, {}, {"M": 3, "N": 3}
    )
    np.testing.assert_array_equal(got["y"].value, [1, 0, 1])
    assert not got["y"].error.any()


def test_scans_run_both_ways():
    running = op(
        [tensor("x", F32, "N"), tensor("y", F32, "N", role="out"), tensor("z", F32, "N", role="out")],
        [
            define("y", [over("n", "N")], scan("sum", "n", read("x", "n")), to="y"),
            define("z", [over("n", "N")], scan("max", "n", read("x", "n"), reverse=True), to="z"),
        ],
        dims="N",
    )
    got = evaluate(running, {"x": np.array([1.0, 3, 2])}, {}, {"N": 3})
    np.testing.assert_array_equal(got["y"].value, [1, 4, 6])
    np.testing.assert_array_equal(got["z"].value, [3, 3, 2])


def test_values_round_where_they_cross_kernels_and_not_inside():
    i = [over("n", "N")]
    third = apply("div", read("x", "n"), number(3))
    parts = (
        [define("t", i, third, storage=BF16)],
        [define("y", i, apply("mul", read("t", "n"), number(3)), to="y")],
    )
    tensors = [tensor("x", F32, "N"), tensor("y", F32, "N", role="out")]
    x = {"x": np.array([1.0])}
    apart = evaluate(op(tensors, *parts, dims="N"), x, {}, {"N": 1})["y"]
    together = evaluate(op(tensors, parts[0] + parts[1], dims="N"), x, {}, {"N": 1})["y"]
    assert apart.value[0] == 3 * 0.333984375
    assert abs(together.value[0] - 1) < 1e-6
    assert together.error[0] < 1e-6


def test_inout_keeps_what_is_not_written_and_later_kernels_see_the_new():
    slot = Int.of(Datum("slot", (index("b"),)))
    update = op(
        [
            tensor("cache", BF16, "S", role="inout"), tensor("slot", I32, "B"), tensor("x", F32, "B"),
            tensor("y", F32, "S", role="out"),
        ],
        [define("cache.0", [over("b", "B")], read("x", "b"), to="cache", at=[slot])],
        [define("y", [over("s", "S")], read("cache", "s"), to="y")],
        dims="S B",
    )  # fmt: skip
    inputs = {"cache": torch.arange(4.0).bfloat16(), "slot": np.array([2, 0]), "x": np.array([1 / 3, 9.0])}
    got = evaluate(update, inputs, {}, {"S": 4, "B": 2})
    np.testing.assert_array_equal(got["y"].value, [9, 1, 0.333984375, 3])
    assert got["cache"].error[1] == 0
    assert got["cache"].error[2] > 0


def test_segments_and_lengths_are_data():
    e = index("e")
    bounds = Int.of(Datum("offs", (e,))), Int.of(Datum("offs", (e + 1,)))
    grouped = op(
        [tensor("x", F32, "N"), tensor("offs", I32, dim("E") + 1), tensor("y", F32, "E", role="out"),
         tensor("z", F32, "N", role="out")],
        [
            define("y", [over("e", "E")], reduce("sum", [over("n", bounds[1], bounds[0])], read("x", "n")), to="y"),
            define("z", [over("e", "E"), over("n", bounds[1], bounds[0])], apply("mul", read("x", "n"), as_float(e)),
                   to="z", at=[index("n")]),
        ],
        dims="N E",
    )  # fmt: skip
    inputs = {"x": np.array([1.0, 2, 3, 4]), "offs": np.array([0, 1, 1, 4])}
    got = evaluate(grouped, inputs, {}, {"N": 4, "E": 3})
    np.testing.assert_array_equal(got["y"].value, [1, 0, 9])
    np.testing.assert_array_equal(got["z"].value, [0, 4, 6, 8])


def test_packed_nibbles_are_read():
    widen = op(
        [tensor("w", I4, "N"), tensor("y", F32, "N", role="out")],
        [define("y", [over("n", "N")], cast(F32, read("w", "n", dtype=I32)), to="y")],
        dims="N",
    )
    got = evaluate(widen, {"w": torch.tensor([0xE1, 0x07], dtype=torch.uint8)}, {}, {"N": 3})["y"]
    np.testing.assert_array_equal(got.value, [1, -2, 7])


def test_matrix_products_agree_with_the_dense_way(monkeypatch):
    rng = np.random.default_rng(1)
    inputs = {"a": rng.standard_normal((33, 65)), "b": rng.standard_normal((65, 34))}
    dims = {"M": 33, "N": 34, "K": 65}
    fast = evaluate(matmul(using="bf16"), inputs, {}, dims)["c"]
    monkeypatch.setattr("opspec.reference.contract.WORTHWHILE", 1 << 62)
    monkeypatch.setattr("opspec.reference.boxes.LIMIT", 1 << 10)
    slow = evaluate(matmul(using="bf16"), inputs, {}, dims)["c"]
    np.testing.assert_allclose(fast.value, slow.value, atol=1e-12)
    np.testing.assert_allclose(fast.value, inputs["a"] @ inputs["b"], atol=1e-12)
    np.testing.assert_allclose(fast.error, slow.error, rtol=1e-3)


def test_any_and_all():
    truth = op(
        [tensor("x", F32, "M", "N"), tensor("y", BOOL, "M", role="out")],
        [
            define("y", [over("m", "M")], reduce("any", [over("n", "N")], apply("gt", read("x", "m", "n"), number(2))), to="y")
        ],
        dims="M N",
    )  # fmt: skip
    got = evaluate(truth, {"x": np.array([[1.0, 3], [0, 2]])}, {}, {"M": 2, "N": 2})["y"]
    np.testing.assert_array_equal(got.value, [1, 0])
