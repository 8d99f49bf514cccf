"""Units as a person reads them."""

from __future__ import annotations

import pytest

from opspec.runtime.bench.units import gigabytes_per_second, percent, scaled, seconds


def test_six_gibibytes_in_two_milliseconds_are_decimal_gigabytes():
    assert gigabytes_per_second(6 * 2**30, 2e-3) == pytest.approx(3221.225472)
    assert scaled(6 * 2**30 / 2e-3, "B/s") == "3.221 TB/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (34.312e-6, "34.31 µs"),
        (1.3416e-3, "1.342 ms"),
        (5.1e-10, "0.510 ns"),
        (2.0, "2.000 s"),
        (99.99999e-6, "100.0 µs"),
        (0, "0"),
        (None, "–"),
    ],
)
def test_seconds(value, text):
    assert seconds(value) == text


def test_scaled_and_percent():
    assert scaled(762e12, "FLOP/s") == "762.0 TFLOP/s"
    assert scaled(12, "B") == "12.00 B"
    assert percent(0.9812) == "98.1%"
