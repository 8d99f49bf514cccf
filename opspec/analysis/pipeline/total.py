"""From stages to an end-to-end time. Stages overlap only where the pipeline says so.

Without recorded spans: a group that overlaps takes as long as its longest member, everything else
adds up, and a stated wall time leaves a rest that no stage explains. With spans: busy time is
their union, and what is left of the wall is idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from opspec.analysis.pipeline.timing import Timed
from opspec.ir.composition import Pipeline

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stage in the whole: ``exposed`` is what the end-to-end time would lose without it."""

    timed: Timed
    exposed: Fraction
    share: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """An end-to-end time. ``busy``: at least one stage runs; ``rest``: wall time that no stage takes
    (idle where spans were recorded); ``shared``: time in which stages hide each other."""

    total: Fraction
    busy: Fraction
    rest: Fraction
    shared: Fraction
    added: Fraction
    parts: tuple[Part, ...]

    @property
    def largest(self) -> Part:
        """The part that exposes the most time; of equals the first."""
        return max(self.parts, key=lambda p: p.exposed)


def busy_time(stages: Iterable[Timed], overlaps: tuple[tuple[str, ...], ...]) -> Fraction:
    """Seconds in which at least one stage runs."""
    all_stages = list(stages)
    if any(t.start is not None for t in all_stages):
        return _union(all_stages)
    grouped = {name for group in overlaps for name in group}
    total = sum((t.seconds for t in all_stages if t.name not in grouped), ZERO)
    for group in overlaps:
        total += max((t.seconds for t in all_stages if t.name in group), default=ZERO)
    return total


def _union(stages: list[Timed]) -> Fraction:
    total, reached = ZERO, None
    for t in sorted((t for t in stages if t.start is not None), key=lambda t: t.start or ZERO):
        start = t.start or ZERO
        end = start + t.seconds
        if reached is None or start > reached:
            total += t.seconds
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def break_down(pipeline: Pipeline, stages: Mapping[str, Timed], rest: Fraction | None = None) -> Breakdown:
    """The end-to-end time of stages; ``rest`` of a variant is that of its base."""
    busy = busy_time(stages.values(), pipeline.overlaps)
    if rest is None:
        rest = max(pipeline.wall - busy, ZERO) if pipeline.wall is not None else ZERO
    total = busy + rest
    exposed: dict[str, Fraction] = {}
    for name, t in stages.items():
        without = [replace(x, count=ZERO) if x.name == name else x for x in stages.values()]
        exposed[name] = busy - busy_time(without, pipeline.overlaps) if t.seconds else ZERO
    parts = tuple(
        Part(timed=t, exposed=exposed[n], share=exposed[n] / total if total else ZERO)
        for n, t in stages.items()
    )
    return Breakdown(
        total=total,
        busy=busy,
        rest=rest,
        shared=busy - sum(exposed.values(), ZERO),
        added=sum((t.seconds for t in stages.values()), ZERO),
        parts=parts,
    )
