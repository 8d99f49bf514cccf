"""The derived tolerance lets a sound f32 computation pass and a wrong one fail.

The sound ones are torch in f32 (and roundings that the spec declares); the wrong ones
drop one element, one mask or one rescale.
"""

import numpy as np
import pytest
import torch

from opspec.ir.dtypes import BF16, F16, F32, DType
from opspec.ir.integers import dim
from opspec.reference.compare import compare, poisoned
from opspec.reference.evaluate import Result, evaluate
from opspec.reference.tensors import torch_dtype
from tests.reference.building import (
    apply,
    attention,
    define,
    matmul,
    norm,
    number,
    op,
    over,
    read,
    reduce,
    softmax,
    tensor,
)

INF, NAN = np.inf, np.nan


def rows(m: int, n: int, dtype: DType = F32, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(m * 1000 + n)
    return (torch.randn(m, n, generator=generator) * scale).to(torch_dtype(dtype))


def chunked_softmax(x: torch.Tensor, chunk: int, *, rescale: bool = True) -> torch.Tensor:
    """One pass with a running max, as a streaming kernel does it, in base 2."""
    x = x.float() * 1.4426950408889634
    top, total = torch.full(x.shape[:1], -INF), torch.zeros(x.shape[:1])
    for part in x.split(chunk, dim=1):
        new = torch.maximum(top, part.amax(1))
        if rescale:
            total = total * torch.exp2(top - new)
        total = total + torch.exp2(part - new[:, None]).sum(1)
        top = new
    return torch.exp2(x - top[:, None]) / total[:, None]


@pytest.mark.parametrize("dtype", [F32, BF16, F16])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_softmax_in_f32_passes(dtype, scale):
    x = rows(7, 333, dtype, scale)
    expected = evaluate(softmax(dtype), {"x": x}, {}, {"M": 7, "N": 333})["y"]
    assert compare(expected, torch.softmax(x.float(), 1), F32) is None
    assert compare(expected, chunked_softmax(x, 64), F32) is None
    # as the op's own output type
    narrow = softmax(dtype)
    assert (
        compare(evaluate(narrow, {"x": x}, {}, {"M": 7, "N": 333})["y"], chunked_softmax(x, 64), F32) is None
    )


def test_softmax_fails_without_one_element_mask_or_rescale():
    x = rows(5, 257)
    expected = evaluate(softmax(), {"x": x}, {}, {"M": 5, "N": 257})["y"]
    e = torch.exp(x - x.amax(1, keepdim=True))
    dropped = e / (e.sum(1, keepdim=True) - e[:, 100:101])
    padded = e / (e.sum(1, keepdim=True) + 255 * torch.exp(-x.amax(1, keepdim=True)))
    for wrong in (dropped, padded, chunked_softmax(x, 32, rescale=False)):
        found = compare(expected, wrong, F32)
        assert found is not None
        assert found.ratio < 0.5


@pytest.mark.parametrize("dtype", [F32, BF16, F16])
def test_norm_passes_and_fails_without_one_element(dtype):
    x = rows(4, 500, dtype)
    expected = evaluate(norm(dtype, dtype), {"x": x}, {}, {"M": 4, "N": 500})["y"]
    square = x.float() ** 2
    right = (x.float() * torch.rsqrt(square.mean(1, keepdim=True) + 1e-6)).to(x.dtype)
    assert compare(expected, right, dtype) is None
    if dtype == F32:
        mean = (square.sum(1, keepdim=True) - square[:, 7:8]) / 500
        assert compare(expected, x * torch.rsqrt(mean + 1e-6), F32) is not None
        assert compare(expected, x * torch.rsqrt(square.sum(1, keepdim=True) / 512 + 1e-6), F32) is not None


@pytest.mark.parametrize("dtype", [F32, BF16, F16])
def test_matmul_passes_and_fails_without_one_element(dtype):
    a, b = rows(65, 301, dtype), rows(301, 67, dtype)
    expected = evaluate(matmul(dtype, dtype), {"a": a, "b": b}, {}, {"M": 65, "N": 67, "K": 301})["c"]
    right = a.float() @ b.float()
    assert compare(expected, right.to(a.dtype), dtype) is None
    wrong = (right - a.float()[:, 11:12] @ b.float()[11:12]).to(a.dtype)
    found = compare(expected, wrong, dtype)
    assert found is not None
    assert found.ratio < 0.8
    stepped = torch.zeros_like(right).to(a.dtype)
    for k in range(0, 301, 32):
        stepped = stepped + (a.float()[:, k : k + 32] @ b.float()[k : k + 32]).to(a.dtype)
    assert (compare(expected, stepped, dtype) is None) == (dtype == F32)


def test_tf32_passes_only_where_declared():
    a, b = torch.full((16, 16), 1 + 2.0**-12), torch.ones(16, 16)
    dims = {"M": 16, "N": 16, "K": 16}
    plain = evaluate(matmul(), {"a": a, "b": b}, {}, dims)["c"]
    assert (plain.value == 16.00390625).all()
    assert compare(plain, torch.full((16, 16), 16.0), F32) is not None
    declared = evaluate(matmul(using="tf32"), {"a": a, "b": b}, {}, dims)["c"]
    assert compare(declared, torch.full((16, 16), 16.0), F32) is None
    assert (declared.value == plain.value).all()


def test_declared_operand_rounding_passes():
    a, b = rows(33, 64), rows(64, 35)
    expected = evaluate(matmul(using="bf16"), {"a": a, "b": b}, {}, {"M": 33, "N": 35, "K": 64})["c"]
    rounded = a.bfloat16().float() @ b.bfloat16().float()
    assert compare(expected, rounded, F32) is None
    assert compare(evaluate(matmul(), {"a": a, "b": b}, {}, {"M": 33, "N": 35, "K": 64})["c"], rounded, F32)


def test_logsumexp_passes_and_fails_without_one_element_or_rescale():
    row, cells = [over("m", "M")], [over("m", "M"), over("n", "N")]
    lse = op(
        [tensor("x", F32, "M", "N"), tensor("y", F32, "M", role="out")],
        [
            define("top", row, reduce("max", [over("n", "N")], read("x", "m", "n"), empty=number(-INF))),
            define("e", cells, apply("exp", apply("sub", read("x", "m", "n"), read("top", "m")))),
            define("total", row, reduce("sum", [over("n", "N")], read("e", "m", "n"))),
            define("y", row, apply("add", read("top", "m"), apply("log", read("total", "m"))), to="y"),
        ],
        dims="M N",
    )
    x = rows(6, 400)
    expected = evaluate(lse, {"x": x}, {}, {"M": 6, "N": 400})["y"]
    assert compare(expected, torch.logsumexp(x, 1), F32) is None
    assert compare(expected, torch.logsumexp(x[:, 1:], 1), F32) is not None
    halves = [torch.logsumexp(h, 1) for h in x.split(200, dim=1)]
    unscaled = torch.maximum(x[:, :200].amax(1), x[:, 200:].amax(1)) + torch.log(
        sum(torch.exp(h - p.amax(1)) for h, p in zip(halves, x.split(200, dim=1), strict=True))
    )
    assert compare(expected, unscaled, F32) is not None


def test_a_dropped_mask_fails():
    s, v = rows(40, 60), rows(1, 60)[0]
    expected = evaluate(attention(), {"s": s, "v": v}, {}, {"L": 40, "T": 60})
    keep = torch.arange(60)[None] <= torch.arange(40)[:, None] + 20
    right = torch.softmax(s.masked_fill(~keep, -INF), 1) @ v
    assert compare(expected["o"], right, F32) is None
    off_by_one = torch.arange(60)[None] < torch.arange(40)[:, None] + 20
    for wrong_mask in (off_by_one, torch.ones_like(keep)):
        assert compare(expected["o"], torch.softmax(s.masked_fill(~wrong_mask, -INF), 1) @ v, F32) is not None


def test_non_finite_values_must_match():
    x = torch.tensor([[1.0, INF, 0], [NAN, 0, 1], [-INF, 0, 0], [1e30, 1, 2]])
    expected = evaluate(softmax(), {"x": x}, {}, {"M": 4, "N": 3})["y"]
    right = torch.softmax(x, 1)
    assert compare(expected, right, F32) is None
    assert compare(expected, torch.nan_to_num(right), F32) is not None
    assert compare(expected, torch.where(right == 0, NAN, right), F32) is not None


def test_overflow_of_the_output_type_is_infinite():
    square = op(
        [tensor("x", F16, "N"), tensor("y", F16, "N", role="out")],
        [define("y", [over("n", "N")], apply("mul", read("x", "n"), read("x", "n")), to="y")],
        dims="N",
    )
    x = torch.tensor([300.0, 2.0, -INF]).half()
    expected = evaluate(square, {"x": x}, {}, {"N": 3})["y"]
    np.testing.assert_array_equal(expected.value, [INF, 4, INF])
    assert compare(expected, torch.tensor([INF, 4, INF]).half(), F16) is None
    assert compare(expected, torch.tensor([65504.0, 4, INF]).half(), F16) is not None


def test_comparisons_are_free_only_at_the_threshold():
    third = apply("div", read("x", "n"), number(3))
    step = op(
        [tensor("x", F32, "N"), tensor("y", F32, "N", role="out")],
        [
            define(
                "y",
                [over("n", "N")],
                apply("where", apply("lt", third, number(1 / 3)), number(0), number(1)),
                to="y",
            )
        ],
        dims="N",
    )
    got = evaluate(step, {"x": np.array([1.0, 0.5, 2.0])}, {}, {"N": 3})["y"]
    assert got.error[0] >= 1
    assert got.error[1:].max() < 1e-6


def test_what_compare_reports():
    result = Result(np.array([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 2), 0.25))
    found = compare(result, np.array([[1.0, 2.0], [3.5, 5.0]]), F32)
    assert found is not None
    assert found.worst == (1, 1)
    assert (found.ratio, found.max_error, found.expected, found.actual, found.tolerance) == (
        0.5,
        1,
        4,
        5,
        0.25,
    )
    assert str(found).startswith(
        "values differ: 50.00% of the elements match; at [1, 1] expected 4 ± 0.25, found 5"
    )
    unwritten = compare(result, poisoned(torch.empty(2, 2)), F32)
    assert unwritten is not None
    assert unwritten.reason == "4 elements NaN or never written"
    assert compare(result, np.zeros((2, 2)), F32).reason == "every element is zero"
    assert compare(result, np.zeros((2, 3)), F32).reason.startswith("shape (2, 3)")
    assert compare(Result(np.zeros((0, 3)), np.zeros((0, 3))), np.zeros((0, 3)), F32) is None


def test_what_is_not_decided_is_counted():
    """Two squares beyond f32 that cancel: f32 gives NaN, float64 gives 0; neither is required."""
    square = apply("mul", read("x", "n"), read("x", "n"))
    example = op(
        [tensor("x", F32, "N"), tensor("y", F32, "N", role="out")],
        [define("y", [over("n", "N")], apply("sub", square, square), to="y")],
        dims="N",
    )
    got = evaluate(example, {"x": np.array([1e30, 2.0])}, {}, {"N": 2})["y"]
    assert got.decided == 0.5
    assert compare(got, np.array([NAN, 0.0]), F32) is None


def test_unit_extents_and_scale_of_dims():
    scaled = op(
        [tensor("x", F32, "N"), tensor("y", F32, "N", role="out")],
        [define("y", [over("n", "N")], apply("mul", read("x", "n"), read("x", dim("N") - 1)), to="y")],
        dims="N",
    )
    assert evaluate(scaled, {"x": np.array([3.0])}, {}, {"N": 1})["y"].value[0] == 9
