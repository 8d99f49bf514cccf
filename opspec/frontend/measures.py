"""Numbers with units in a spec, as exact fractions of SI base units."""

from __future__ import annotations

import re
from fractions import Fraction

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults.naming import nearest

_NUMBER = re.compile(r"(\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d{1,2})?)([A-Za-z]*)$")
SECONDS = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
_PREFIX = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
UNITS: dict[str, tuple[Fraction, str]] = {
    "": (Fraction(1), ""),
    **{u: (f, "s") for u, f in SECONDS.items()},
    **{f"{p}FLOP/s": (Fraction(f), "FLOP/s") for p, f in _PREFIX.items()},
    **{f"{p}B/s": (Fraction(f), "B/s") for p, f in (_PREFIX | _BINARY).items()},
    **{f"{p}B": (Fraction(f), "B") for p, f in (_PREFIX | _BINARY).items()},
    **{f"{p}Hz": (Fraction(f), "Hz") for p, f in _PREFIX.items()},
}


def duration(measure: s.Measure, report: list[Diagnostic], *, positive: bool = False) -> Fraction | None:
    """Seconds; zero is a time unless ``positive``."""
    number, unit = _split(measure)
    if number is None:
        report.append(faults.measure(measure.span, f"`{measure.span.text[:40]}` is no time"))
        return None
    if unit not in SECONDS:
        message = (
            f"`{measure.span.text[:40]}` has no unit of time"
            if unit == ""
            else f"`{unit}` is no unit of time"
        )
        report.append(
            faults.measure(
                measure.span,
                message,
                nearest(unit, SECONDS) or "a time is written `24.0 ms`, with s, ms, us or ns",
            )
        )
        return None
    if positive and number == 0:
        report.append(faults.measure(measure.span, "this time must not be zero"))
        return None
    return number * SECONDS[unit]


def plain(measure: s.Measure, report: list[Diagnostic]) -> Fraction | None:
    """A positive number without a unit."""
    number, unit = _split(measure)
    if number is None or unit or number == 0:
        report.append(
            faults.measure(
                measure.span, f"`{measure.span.text[:40]}` is no count", "write `32 * 0.55 ms`, for instance"
            )
        )
        return None
    return number


def quantity(measure: s.Measure, report: list[Diagnostic]) -> tuple[Fraction, str] | None:
    """A positive number in SI base units, and that unit."""
    number, unit = _split(measure)
    if number is None or number == 0:
        report.append(faults.measure(measure.span, f"`{measure.span.text[:40]}` is no positive number"))
        return None
    if unit not in UNITS:
        shown = "s, ms, us, ns, TFLOP/s, TB/s, GB/s, GB, GiB, MiB, GHz, MHz"
        report.append(faults.measure(measure.span, f"unknown unit `{unit[:40]}`", f"units: {shown}"))
        return None
    factor, base = UNITS[unit]
    return number * factor, base


def _split(measure: s.Measure) -> tuple[Fraction | None, str]:
    """The number, and the unit that is written behind it or against it."""
    match = _NUMBER.match(measure.number)
    if match is None or len(measure.number) > 60:
        return None, measure.unit
    digits, attached = match.groups()
    if attached and measure.unit:
        return None, measure.unit
    return Fraction(digits.replace("_", "")), attached + measure.unit
