"""Numbers with units as a person reads them. Decimal units throughout; GiB only where it is written so."""

from __future__ import annotations

TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def seconds(value: float | None) -> str:
    """A time with four significant digits: ``34.31 µs``."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    scale, unit = next((entry for entry in TIMES if abs(value) >= entry[0]), TIMES[-1])
    return f"{significant(value / scale)} {unit}"


def scaled(value: float | None, unit: str) -> str:
    """A quantity with an SI prefix: ``3.913 TB/s`` from 3.913e12 and ``B/s``."""
    if value is None:
        return "–"
    for scale, prefix in PREFIXES:
        if abs(value) >= scale:
            return f"{significant(value / scale)} {prefix}{unit}"
    return f"{significant(value)} {unit}"


def gigabytes_per_second(size: float, time: float) -> float:
    """Decimal GB/s, the unit of datasheets: 6 GiB in 2 ms are 3221.2 GB/s."""
    return size / time / 1e9


def percent(value: float | None) -> str:
    """A share as percent."""
    return "–" if value is None else f"{100 * value:.1f}%"


def significant(value: float) -> str:
    """Four significant digits without an exponent."""
    exponent = int(f"{value:.3e}".partition("e")[2])  # of the rounded number: 99.999 is 100.0
    return f"{value:.{min(3, max(0, 3 - exponent))}f}"
