"""The report as Markdown: the same content without the plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opspec.analysis.report.marks import LETTERS, of_ledger, of_term, rates
from opspec.analysis.report.model import (
    EvidencePage,
    Measurement,
    OpPage,
    PipelinePage,
    Provenance,
    Report,
    Spot,
)
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
            "Marks: (D) derived from the spec, (A) asserted in a spec or a machine file, (M) measured, (C) calibrated on the card. "
            "Times of the model are floors: no kernel is faster."
        ),
        "",
    ]
    for pipeline in report.pipelines:
        lines += _pipeline(pipeline)
    for evidence in report.evidence:
        lines += _evidence(evidence)
    for page in report.ops:
        lines += _page(page)
    return "\n".join(lines).rstrip() + "\n"


def _pipeline(p: PipelinePage) -> Iterable[str]:
    yield from (f"## {code(p.name)}, end to end", "", code(p.spec), "")
    if p.doc:
        yield from (words(p.doc), "")
    rows = [
        (
            code(s.name),
            s.runs,
            f"{number(s.seconds, 's')} ({LETTERS[s.provenance]})",
            f"{s.share:.2%}",
            words(s.source),
        )
        for s in p.stages
    ]
    rest = f"{number(p.rest, 's')} in no stage" if p.rest else ""
    rows.append(("end to end", "", f"{number(p.total, 's')} (D)", "", rest))
    yield from _table(("stage", "runs", "time", "share", "from"), rows)
    for v in p.variants:
        kernel = f"The largest gain of a stage's run is {v.kernel:.5g}× (D); " if v.kernel else ""
        ceiling = f", {v.ceiling:.5g}× (D) at most if what it speeds up were free" if v.ceiling else ""
        times = f"{number(p.total, 's')} → {number(v.after, 's')}"
        yield from (f"### {code(v.name)}", "")
        if v.doc:
            yield from (words(v.doc), "")
        yield from (f"{kernel}**end to end {v.gain:.5g}×** (D), {times}{ceiling}.", "")
        steps = ((words(a), f"{1e3 * b:+.5g} ms", number(c, "s")) for a, b, c in v.steps)
        yield from _table(("change", "by (D)", "end to end (D)"), steps)
        if v.losses:
            losses = ((words(a), number(b, "s"), words(c)) for a, b, c in v.losses)
            yield from _table(("why the whole gains less", "time (D)", ""), losses)
    for flag in p.flags:
        yield f"- ⚠️ does not agree: {words(flag)}"
    yield ""


def _evidence(e: EvidencePage) -> Iterable[str]:
    state = "open" if e.open else "closed"
    yield from (
        f"## Evidence {code(e.name)}: the gate is {state}",
        "",
        f"{code(e.spec)}, {code(e.subject)}",
        "",
    )
    yield from _table(("condition", "holds", "reason"), ((words(a), b, words(c)) for a, b, c in e.verdicts))

    def cell(texts: tuple[tuple[str, Provenance], ...]) -> str:
        return "<br>".join(f"{words(text)} ({LETTERS[kind]})" for text, kind in texts)

    yield from _table(
        ("evidence", "on record", "added for world models"),
        ((r.title, cell(r.record), cell(r.world)) for r in e.rows),
    )
    for warning in e.warnings:
        yield f"- ⚠️ {words(warning)}"
    yield f"Results: {code(e.source) if e.source else 'none are given, so every metric is missing'}."
    yield ""


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
    for question, sentences in page.reuse:
        yield from (f"**{question}** (D)", "", *(f"- {words(s)}" for s in sentences), "")
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
    terms = ", ".join(
        f"{k} {number(v, 's')} ({of_term(spot.machine, k)})" for k, v in spot.own.terms.items() if v
    )
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
    if rates(m):
        yield from (f"Achieved: {', '.join(f'{r} (M)' for r in rates(m))}.", "")
    if m.baseline:
        yield from (f"{words(m.baseline)} (M).", "")
    if m.ledger:
        yield from _table(
            ("where the time went", "time", "share"),
            ((words(n), f"{number(s, 's')} ({of_ledger(n)})", f"{s / m.time:.1%}") for n, s in m.ledger),
        )
    for warning in m.warnings:
        yield f"- ⚠️ {words(warning)}"
    yield from (f"Missing: {words('; '.join(m.missing))}.", "") if m.missing else ()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(r)} |" for r in rows), ""]
