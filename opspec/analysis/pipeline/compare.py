"""What a variant does to the end-to-end time: Amdahl's law, step by step, with what is left over.

A gain of a kernel is only ever held together with the end-to-end gain that it became.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from opspec.analysis.pipeline.timing import Timed
from opspec.analysis.pipeline.total import ZERO, Breakdown, break_down
from opspec.ir.composition import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One stage before and after. ``kernel``: gain of one run, ``stage``: of all runs; None from or to zero.

    ``ceiling``: the end-to-end gain if the stage were free; None where nothing would be left.
    """

    name: str
    before: Timed | None
    after: Timed
    kernel: Fraction | None
    stage: Fraction | None
    ceiling: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A bar of the waterfall: what one change does, and the end-to-end time behind it."""

    what: str
    delta: Fraction
    total: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What keeps the end-to-end gain below the kernel's: seconds by part and reason."""

    what: str
    seconds: Fraction
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A variant beside its pipeline. ``gain`` is end to end, ``kernel`` the largest of one run.

    ``ceiling``: the gain if everything that the variant speeds up were free. ``losses`` add up to
    the difference between the new time and the old one divided by the kernel's gain.
    """

    variant: str
    doc: str
    after: Breakdown
    gain: Fraction
    saved: Fraction
    kernel: Fraction | None
    ceiling: Fraction | None
    changes: tuple[Change, ...]
    steps: tuple[Step, ...]
    losses: tuple[Loss, ...]


def compare(
    pipeline: Pipeline,
    variant: str,
    doc: str,
    before: Mapping[str, Timed],
    restated: Mapping[str, Timed],
) -> Comparison:
    """Restate stages one after the other and see what becomes of each."""
    base = break_down(pipeline, before)
    current = dict(before)
    steps: list[Step] = []
    total = base.total

    def step(what: str, timed: Timed) -> None:
        nonlocal total
        current[timed.name] = timed
        now = break_down(pipeline, current, base.rest).total
        steps.append(Step(what=what, delta=now - total, total=now))
        total = now

    for name, new in restated.items():
        old = before.get(name)
        if old is not None and old.count != new.count and old.each != new.each:
            step(f"{name}: one run", replace(new, count=old.count, start=old.start))
            step(f"{name}: number of runs", replace(new, start=old.start))
        else:
            step(name, new if old is None else replace(new, start=old.start))
    after = break_down(pipeline, current, base.rest)
    changes = tuple(_change(pipeline, base, before.get(n), current[n], before) for n in restated)
    faster = [c for c in changes if c.stage is None or c.stage > 1]
    gains = [c.kernel for c in changes if c.kernel is not None]
    kernel = max(gains, default=None)
    free = {n: replace(t, count=ZERO) if n in {c.name for c in faster} else t for n, t in before.items()}
    floor = break_down(pipeline, free, base.rest).total
    return Comparison(
        variant=variant,
        doc=doc,
        after=after,
        gain=base.total / after.total if after.total else Fraction(1),
        saved=base.total - after.total,
        kernel=kernel,
        ceiling=base.total / floor if floor else None,
        changes=changes,
        steps=tuple(steps),
        losses=_losses(base, after, changes, kernel) if kernel is not None and kernel > 1 else (),
    )


def _change(
    pipeline: Pipeline, base: Breakdown, old: Timed | None, new: Timed, before: Mapping[str, Timed]
) -> Change:
    ceiling: Fraction | None = Fraction(1)
    if old is not None:
        free = {n: replace(t, count=ZERO) if n == new.name else t for n, t in before.items()}
        floor = break_down(pipeline, free, base.rest).total
        ceiling = base.total / floor if floor else None
    return Change(
        name=new.name,
        before=old,
        after=new,
        kernel=old.each / new.each if old is not None and new.each else None,
        stage=old.seconds / new.seconds if old is not None and new.seconds else None,
        ceiling=ceiling,
    )


def _losses(
    base: Breakdown, after: Breakdown, changes: tuple[Change, ...], kernel: Fraction
) -> tuple[Loss, ...]:
    """``t_after - t_before / kernel`` of every part: what an equal gain everywhere would have saved more."""
    changed = {c.name: c for c in changes}
    old = {p.timed.name: p.exposed for p in base.parts}
    found: list[Loss] = []
    for p in after.parts:
        name = p.timed.name
        lost = p.exposed - old.get(name, ZERO) / kernel
        if lost:
            found.append(Loss(what=name, seconds=lost, why=_reason(changed.get(name), kernel)))
    hidden = after.shared - base.shared / kernel
    if hidden:
        found.append(Loss(what="overlapped", seconds=hidden, why="hidden by stages that run beside"))
    idle = after.rest - base.rest / kernel
    if idle:
        found.append(Loss(what="rest", seconds=idle, why="in no stage: waiting, or not attributed"))
    return tuple(sorted(found, key=lambda x: -x.seconds))


def _reason(change: Change | None, kernel: Fraction) -> str:
    if change is None:
        return "left as it was"
    old, new = change.before, change.after
    if old is None:
        return "added by the variant"
    if new.seconds > old.seconds:
        return "grew"
    if new.count != old.count and change.kernel == kernel:
        return "runs more often than before" if new.count > old.count else "runs less often than before"
    if new.seconds == old.seconds:
        return "left as it was"
    return "gained less"
