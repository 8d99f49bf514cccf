"""Random inputs of each kind, packed types, sets and their description."""

from __future__ import annotations

import pytest
import torch

from opspec.runtime import bench
from opspec.runtime.bench.inputs import TORCH_DTYPES, count_sets, draw, make_set, nibbles, widen
from opspec.runtime.bench.model import cases
from tests.runtime.bench.fakes import driver

CASE = cases(driver(), "small")[0]


def one(kind="normal", dtype="f32", shape=(1000,), below=None, **options):
    item = bench.TensorInput(
        "x", dtype, lambda d: shape, kind=kind, below=None if below is None else lambda d: below, **options
    )
    return draw(item, CASE, torch.Generator().manual_seed(1), "cpu")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8e4m3", "f8e5m2"])
def test_normal_values_of_every_float_type_are_neither_constant_nor_broken(dtype):
    x = one(dtype=dtype)
    assert x.dtype == TORCH_DTYPES[dtype]
    wide = x.float()
    assert wide.isfinite().all()
    assert 0.8 < wide.std() < 1.2


def test_uniform_positive_and_scaled_values():
    assert 0 <= one("uniform").min() <= one("uniform").max() < 1
    assert one("positive").min() >= 0.1
    assert one(scale=100.0).abs().max() > 100


def test_indices_lengths_offsets_and_distinct_values_keep_their_bounds():
    assert one("index", "i64", below=7).unique().tolist() == list(range(7))
    assert one("lengths", "i32", below=7).unique().tolist() == list(range(1, 8))
    offsets = one("offsets", "i32", shape=(9,), below=100)
    assert (offsets[0], offsets[-1], len(offsets)) == (0, 100, 9)
    assert (offsets.diff() >= 0).all()
    assert len(one("distinct", "i32", shape=(50,), below=60).unique()) == 50


def test_what_cannot_be_drawn_says_so():
    with pytest.raises(ValueError, match="50 distinct values below 40"):
        one("distinct", "i32", shape=(50,), below=40)
    with pytest.raises(ValueError, match="needs `below`"):
        one("index", "i64")


@pytest.mark.parametrize("dtype", ["i8", "i4", "f8e4m3", "f8e5m2"])
def test_codes_cover_the_type_and_are_finite(dtype):
    x = one("codes", dtype, shape=(4096,))
    values = nibbles(x) if dtype == "i4" else x.float()
    assert values.float().isfinite().all()
    assert values.float().min() < -6
    assert values.float().max() > 6


def test_packed_codes_are_low_nibble_first_and_signed():
    assert nibbles(torch.tensor([0x8F, 0x70], dtype=torch.uint8)).tolist() == [-1, -8, 0, 7]
    assert one("codes", "i4", shape=(2, 5)).shape == (2, 3)


def test_the_reference_sees_float64_and_codes_as_they_lie():
    made = driver(
        inputs=(
            bench.TensorInput("w", "i4", lambda d: (2, 5), kind="codes"),
            bench.TensorInput("x", "X", lambda d: (2, 5)),
            bench.TensorInput("n", "i32", lambda d: (3,), kind="index", below=lambda d: 5),
            bench.ScalarInput("eps", 0.5),
        )
    )
    wide = widen(make_set(made, CASE, seed=0, device="cpu").arguments)
    assert [getattr(v, "dtype", v) for v in wide] == [torch.uint8, torch.float64, torch.int32, 0.5]
    assert wide[0].shape == (2, 3)


def test_what_is_passed_by_name_comes_from_the_dims():
    made = make_set(driver(keywords=lambda d: {"W": d["M"] // 2}), CASE, seed=0, device="cpu")
    assert made.call(lambda *given, W: (len(given), W)) == (2, 32)


def test_a_scale_may_depend_on_the_dims():
    x = one(scale=lambda d: d["M"] ** -0.5)
    assert 0.9 / 8 < x.std() < 1.1 / 8


def test_sets_differ_by_seed_and_repeat_with_it():
    a, b, again = (make_set(driver(), CASE, seed=s, device="cpu").arguments[0] for s in (0, 1, 0))
    assert not torch.equal(a, b)
    assert torch.equal(a, again)


def test_as_many_sets_as_fit():
    assert count_sets(10, 1000) == 3
    assert count_sets(100, 1000) == 2
    assert count_sets(10000, 1000) == 1
    assert count_sets(0, 0) == 3


def lengths_case(**lengths):
    from dataclasses import replace

    return replace(CASE, dims={"B": 10, "T": 100}, lengths=lengths)


LENGTH = bench.TensorInput("len", "i32", lambda d: (d["B"],), kind="lengths", below=lambda d: d["T"])


def test_lengths_are_as_the_workload_states_them():
    case = lengths_case(len=bench.Lengths(((0.3, 5), (0.5, 20), (0.2, 80))))
    drawn = draw(LENGTH, case, torch.Generator().manual_seed(0), "cpu").tolist()
    assert sorted(drawn) == [5] * 3 + [20] * 5 + [80] * 2
    assert drawn != sorted(drawn)
    listed = lengths_case(len=bench.Lengths(listed=(9, 1, 4)))
    assert draw(LENGTH, listed, torch.Generator().manual_seed(0), "cpu").tolist()[:4] == [9, 1, 4, 9]


def test_shares_that_do_not_divide_give_whole_numbers():
    assert bench.Lengths(((1.0, 1), (1.0, 2), (1.0, 3))).values(4) == (1, 1, 2, 3)
    assert bench.Lengths(((0.999, 7), (0.001, 9))).values(3) == (7, 7, 7)
    assert bench.Lengths(((1.0, 7),)).values(0) == ()


def test_the_closed_form_counts_the_lengths_that_are_drawn():
    from opspec.runtime.bench.model import cost_of

    made = driver(
        inputs=(LENGTH,),
        cost=lambda d, t: {"flops": 2 * d["sum_len"], "bytes.read": d["pages"]},
        moments=lambda d, lengths: {
            "sum_len": sum(lengths["len"]),
            "pages": sum(-(-n // 16) for n in lengths["len"]),
        },
    )
    for case in (lengths_case(), lengths_case(len=bench.Lengths(((0.3, 5), (0.7, 20))))):
        drawn = draw(LENGTH, case, torch.Generator().manual_seed(0), "cpu")
        cost = cost_of(made, case)
        assert cost["flops"] == 2 * int(drawn.sum())
        assert cost["bytes.read"] == int(((drawn + 15) // 16).sum())
