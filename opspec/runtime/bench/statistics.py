"""What may be said of samples: quantiles, an interval of the median, verdicts, drift, when to stop.

Pure functions of numbers. Times are seconds; no sample is ever removed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["SAME", "FASTER", "SLOWER", "AMBIGUOUS"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Of ``count`` samples: order statistics and the 95% confidence interval of the median, all seconds."""

    count: int
    median: float
    p10: float
    p90: float
    p99: float
    min: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the width of the interval, relative to the median."""
        return (self.high - self.low) / (2 * self.median) if self.median > 0 else math.inf


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of sorted samples, linear between neighbours (Hyndman and Fan's type 7)."""
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median_ranks(count: int) -> tuple[int, int]:
    """Zero-based ranks of the order statistics that hold the median with at least 95% confidence.

    Distribution-free: the number of samples under the median is binomial(count, 1/2). With fewer than six
    samples no such pair exists and the extremes are returned, which then hold it with less.
    """
    below = 0  # number of outcomes (of 2^count) with at most `rank` samples under the median
    budget = 2**count // 40  # 2.5% on each side
    rank = 0
    ways = 1  # comb(count, rank)
    while rank < count // 2 and below + ways <= budget:
        below += ways
        ways = ways * (count - rank) // (rank + 1)
        rank += 1
    low = max(rank - 1, 0)
    return low, count - 1 - low


def summarise(samples: Sequence[float]) -> Summary:
    """The summary of one or more samples."""
    if not samples:
        raise ValueError("no samples to summarise")
    ordered = sorted(samples)
    low, high = median_ranks(len(ordered))
    return Summary(
        count=len(ordered),
        median=quantile(ordered, 0.5),
        p10=quantile(ordered, 0.1),
        p90=quantile(ordered, 0.9),
        p99=quantile(ordered, 0.99),
        min=ordered[0],
        low=ordered[low],
        high=ordered[high],
    )


def compare(ours: Summary, theirs: Summary, *, same: float = 0.01) -> tuple[Verdict, float, float, float]:
    """How ``ours`` stands to ``theirs``: the verdict, and the ratio of times with its interval.

    SAME if the whole interval of ours/theirs lies within ``same`` of 1; else FASTER or SLOWER if it lies on
    one side of 1; else AMBIGUOUS: the samples do not decide.
    """
    ratio, low, high = ours.median / theirs.median, ours.low / theirs.high, ours.high / theirs.low
    if low >= 1 - same and high <= 1 + same:
        return "SAME", ratio, low, high
    if high < 1:
        return "FASTER", ratio, low, high
    if low > 1:
        return "SLOWER", ratio, low, high
    return "AMBIGUOUS", ratio, low, high


def drift(samples: Sequence[float]) -> float | None:
    """Relative change of the mean rate from the first tenth of the samples to the last, in time order.

    −0.14 means that the work ran 14% slower at the end, as when the clock falls under the power cap. None
    with fewer than 20 samples.
    """
    tenth = len(samples) // 10
    if tenth < 2:
        return None
    first = sum(1 / t for t in samples[:tenth]) / tenth
    last = sum(1 / t for t in samples[-tenth:]) / tenth
    return last / first - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """When sampling may stop: on noise, never on a count alone.

    At least ``least`` samples over ``seconds``; then once the relative half-width of the median's interval is
    at most ``spread``, or has stopped falling; at ``budget`` seconds in any case, saying what was not reached.
    """

    least: int = 10
    seconds: float = 0.5
    spread: float = 0.005
    budget: float = 20.0


def unreached(policy: Policy, samples: Sequence[float], elapsed: float) -> str:
    """What ``samples`` still lack under ``policy``; empty when they suffice."""
    if len(samples) < policy.least:
        return f"{len(samples)} of {policy.least} samples"
    if elapsed < policy.seconds:
        return f"{elapsed:.2f} of {policy.seconds:g} s"
    spread = summarise(samples).spread
    if spread <= policy.spread or settled(samples):
        return ""
    return f"spread ±{spread:.2%}, wanted ±{policy.spread:.2%}"


def settled(samples: Sequence[float]) -> bool:
    """Whether twice the samples no longer narrow the interval as they should (by 1/√2)."""
    half = len(samples) // 2
    return half >= 100 and summarise(samples).spread > 0.9 * summarise(samples[:half]).spread
