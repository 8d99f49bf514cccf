"""The evidence table: five rows, each with its minimum and what world models add, filled from the spec,
the pipeline and the results."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.analysis.evidence.decide import Decision, summary
from opspec.analysis.evidence.results import Results
from opspec.analysis.pipeline.report import Report
from opspec.analysis.pipeline.wording import bottleneck
from opspec.ir.composition import ROWS, Evidence, Row
from opspec.ir.program import Module

TITLES: dict[Row, str] = {
    "cost": "which cost is solved",
    "numbers": "numbers to compute again",
    "failure": "failure case",
    "level": "level of evidence",
    "acceptance": "acceptance",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """One row: what is on record, and what is added for world models."""

    row: Row
    title: str
    record: tuple[str, ...]
    world: tuple[str, ...]


def evidence_table(
    module: Module,
    evidence: Evidence,
    report: Report,
    results: Results | None = None,
    decision: Decision | None = None,
) -> tuple[EvidenceLine, ...]:
    """The five rows; without results only what the spec and the model say.

    Raises: Failure if a number can't be computed.
    """
    lines: list[EvidenceLine] = []
    for row in ROWS:
        record = [*evidence.row(row)]
        world = [*evidence.row(row, world=True)]
        match row:
            case "cost":
                record += _bounds(evidence, report)
            case "numbers":
                record += recompute(module, evidence)
            case "failure":
                record.append(bottleneck(report.variant(evidence.variant), report.base))
            case "level":
                record += [f"results: {results.level or 'not stated'}"] if results is not None else []
            case "acceptance":
                record += [summary(decision)] if decision is not None else []
                world += [f"{v.what}: {_word(v.holds)}" for v in decision.verdicts[1:]] if decision else []
        lines.append(EvidenceLine(row=row, title=TITLES[row], record=tuple(record), world=tuple(world)))
    return tuple(lines)


def _word(holds: bool | None) -> str:
    return "missing" if holds is None else "yes" if holds else "no"


def _bounds(evidence: Evidence, report: Report) -> list[str]:
    variant = report.variant(evidence.variant)
    base = {p.timed.name: p.timed for p in report.base.parts}
    found: list[str] = []
    for change in variant.changes:
        for label, t in (("before", base.get(change.name)), ("after", change.after)):
            if t is not None and t.bound is not None:
                found.append(f"{change.name} {label}: {t.bound.resource}-bound on {t.bound.machine}")
    return found


def recompute(module: Module, evidence: Evidence) -> list[str]:
    """Each number of the evidence, computed now.

    Raises: Failure if a question can't be answered.
    """
    if not evidence.numbers:
        return []
    from opspec.analysis.query import query
    from opspec.analysis.query.answer import show

    found: list[str] = []
    for n in evidence.numbers:
        runnable = module.runnable(n.op, n.workload)
        assert runnable is not None, "the front end has checked it"
        answer = query(module, runnable[0], n.text, workload=runnable[1], within=n.span)
        value = answer.symbolic if answer.value is None else show(answer.value, answer.unit)
        found.append(f"{n.op} @ {n.workload}: {n.text} = {value}")
    return found
