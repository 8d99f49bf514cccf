"""How times, gains and shares are written, the same everywhere."""

from __future__ import annotations

from fractions import Fraction


def ms(seconds: Fraction) -> str:
    """Milliseconds to five significant digits: ``0.42955 ms``."""
    return f"{float(seconds * 1000):.5g} ms"


def signed_ms(seconds: Fraction) -> str:
    """Milliseconds with their sign."""
    return f"{float(seconds * 1000):+.5g} ms"


def gain(ratio: Fraction | None) -> str:
    """``1.1381×``; without limit where nothing would be left."""
    return "no limit" if ratio is None else f"{float(ratio):.5g}×"


def percent(share: Fraction) -> str:
    """``30.34%``."""
    return f"{float(share * 100):.2f}%"


def plain(value: Fraction) -> str:
    """A count: whole if it is, else to two decimals."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.2f}"


def rate(per_second: Fraction, unit: str) -> str:
    """``1.9525 TB/s``."""
    for size, prefix in ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M")):
        if per_second >= size:
            return f"{float(per_second / size):.5g} {prefix}{unit}"
    return f"{float(per_second):.5g} {unit}"
