"""Generated cases fit the op's requirements and reach the corners they promise."""

import numpy as np
import pytest
import torch

from opspec.ir.dtypes import BF16, F8E4M3, F32, I4, I8, I32, DTypeParam
from opspec.ir.integers import Datum, Int, dim, floor_div, index, mod
from opspec.ir.program import Assume, Op, Require, Workload
from opspec.reference.cases import cases
from opspec.reference.evaluate import evaluate
from opspec.reference.gathers import interval, uses
from opspec.reference.shapes import admissible
from opspec.reference.tensors import decode
from tests.reference.building import (
    apply,
    attention,
    define,
    matmul,
    number,
    op,
    over,
    read,
    reduce,
    softmax,
    tensor,
)


def datum(name: str, *at: Int) -> Int:
    return Int.of(Datum(name, at))


def paged() -> Op:
    """Keys by page: ``kv[table[b, t // P], t % P]`` for ``t < len[b]``, summed."""
    b, t = index("b"), index("t")
    page = datum("table", b, floor_div(t, dim("P")))
    return op(
        [
            tensor("kv", BF16, "S", "P"), tensor("table", I32, "B", "W"), tensor("len", I32, "B"),
            tensor("y", F32, "B", role="out"),
        ],
        [
            define(
                "y", [over("b", "B")],
                reduce("sum", [over("t", datum("len", b))], read("kv", page, mod(t, dim("P")))), to="y",
            )
        ],
        dims="B S P W",
        requires=[
            Require(op="eq", left=mod(dim("P"), Int.of(4)), right=Int.of(0), text="P % 4 == 0"),
            Require(op="ge", left=dim("P"), right=Int.of(4), text="P >= 4"),
        ],
        assumes=[
            Assume(kind="bound", tensor="len", slack=dim("P") * dim("W") - datum("len", b)),
            Assume(kind="bound", tensor="len", slack=datum("len", b) - 1),
        ],
    )  # fmt: skip


def scatter() -> Op:
    return op(
        [tensor("cache", F32, "S", role="inout"), tensor("slot", I32, "B"), tensor("x", F32, "B")],
        [define("cache.0", [over("b", "B")], read("x", "b"), to="cache", at=[datum("slot", index("b"))])],
        dims="S B",
        assumes=[Assume(kind="distinct", tensor="slot")],
    )


def loss() -> Op:
    m = index("m")
    taken = apply("eq", read("label", "m", dtype=I32), apply_scalar())
    return op(
        [tensor("x", F32, "M", "V"), tensor("label", I32, "M"), tensor("y", F32, "M", role="out")],
        [
            define(
                "y",
                [over("m", "M")],
                apply("where", taken, number(0), read("x", m, datum("label", m))),
                to="y",
            )
        ],
        dims="M V",
        scalars=[("ignore", I32, -100)],
    )


def apply_scalar():
    from opspec.ir.values import Scalar

    return Scalar(name="ignore", dtype=I32)


def test_the_same_seed_gives_the_same_cases():
    first, again = ([c.words for c in cases(softmax(), {}, 12, 3)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 12
    assert first != [c.words for c in cases(softmax(), {}, 12, 4)]


def test_shapes_reach_zero_one_and_ragged():
    seen = [dict(c.dims) for c in cases(softmax(), {}, 12, 0)]
    extents = {n for dims in seen for n in dims.values()}
    assert {0, 1} <= extents
    assert any(n % 2 and n > 1 for n in extents)
    assert any(n and n % 16 == 0 for n in extents)
    assert max(extents) > 500


def test_requirements_hold_and_every_case_can_be_evaluated():
    example = paged()
    for case in cases(example, {}, 24, 1):
        assert admissible(example, case.dims)
        lengths, table = case.inputs["len"], case.inputs["table"]
        if lengths.numel():
            assert lengths.min() >= 1
            assert lengths.max() <= case.dims["P"] * case.dims["W"]
        if table.numel():
            assert table.min() >= 0
            assert table.max() < case.dims["S"]
        got = evaluate(example, case.inputs, case.scalars, case.dims)["y"]
        assert got.value.shape == (case.dims["B"],)


def test_equalities_and_orders_between_dims_are_solved():
    example = op(
        [tensor("x", F32, "N"), tensor("y", F32, "K", role="out")],
        [define("y", [over("k", "K")], read("x", index("k") * 2), to="y")],
        dims="N K L T",
        requires=[
            Require(op="eq", left=dim("N"), right=dim("K") * 2, text="N == 2 * K"),
            Require(op="le", left=dim("L"), right=dim("T"), text="L <= T"),
            Require(op="eq", left=mod(dim("T"), dim("L")), right=Int.of(0), text="T % L == 0"),
        ],
    )
    assert all(admissible(example, c.dims) for c in cases(example, {}, 18, 0))


def test_impossible_requirements_are_said():
    example = op(
        [tensor("x", F32, "N"), tensor("y", F32, "N", role="out")],
        [define("y", [over("n", "N")], read("x", "n"), to="y")],
        dims="N",
        requires=[Require(op="gt", left=dim("N"), right=Int.of(1 << 40), text="N > 2 ** 40")],
    )
    with pytest.raises(ValueError, match="no small shape"):
        list(cases(example, {}, 3, 0))


def test_workloads_lend_their_ratios():
    long = Workload(name="long", op="op", cases=((1.0, (("M", 8192), ("N", 4096))),))
    case = next(c for c in cases(softmax(), {}, 12, 0, workloads=[long]) if "`long` scaled down" in c.words)
    assert case.dims["M"] in (case.dims["N"], 2 * case.dims["N"])
    assert case.dims["M"] * case.dims["N"] <= 1 << 14


def test_workloads_lend_their_tiles_to_few_programs():
    long = Workload(name="long", op="op", cases=((1.0, (("M", 8192), ("N", 64))),))
    case = next(
        c for c in cases(softmax(), {}, 12, 0, workloads=[long]) if "few programs of `long`" in c.words
    )
    assert case.dims == {"M": 256, "N": 64}
    small = next(
        c for c in cases(softmax(), {}, 12, 0, workloads=[long], limit=1 << 12) if "few programs" in c.words
    )
    assert small.dims == {"M": 256, "N": 16}  # the extent that is the smaller one as stated is cut first


def test_distinct_positions_differ_and_fit():
    for case in cases(scatter(), {}, 18, 0):
        slots = case.inputs["slot"]
        assert slots.unique().numel() == slots.numel()
        assert case.dims["B"] <= case.dims["S"]
        evaluate(scatter(), case.inputs, case.scalars, case.dims)


def test_labels_are_positions_or_the_ignored_value():
    found = {int(v) for c in cases(loss(), {}, 18, 0) for v in c.inputs["label"].flatten()}
    assert -100 in found
    assert max(found) > 10
    assert uses(loss())["label"].guarded
    for case in cases(loss(), {}, 6, 0):
        labels = case.inputs["label"]
        assert ((labels == -100) | ((labels >= 0) & (labels < case.dims["V"]))).all()


def test_offsets_rise_to_the_extent():
    e = index("e")
    ends = datum("offs", e + 1)
    grouped = op(
        [tensor("x", F32, "N"), tensor("offs", I32, dim("E") + 1), tensor("y", F32, "E", role="out")],
        [
            define(
                "y",
                [over("e", "E")],
                reduce("sum", [over("n", ends, datum("offs", e))], read("x", "n")),
                to="y",
            )
        ],
        dims="N E",
    )
    assert uses(grouped)["offs"].rising == dim("N")
    for case in cases(grouped, {}, 18, 0):
        offsets = case.inputs["offs"]
        assert (offsets.diff() >= 0).all()
        assert offsets[0] == 0
        assert offsets[-1] == (case.dims["N"] if case.dims["E"] else 0)


def test_contents_and_layouts_reach_the_corners():
    found = list(cases(softmax(BF16), {}, 32, 0))
    inputs = [c.inputs["x"] for c in found]
    values = torch.cat([x.float().flatten() for x in inputs])
    assert values.isnan().any()
    assert (values == -np.inf).any()
    assert (values == np.inf).any()
    assert (values[values.isfinite()].abs() ** 2 > 65504).any()
    assert any(x.numel() and (x == -np.inf).all(dim=-1).any() for x in inputs)
    assert any(x.numel() > 1 and 0 in x.stride() for x in inputs)
    assert any(x.storage_offset() > 0 for x in inputs)
    assert any(x.ndim == 2 and min(x.shape) > 1 and x.stride(0) == 1 for x in inputs)
    assert all(x.dtype == torch.bfloat16 for x in inputs)
    assert all(
        "transposed" not in c.words or not c.inputs["x"].is_contiguous() or 1 in c.inputs["x"].shape
        for c in found
    )


def test_quantised_inputs_stay_in_their_range():
    example = op(
        [
            tensor("w", I4, "M", "N"), tensor("q", I8, "M", "N"), tensor("f", F8E4M3, "M", "N"),
            tensor("y", F32, "M", "N", role="out"),
        ],
        [define("y", [over("m", "M"), over("n", "N")], read("f", "m", "n"), to="y")],
        dims="M N",
    )  # fmt: skip
    for case in cases(example, {}, 16, 0):
        shape = (case.dims["M"], case.dims["N"])
        assert decode(case.inputs["w"], I4, shape).shape == shape
        assert case.inputs["q"].dtype == torch.int8
        assert case.inputs["f"].dtype == torch.float8_e4m3fn
        assert not torch.isinf(case.inputs["f"].float()).any()


def test_dtype_parameters_take_the_given_type():
    parameter = DTypeParam("X", (F32, BF16))
    example = op(
        [tensor("x", parameter, "N"), tensor("y", parameter, "N", role="out")],
        [define("y", [over("n", "N")], read("x", "n"), to="y")],
        dims="N",
        dtype_params=[parameter],
    )
    assert next(cases(example, {"X": BF16}, 1, 0)).inputs["x"].dtype == torch.bfloat16
    case = next(cases(example, {}, 1, 0))
    assert case.inputs["x"].dtype == torch.float32
    assert case.dtypes == {"X": F32}


def test_words_name_shape_content_and_layout():
    case = next(cases(matmul(), {}, 1, 0))
    assert case.words.startswith(
        f"M={case.dims['M']}, N={case.dims['N']}, K={case.dims['K']} (ragged); a: normal"
    )


@pytest.mark.parametrize("example", [softmax(), matmul(), attention()])
def test_evaluation_of_cases_never_leaves_a_domain_unspecified(example):
    for case in cases(example, {}, 10, 5, limit=1 << 10):
        for result in evaluate(example, case.inputs, case.scalars, case.dims).values():
            plain = "inf" not in case.words and "NaN" not in case.words
            assert not plain or np.isfinite(result.error).all()


def test_bounds_of_multiplied_and_offset_positions():
    gather = op(
        [tensor("x", F32, "N"), tensor("at", I32, "M"), tensor("y", F32, "M", role="out")],
        [define("y", [over("m", "M")], read("x", datum("at", index("m")) * 4 + 3), to="y")],
        dims="N M",
    )
    assert interval(uses(gather)["at"], "at", {"N": 32, "M": 5}) == (0, 7)


def test_data_that_a_condition_looks_up_by_data_is_in_range():
    from opspec.frontend import load_text

    varlen = load_text(
        "op f[N, S](x: f32[N], seq: i32[N], offs: i32[S + 1]) -> y: f32[N] {\n"
        "  assume offs[s] <= N, offs[s] >= 0\n"
        "  kernel k { y[i] = sum[j | offs[seq[i]] <= j, j <= i](x[j]) }\n}\n"
    ).ops[0]
    assert uses(varlen)["seq"].below
    for case in cases(varlen, {}, 12, 0):
        assert ((case.inputs["seq"] >= 0) & (case.inputs["seq"] <= case.dims["S"])).all()
