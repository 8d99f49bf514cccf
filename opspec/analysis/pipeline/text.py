"""The report for a terminal and as Markdown."""

from __future__ import annotations

from opspec.analysis.pipeline import wording
from opspec.analysis.pipeline.report import Report
from opspec.analysis.pipeline.wording import Row


def to_text(report: Report) -> str:
    """For a terminal."""
    p, base = report.pipeline, report.base
    lines = [f"pipeline {p.name}" + (f": {p.doc.partition(chr(10))[0]}" if p.doc else "")]
    recorded = any(x.timed.start is not None for x in base.parts)
    lines += _table(wording.breakdown_rows(base, recorded=recorded))
    lines += _section("roofs", wording.roof_lines(report))
    for v in report.variants:
        first = v.doc.partition("\n")[0]
        lines += [
            "",
            f"variant {v.variant}" + (f": {first}" if first else ""),
            f"  {wording.headline(v, base)}",
        ]
        lines += [f"  {x}" for x in (*wording.ceiling_lines(v), wording.bottleneck(v, base))]
        lines += _section("waterfall", _table(wording.waterfall_rows(v, base)), indent=False)
        lines += _section("shares", _table(wording.share_rows(v, base)), indent=False)
        lines += _section("where the gain went", _table(wording.loss_rows(v)), indent=False)
    lines += _section("tokens", wording.ledger_lines(report))
    lines += _section("does not agree", [f"{f.where}: {f.text}" for f in report.flags])
    return "\n".join(lines)


def to_markdown(report: Report) -> str:
    """For a comment or a page."""
    p, base = report.pipeline, report.base
    recorded = any(x.timed.start is not None for x in base.parts)
    lines = [f"### Pipeline `{p.name}`", "", *([p.doc, ""] if p.doc else [])]
    lines += _markdown(wording.breakdown_rows(base, recorded=recorded))
    lines += _bullets(wording.roof_lines(report))
    for v in report.variants:
        lines += ["", f"#### Variant `{v.variant}`", "", f"**{wording.headline(v, base)}**", ""]
        lines += [f"- {x}" for x in (*wording.ceiling_lines(v), wording.bottleneck(v, base))]
        for rows in (wording.waterfall_rows(v, base), wording.share_rows(v, base), wording.loss_rows(v)):
            lines += ["", *_markdown(rows)] if rows else []
    lines += _bullets(wording.ledger_lines(report))
    lines += _bullets([f"**does not agree**: {f.where}: {f.text}" for f in report.flags])
    return "\n".join(lines)


def _section(title: str, lines: list[str], *, indent: bool = True) -> list[str]:
    return ["", title, *(f"  {x}" if indent else x for x in lines)] if lines else []


def _table(rows: list[Row]) -> list[str]:
    """Aligned columns: the first and the last to the left, numbers to the right."""
    if not rows:
        return []
    wide = [max(len(r[k]) for r in rows) for k in range(len(rows[0]))]
    numeric = [
        k > 0 and all(not r[k] or r[k][0] in "+-0123456789" for r in rows[1:]) for k in range(len(wide))
    ]
    return [
        "  "
        + "  ".join(
            c.rjust(w) if n else c.ljust(w) for c, w, n in zip(r, wide, numeric, strict=True)
        ).rstrip()
        for r in rows
    ]


def _markdown(rows: list[Row]) -> list[str]:
    head, *body = [tuple(c.replace("|", r"\|") for c in r) for r in rows]
    return [f"| {' | '.join(r)} |" for r in (head, tuple("---" for _ in head), *body)]


def _bullets(lines: list[str]) -> list[str]:
    return ["", *(f"- {x}" for x in lines)] if lines else []
