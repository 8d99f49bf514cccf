"""The report as Markdown: the same content without the plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opspec.analysis.report.model import Measurement, OpPage, Report, Spot
from opspec.analysis.review.escape import code, words
from opspec.analysis.review.wording import number


def to_markdown(report: Report) -> str:
    """The text; ends in a newline."""
    machines = ", ".join(code(m.name) for m in report.machines)
    lines = [
        "# Roofline report",
        "",
        (
            f"{len(report.ops)} ops on {machines}, by opspec {words(report.version)}. "
            "Marks: (D) derived from the spec, (A) asserted in a machine file, (M) measured, (C) calibrated on the card. "
            "Times of the model are floors: no kernel is faster."
        ),
        "",
    ]
    for page in report.ops:
        lines += _page(page)
    return "\n".join(lines).rstrip() + "\n"


def _page(page: OpPage) -> Iterable[str]:
    yield from (f"## {code(page.name)}", "", f"{code(page.spec)}", "")
    if page.doc:
        yield from (words(page.doc), "")
    for note in page.notes:
        yield f"- {words(note)}"
    if page.formulas:
        yield from _table(
            ("quantity", "closed form (D)", "unit"),
            ((code(f.quantity), code(f.text), f.unit) for f in page.formulas),
        )
    for spot in page.spots:
        yield from _spot(spot)


def _spot(spot: Spot) -> Iterable[str]:
    launch = "A" if spot.machine.sources.get("launch.plain", "").startswith("asserted") else "D"
    yield from (f"### {code(spot.workload)} on {code(spot.machine.name)}", "", code(spot.shape), "")
    yield from _table(
        ("grouping", "bytes (D)", "ai (D)", "ai.tensor (D)", f"time (D, launch {launch})", "bound"),
        (
            (
                code(r.boundary) or "as written",
                number(r.size, "B"),
                number(r.ai, "FLOP/B"),
                number(r.ai_tensor, "FLOP/B"),
                number(r.time, "s"),
                r.bound,
            )
            for r in spot.readings
        ),
    )
    terms = ", ".join(f"{k} {number(v, 's')}" for k, v in spot.own.terms.items() if v)
    yield from (f"Each resource alone: {terms}.", "")
    for flip in spot.flips:
        yield f"- the bound flips with the grouping {words(flip)}"
    if spot.flips:
        yield ""
    if spot.advice:
        yield from _table(
            ("what would help", "saves at most (D)", "then bound by"),
            ((words(a.text), number(a.saves, "s"), a.bound) for a in spot.advice),
        )
    for m in spot.measured:
        yield from _measured(m, spot)


def _measured(m: Measurement, spot: Spot) -> Iterable[str]:
    where = f"Measured on {words(m.gpu)}" if m.gpu else "Not measured"
    if m.time is None:
        yield from (f"{where}: {words(m.status)}, {words(m.reason)} ({code(m.source)}).", "")
        return
    floor = m.floor or spot.own.time
    yield from (
        (
            f"{where}: **{number(m.time, 's')}** (M), {floor / m.time:.1%} of the floor {number(floor, 's')} (D) "
            f"({code(m.source)}; {code(m.dims)})."
        ),
        "",
    )
    if m.baseline:
        yield from (f"{words(m.baseline)} (M).", "")
    if m.ledger:
        yield from _table(
            ("where the time went", "time", "share"),
            ((words(n), number(s, "s"), f"{s / m.time:.1%}") for n, s in m.ledger),
        )
    for warning in m.warnings:
        yield f"- ⚠️ {words(warning)}"
    yield from (f"Missing: {words('; '.join(m.missing))}.", "") if m.missing else ()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(r)} |" for r in rows), ""]
