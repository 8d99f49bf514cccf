"""Statements of a pipeline that do not agree with each other, and token ledgers that do not add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opspec.analysis.pipeline.numbers import gain, ms, plain
from opspec.analysis.pipeline.timing import Timed
from opspec.analysis.pipeline.total import busy_time
from opspec.ir.composition import Ledger, Pipeline
from opspec.ir.program import Module
from opspec.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A contradiction, in words. ``where``: a stage, a variant's stage, or a ledger.

    ``impossible``: a measurement that no machine of that kind can have made.
    """

    where: str
    text: str
    impossible: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """A ledger counted: ``stated`` by its entries (at least, where one is open) beside ``extent`` of the dim."""

    ledger: Ledger
    extent: int
    stated: int
    flag: Flag | None


def pipeline_flags(pipeline: Pipeline, stages: Mapping[str, Timed]) -> tuple[Flag, ...]:
    """Contradictions within a pipeline."""
    found = [f for t in stages.values() for f in _stage_flags(t, t.name)]
    busy = busy_time(stages.values(), pipeline.overlaps)
    if pipeline.wall is not None and busy > pipeline.wall:
        found.append(
            Flag(
                where=pipeline.name,
                text=f"its stages take {ms(busy)}, more than the wall time of {ms(pipeline.wall)}: "
                "something overlaps that is not declared, or a time is wrong",
                span=pipeline.span,
            )
        )
    if pipeline.wall is not None:
        for t in stages.values():
            if t.start is not None and t.start + t.seconds > pipeline.wall:
                text = (
                    f"its span ends at {ms(t.start + t.seconds)}, after the wall time of {ms(pipeline.wall)}"
                )
                found.append(Flag(where=t.name, text=text, span=t.span))
    return tuple(found)


def variant_flags(
    before: Mapping[str, Timed], restated: Mapping[str, Timed], variant: str
) -> tuple[Flag, ...]:
    """Contradictions between a pipeline and its variant."""
    found: list[Flag] = []
    for name, new in restated.items():
        found += _stage_flags(new, f"{variant}: {name}")
        old = before.get(name)
        if old is None or not (old.implied or new.implied) or old.count == new.count:
            continue
        found.append(
            Flag(
                where=f"{variant}: {name}",
                text=f"count × latency disagrees: {ms(old.seconds)} / {ms(old.each)} = {plain(old.count)} runs before, "
                f"{ms(new.seconds)} / {ms(new.each)} = {plain(new.count)} after; one run is "
                f"{gain(old.each / new.each)} faster, all runs {gain(old.seconds / new.seconds)}",
                span=new.span,
            )
        )
    return tuple(found)


def _stage_flags(t: Timed, where: str) -> list[Flag]:
    found: list[Flag] = []
    if t.implied and t.count.denominator != 1:
        text = f"{ms(t.seconds)} / {ms(t.each)} each = {plain(t.count)} runs, no whole number"
        found.append(Flag(where=where, text=text, span=t.span))
    if t.bound is not None and t.provenance != "derived" and t.each < t.bound.floor:
        text = (
            f"{ms(t.each)} is less than the bound of {ms(t.bound.floor)} ({t.bound.resource} on {t.bound.machine}): "
            "the time, the shape or the machine is not that of this op"
        )
        found.append(Flag(where=where, text=text, impossible=True, span=t.span))
    return found


def count_tokens(module: Module, ledgers: Iterable[Ledger]) -> tuple[TokenCount, ...]:
    """Every ledger beside the extent that it must add up to."""
    found: list[TokenCount] = []
    known = [
        w for _, ws in (*((o, module.workloads_of(o.name)) for o in module.ops), *module.linked) for w in ws
    ]
    for ledger in ledgers:
        workload = next(w for w in known if w.name == ledger.workload)
        for extent in sorted({dict(dims)[ledger.dim] for _, dims in workload.cases}):
            stated = sum(e.tokens for e in ledger.entries)
            found.append(
                TokenCount(ledger=ledger, extent=extent, stated=stated, flag=_ledger_flag(ledger, extent))
            )
    return tuple(found)


def _ledger_flag(ledger: Ledger, extent: int) -> Flag | None:
    closed = sum(e.tokens for e in ledger.entries if not e.open)
    stated = sum(e.tokens for e in ledger.entries)
    some = [e for e in ledger.entries if e.open]
    what = f"{ledger.workload} has {ledger.dim} = {extent}"
    if stated == extent or (some and stated < extent):
        return None
    if not some:
        return Flag(where=ledger.name, text=f"the entries add up to {stated}, and {what}", span=ledger.span)
    parts = " + ".join(f"{e.name} {e.text} = {e.tokens}" for e in ledger.entries if not e.open)
    left = (
        f"nothing is left for {_and(e.name for e in some)}"
        if closed >= extent
        else (
            f"{extent - closed} are left for {_and(e.name for e in some)}, which need at least {stated - closed}"
        )
    )
    return Flag(where=ledger.name, text=f"{parts} already, and {what}: {left}", span=ledger.span)


def _and(names: Iterable[str]) -> str:
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
