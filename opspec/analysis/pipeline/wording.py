"""The report's statements as rows and sentences, shared by text and Markdown."""

from __future__ import annotations

from opspec.analysis.pipeline.compare import Change, Comparison
from opspec.analysis.pipeline.numbers import gain, ms, percent, plain, rate, signed_ms
from opspec.analysis.pipeline.report import Report
from opspec.analysis.pipeline.timing import Timed
from opspec.analysis.pipeline.total import Breakdown

Row = tuple[str, ...]


def breakdown_rows(b: Breakdown, *, recorded: bool) -> list[Row]:
    """``stage, runs × each, time, share of the whole, where from``, and the whole last."""
    rows: list[Row] = [("stage", "runs", "time", "share", "from")]
    for p in b.parts:
        t = p.timed
        runs = "" if t.count == 1 and not t.runs else f"{plain(t.count)} × {ms(t.each)}"
        origin = t.provenance + (f": {t.source}" if t.source else "")
        rows.append((t.name, runs, ms(t.seconds), percent(p.share), origin))
    if b.shared:
        rows.append(("in overlap", "", ms(b.shared), percent(b.shared / b.total), "stages hide each other"))
    if b.rest:
        what = "idle" if recorded else "not attributed"
        rows.append((what, "", ms(b.rest), percent(b.rest / b.total), "wall time in no stage"))
    rows.append(("end to end", "", ms(b.total), "100.00%", _added(b)))
    return rows


def _added(b: Breakdown) -> str:
    return (
        f"busy {ms(b.busy)}; the stages' times add up to {ms(b.added)}" if b.busy != b.added or b.rest else ""
    )


def roof_lines(report: Report) -> list[str]:
    """What the model says of the stages that run an op: bound, achieved rate, distance."""
    lines: list[str] = []
    seen: set[str] = set()
    for label, b in (("", report.base), *((v.variant, v.after) for v in report.variants)):
        for p in b.parts:
            text = _roof(p.timed)
            if text and text not in seen:
                seen.add(text)
                lines.append(f"{p.timed.name}{f' ({label})' if label else ''}: {text}")
    return lines


def _roof(t: Timed) -> str:
    if t.bound is None:
        return ""
    b = t.bound
    text = f"{t.runs} takes at least {ms(b.floor)} on {b.machine}, bound by {b.resource}"
    if t.provenance == "derived":
        text += f" ({ms(b.time)} with launches)"
    else:
        text += (
            f"; {ms(t.each)} {t.provenance} is {percent(b.floor / t.each)} of that roof, {ms(t.each - b.floor)} above it, "
            f"at {rate(b.bytes / t.each, 'B/s')} and {rate(b.flops / t.each, 'FLOP/s')} (tensor)"
        )
    worst, dims = (t.worst, t.worst_dims) if t.worst is not None else (b.worst, b.worst_dims)
    if worst is not None:
        text += f"; mean over the workload's shapes, worst {ms(worst)} at {dims}"
    return "; ".join([text, *t.notes])


def headline(v: Comparison, base: Breakdown) -> str:
    """The kernel's gain and the end-to-end gain, never one without the other."""
    end = f"end to end {gain(v.gain)} ({ms(base.total)} → {ms(v.after.total)}, {_saved(v)})"
    kernels = [
        f"{c.name} {gain(c.kernel)} a run{_mixed(c)}"
        + (f", {gain(c.stage)} for all runs" if c.stage != c.kernel else "")
        for c in v.changes
        if c.kernel is not None and c.kernel != 1
    ]
    return f"{'; '.join(kernels)}; {end}" if kernels else end


def _mixed(c: Change) -> str:
    """What a gain between numbers of two kinds is."""
    if c.before is None or c.before.provenance == c.after.provenance:
        return ""
    return f" ({c.before.provenance} → {c.after.provenance}{', a bound' if c.after.provenance == 'derived' else ''})"


def _saved(v: Comparison) -> str:
    return f"saves {ms(v.saved)}" if v.saved >= 0 else f"costs {ms(-v.saved)}"


def ceiling_lines(v: Comparison) -> list[str]:
    """Amdahl's ceilings."""
    lines = [
        f"ceiling with {c.name} free: {gain(c.ceiling)}"
        for c in v.changes
        if c.before is not None and (c.stage is None or c.stage > 1)
    ]
    if len(lines) > 1:
        lines.append(f"ceiling with all of them free: {gain(v.ceiling)}")
    return lines


def waterfall_rows(v: Comparison, base: Breakdown) -> list[Row]:
    """``what, change, end to end behind it``."""
    rows: list[Row] = [("step", "change", "end to end"), ("before", "", ms(base.total))]
    rows += [(s.what, signed_ms(s.delta), ms(s.total)) for s in v.steps]
    return rows


def share_rows(v: Comparison, base: Breakdown) -> list[Row]:
    """``stage, before, share, after, share``."""
    rows: list[Row] = [("stage", "before", "share", "after", "share")]
    old = {p.timed.name: p for p in base.parts}
    for p in v.after.parts:
        b = old.get(p.timed.name)
        first = (ms(b.timed.seconds), percent(b.share)) if b is not None else ("", "")
        rows.append((p.timed.name, *first, ms(p.timed.seconds), percent(p.share)))
    rows.append(("end to end", ms(base.total), "100.00%", ms(v.after.total), "100.00%"))
    return rows


def loss_rows(v: Comparison) -> list[Row]:
    """Where the gain of the kernel went: ``part, ms, why``, and the sum."""
    if not v.losses:
        return []
    total = sum((x.seconds for x in v.losses), start=v.after.total * 0)
    return [
        ("part", "lost", "why"),
        *((x.what, ms(x.seconds), x.why) for x in v.losses),
        (
            "together",
            ms(total),
            f"{ms(v.after.total)} instead of {ms(v.after.total - total)}, {gain(v.kernel)} everywhere",
        ),
    ]


def bottleneck(v: Comparison, base: Breakdown) -> str:
    """What is largest now."""
    old, new = base.largest, v.after.largest
    now = f"{new.timed.name} ({ms(new.exposed)}, {percent(new.share)})"
    ties = [
        p.timed.name for p in v.after.parts if p.exposed == new.exposed and p.timed.name != new.timed.name
    ]
    also = f", as large as {', '.join(ties)}" if ties else ""
    if old.timed.name == new.timed.name:
        return f"largest before and after: {now}{also}; it was {percent(old.share)}"
    return f"new bottleneck: {now}{also}; before it was {old.timed.name} ({ms(old.exposed)}, {percent(old.share)})"


def ledger_lines(report: Report) -> list[str]:
    """Every ledger as a sum."""
    lines: list[str] = []
    for t in report.ledgers:
        parts = " + ".join(
            f"{e.name} {'≥ ' if e.open else ''}{e.tokens} ({e.text})" for e in t.ledger.entries
        )
        verdict = (
            "does not add up"
            if t.flag
            else "at least"
            if any(e.open for e in t.ledger.entries)
            else "adds up"
        )
        lines.append(
            f"{t.ledger.name}: {parts} = {t.stated} of {t.ledger.workload}.{t.ledger.dim} = {t.extent}: {verdict}"
        )
    return lines
