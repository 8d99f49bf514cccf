"""Marks of an axis and the numbers beside them."""

from __future__ import annotations

from math import ceil, floor, log10

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def extents(low: int, high: int, most: int, *, log: bool) -> list[int]:
    """At most so many extents for the horizontal axis: powers of two on a logarithmic one."""
    if not log:
        return [int(v) for v in values(low, high, most, log=False) if v == int(v)]
    first, last = ceil(_log2(low)), floor(_log2(high))
    step = max(1, -(-(last - first + 1) // max(1, most)))
    return [2**k for k in range(first, last + 1, step)]


def values(low: float, high: float, most: int, *, log: bool) -> list[float]:
    """At most so many round numbers between two; powers of ten, then also 2 and 5 of each, on a logarithmic axis."""
    if log:
        first, last = floor(log10(low)), ceil(log10(high))
        for leads in ((1, 2, 5), (1, 3), (1,)):
            found = [m * 10.0**k for k in range(first, last + 1) for m in leads if low <= m * 10.0**k <= high]
            if len(found) <= most:
                return found
        step = -(-len(found) // most)
        return found[::step]
    if low == high:
        return [low]
    raw = (high - low) / max(1, most - 1)
    power = 10.0 ** floor(log10(raw))
    step_ = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    start = ceil(low / step_ - 1e-9)
    return [k * step_ for k in range(start, floor(high / step_ + 1e-9) + 1)]


def short(value: float, unit: str) -> str:
    """A number of three digits with prefix and unit: ``4.8 TB/s``, ``20 µs``."""
    if value == 0:
        return f"0 {unit}".rstrip()
    scaled = unit == "s" or unit.startswith(("B", "FLOP", "MAC"))
    if scaled and unit != "FLOP/B":
        for size, prefix in (*(() if unit == "s" else _PREFIXES), *_SMALL):
            if abs(value) >= size * 0.9995:
                return f"{value / size:.3g} {prefix}{unit}"
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def _log2(value: int) -> float:
    return value.bit_length() - 1 if value & (value - 1) == 0 else log10(value) / log10(2)
