"""A decision for a terminal, as Markdown and as JSON."""

from __future__ import annotations

from typing import Any

from opspec.analysis.evidence.decide import Decision, summary
from opspec.analysis.evidence.table import EvidenceLine

SCHEMA = "opspec.gate/1"
_MARKS = {True: "yes", False: "NO", None: "MISSING"}


def to_text(decision: Decision, table: tuple[EvidenceLine, ...]) -> str:
    """Reasons first, the table behind them."""
    e = decision.evidence
    lines = [
        f"{'open' if decision.open else 'closed'}: {e.pipeline}.{e.variant} by {e.name}; {summary(decision)}"
    ]
    wide = max(len(v.what) for v in decision.verdicts)
    lines += [f"  {_MARKS[v.holds]:<7}  {v.what:<{wide}}  {v.reason}" for v in decision.verdicts]
    lines += [f"  warning: {w}" for w in decision.warnings]
    lines.append("")
    for line in table:
        lines.append(line.title)
        lines += [f"  {x}" for x in line.record]
        lines += [f"  world model: {x}" for x in line.world]
    return "\n".join(lines)


def to_markdown(decision: Decision, table: tuple[EvidenceLine, ...]) -> str:
    """For a comment or a page."""
    e = decision.evidence
    lines = [
        f"### Gate `{e.name}`: {'open' if decision.open else 'closed'}",
        "",
        f"`{e.pipeline}.{e.variant}`: {summary(decision)}",
        "",
        "| condition | | reason |",
        "| --- | --- | --- |",
        *(f"| {_cell(v.what)} | {_MARKS[v.holds]} | {_cell(v.reason)} |" for v in decision.verdicts),
        "",
        *table_lines(table),
        *(f"- warning: {w}" for w in decision.warnings),
    ]
    return "\n".join(lines)


def table_lines(table: tuple[EvidenceLine, ...]) -> list[str]:
    """The five rows in Markdown."""
    lines = ["| evidence | on record | added for world models |", "| --- | --- | --- |"]
    lines += [
        f"| {t.title} | {'<br>'.join(map(_cell, t.record))} | {'<br>'.join(map(_cell, t.world))} |"
        for t in table
    ]
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace("\n", " ")


def to_json(decision: Decision, table: tuple[EvidenceLine, ...]) -> dict[str, Any]:
    """``open``, the verdicts (``holds`` is null where evidence is missing) and the table."""
    e = decision.evidence
    return {
        "schema": SCHEMA,
        "evidence": e.name,
        "pipeline": e.pipeline,
        "variant": e.variant,
        "open": decision.open,
        "kernel_gain": None if decision.comparison.kernel is None else float(decision.comparison.kernel),
        "end_to_end_gain": float(decision.comparison.gain),
        "verdicts": [{"what": v.what, "holds": v.holds, "reason": v.reason} for v in decision.verdicts],
        "table": [
            {"row": t.row, "title": t.title, "record": list(t.record), "world": list(t.world)} for t in table
        ],
        "warnings": list(decision.warnings),
    }
