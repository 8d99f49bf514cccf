"""Rounding to storage formats, against values worked out by hand and against torch."""

import numpy as np
import pytest
import torch

from opspec.ir.dtypes import BF16, F8E4M3, F8E5M2, F16, F32, I8
from opspec.reference.rounding import round_float, round_integer, spacing
from opspec.reference.tensors import decode, pack, torch_dtype, unpack

INF, NAN = np.inf, np.nan


def test_e4m3_overflow_follows_the_mode():
    x = np.array([448, 464, 465, -1000, INF, NAN, 2.0**-9, 2.0**-10, 1.0625, 1.1875])
    np.testing.assert_array_equal(
        round_float("f8e4m3", x, "sat"), [448, 448, 448, -448, 448, NAN, 2.0**-9, 0, 1, 1.25]
    )
    np.testing.assert_array_equal(
        round_float("f8e4m3", x, "nonsat"), [448, 448, NAN, NAN, NAN, NAN, 2.0**-9, 0, 1, 1.25]
    )


def test_fp8_codes_decode():
    codes = torch.tensor([0x7E, 0x7F, 0xFF, 0x80, 0x01], dtype=torch.uint8).view(torch.float8_e4m3fn)
    values = decode(codes, F8E4M3)
    np.testing.assert_array_equal(values, [448, NAN, NAN, 0, 2.0**-9])
    assert np.signbit(values[3])
    codes = torch.tensor([0x7B, 0x7C, 0xFC, 0x7D], dtype=torch.uint8).view(torch.float8_e5m2)
    np.testing.assert_array_equal(decode(codes, F8E5M2), [57344, INF, -INF, NAN])


def test_e5m2_has_infinities():
    x = np.array([57344, 61439, 61440, INF, -1e9])
    np.testing.assert_array_equal(round_float("f8e5m2", x), [57344, 57344, INF, INF, -INF])
    np.testing.assert_array_equal(round_float("f8e5m2", x, "sat"), [57344, 57344, 57344, 57344, -57344])


def test_rounding_happens_once():
    x = np.array([1.0625 + 2.0**-12])
    assert round_float("f8e4m3", x)[0] == 1.125
    assert round_float("f8e4m3", round_float("bf16", x))[0] == 1.0


@pytest.mark.parametrize("dtype", [BF16, F16, F8E5M2, F8E4M3, F32])
def test_every_code_is_a_fixed_point_and_ties_go_to_even(dtype):
    if dtype.bits == 32:
        values = np.random.default_rng(0).standard_normal(4096).astype(np.float32).astype(np.float64)
    else:
        integer = torch.uint8 if dtype.bits == 8 else torch.int16
        codes = torch.arange(2**dtype.bits).to(integer)
        values = decode(codes.view(torch_dtype(dtype)), dtype)
    np.testing.assert_array_equal(round_float(dtype.name, values), values)
    finite = np.unique(values[np.isfinite(values)])
    middle = (finite[1:] + finite[:-1]) / 2
    ours = round_float(dtype.name, middle)
    if dtype.bits == 32:
        np.testing.assert_array_equal(ours, middle.astype(np.float32))
    else:
        theirs = torch.from_numpy(middle).to(torch.float32).to(torch_dtype(dtype)).to(torch.float64).numpy()
        np.testing.assert_array_equal(ours, theirs)


def test_integers_round_to_even_then_clamp():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 127.5, -128.5, 1.2, INF, -INF, NAN])
    values, lost = round_integer(I8, x, "sat")
    np.testing.assert_array_equal(values, [0, 2, 2, 0, -2, 127, -128, 1, 127, -128, 0])
    assert not lost.any()
    values, _ = round_integer(I8, np.array([128.0, -129.0, 300.0]), "wrap")
    np.testing.assert_array_equal(values, [-128, 127, 44])


def test_spacing_is_that_of_the_neighbour_above():
    np.testing.assert_array_equal(
        spacing("bf16", np.array([1.0, 1.99, 2.0, -8.0])), [2**-7, 2**-7, 2**-6, 2**-4]
    )
    assert spacing("f16", np.array([0.0]))[0] == 2.0**-24


def test_nibbles_are_packed_low_first():
    values = np.array([[1, -2, 7], [-8, 0, 3]])
    packed = pack(values)
    np.testing.assert_array_equal(packed, [[0xE1, 0x07], [0x08, 0x03]])
    np.testing.assert_array_equal(unpack(packed, (2, 3)), values)
