"""Order statistics, verdicts, drift and the stopping rule, by numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opspec.runtime.bench.statistics import (
    Policy,
    compare,
    drift,
    median_ranks,
    quantile,
    settled,
    summarise,
    unreached,
)


def summary(low, median, high):
    return summarise([low, median, high])


@pytest.mark.parametrize(
    ("count", "ranks"), [(1, (0, 0)), (5, (0, 4)), (6, (0, 5)), (10, (1, 8)), (100, (39, 60))]
)
def test_ranks_of_the_median_interval_are_those_of_the_binomial(count, ranks):
    assert median_ranks(count) == ranks


@given(st.integers(6, 400))
def test_the_interval_holds_the_median_with_95_percent_and_no_wider_than_needed(count):
    low, high = median_ranks(count)
    outside = 2 * sum(math.comb(count, k) for k in range(low + 1)) / 2**count
    one_narrower = 2 * sum(math.comb(count, k) for k in range(low + 2)) / 2**count
    assert low + high == count - 1
    assert outside <= 0.05 < one_narrower


def test_summary_keeps_every_sample_also_the_outlier():
    found = summarise([1.0] * 9 + [100.0])
    assert (found.count, found.median, found.min) == (10, 1.0, 1.0)
    assert found.p99 == pytest.approx(1 + 99 * 0.91)


def test_quantile_is_linear_between_neighbours():
    assert quantile([1.0, 2.0, 4.0], 0.75) == 3.0
    assert quantile([7.0], 0.9) == 7.0


def test_no_samples_is_an_error_and_not_an_empty_result():
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((1.0, 1.001, 1.002), (1.0, 1.001, 1.002), "SAME"),
        ((1.0, 1.01, 1.02), (2.0, 2.01, 2.02), "FASTER"),
        ((2.0, 2.01, 2.02), (1.0, 1.01, 1.02), "SLOWER"),
        ((0.9, 1.0, 1.1), (0.95, 1.05, 1.15), "AMBIGUOUS"),
        ((0.97, 0.98, 0.985), (1.0, 1.0, 1.0), "FASTER"),
    ],
)
def test_verdicts_come_from_the_intervals(ours, theirs, verdict):
    assert compare(summary(*ours), summary(*theirs))[0] == verdict


def test_drift_of_the_rate_from_the_first_tenth_to_the_last():
    samples = [1 / 1400] * 10 + [1 / 1300] * 80 + [1 / 1200] * 10
    assert drift(samples) == pytest.approx(-0.142857, abs=1e-6)
    assert drift([1.0] * 19) is None


def test_stopping_wants_ten_samples_half_a_second_and_little_noise():
    policy = Policy(least=10, seconds=0.5, spread=0.01)
    assert unreached(policy, [1.0] * 9, 9.0) == "9 of 10 samples"
    assert unreached(policy, [1.0] * 50, 0.25) == "0.25 of 0.5 s"
    assert unreached(policy, [1.0] * 50, 0.6) == ""
    assert "wanted ±1.00%" in unreached(policy, [1.0, 2.0] * 25, 0.6)


def test_a_spread_that_no_longer_falls_is_settled():
    two_modes = [1.0, 1.2] * 200
    assert settled(two_modes)
    assert not settled([1.0, 1.2] * 20)
