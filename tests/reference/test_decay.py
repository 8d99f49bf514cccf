"""Decayed sums: their values, what is left open, and a radius that holds evaluation by segments in f32."""

from __future__ import annotations

import numpy as np
import pytest

from opspec.reference.bounded import known
from opspec.reference.decay import decayed

RNG = np.random.default_rng(5)


def run(x, a, *, mask=None, reverse=False):
    x, a = np.asarray(x, dtype=np.float64), np.asarray(a, dtype=np.float64)
    return decayed(known(x), known(a), mask, x.shape, x.ndim - 1, reverse=reverse)


def test_each_state_is_the_decayed_one_before_and_the_input():
    got = run([1, 2, 3], [9, 0.5, 2])
    np.testing.assert_array_equal(got.value, [1, 2.5, 8])
    np.testing.assert_array_equal(run([1, 2, 3], [0.5, 2, 9], reverse=True).value, [5, 8, 3])


def test_points_outside_the_domain_neither_add_nor_decay():
    mask = np.array([False, True, False, True])
    got = run([7, 1, 7, 1], [3, 3, 3, 3], mask=mask)
    np.testing.assert_array_equal(got.value, [0, 1, 1, 4])


def test_the_first_factor_has_no_say():
    got = run([1, 1], [np.nan, 0.5])
    np.testing.assert_array_equal(got.value, [1, 1.5])
    assert np.isfinite(got.error).all()


@pytest.mark.parametrize("a", [[1, 1e30, 1e30, 1], [1, np.inf, 1, 1], [1, np.nan, 1, 1]])
def test_nothing_is_said_behind_a_product_that_leaves_f32(a):
    got = run([1, 1, 1, 1], a)
    assert np.isinf(got.error[-1])
    assert got.error[0] == 0


def test_nothing_is_said_behind_an_infinite_state():
    got = run([np.inf, 1, 1], [1, 0.5, 0.5])
    assert got.error[0] == 0
    assert np.isinf(got.error[1:]).all()


def test_a_nan_stays():
    got = run([1, np.nan, 1], [1, 0.5, 0.5])
    assert np.isnan(got.value[1:]).all()
    assert not got.error[1:].any()


@pytest.mark.parametrize("low", [-1.0, 0.0, 0.9])
def test_the_radius_holds_pairs_combined_in_any_grouping(low: float):
    x = RNG.standard_normal((40, 64)).astype(np.float32)
    a = RNG.uniform(low, 1.0, (40, 64)).astype(np.float32)
    got = run(x, a)
    s, f, step = x.copy(), a.copy(), 1
    while step < 64:
        before, factors = np.zeros_like(s), np.ones_like(f)
        before[:, step:], factors[:, step:] = s[:, :-step], f[:, :-step]
        s, f, step = s + f * before, f * factors, 2 * step
    assert (np.abs(s.astype(np.float64) - got.value) <= got.error).all()
    assert (got.error < 1e-3).all()
