"""Evidence of a spec on the page: the five rows, and the gate. Without results every metric is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opspec.analysis.evidence import Results, decide, evidence_table, load_results
from opspec.analysis.evidence.results import SCHEMA
from opspec.analysis.pipeline import Sources, analyse, find_pipeline
from opspec.analysis.pipeline.codes import unknown
from opspec.analysis.report.model import EvidencePage, EvidenceRow, Provenance
from opspec.ir.composition import Evidence, Row
from opspec.ir.program import Module

_WORDS = {True: "yes", False: "no", None: "missing"}


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file of results by the schema ``opspec.evidence/1``: its path, and what it says that it is about."""

    path: str
    spec: str
    evidence: str


def peek(path: str) -> EvidenceFile | None:
    """The file if it holds evidence; None for anything else, readable or not."""
    try:
        data = json.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return None
    return EvidenceFile(path, str(data.get("spec", "")), str(data.get("evidence", "")))


def gather_evidence(
    module: Module,
    spec: str,
    folder: Path,
    machine: str,
    results: Mapping[str, str],
    files: Sequence[EvidenceFile],
) -> tuple[EvidencePage, ...]:
    """A page for each evidence block. ``files``: those about this spec; the others as in ``gather_pipelines``.

    Raises: Failure if a file does not fit its evidence, or a number can't be computed.
    """
    known = [e.name for e in module.evidence]
    for f in files:
        if f.evidence not in known:
            raise unknown(f.evidence, known, "evidence")
    paths = {f.evidence: f.path for f in files}
    pages: list[EvidencePage] = []
    for evidence in module.evidence:
        pipeline = find_pipeline(module, evidence.pipeline)
        sources = Sources(
            module=module, folder=folder, machine="" if pipeline.machine else machine, results=results or None
        )
        pages.append(_page(module, spec, sources, evidence, paths.get(evidence.name, "")))
    return tuple(pages)


def _page(module: Module, spec: str, sources: Sources, evidence: Evidence, path: str) -> EvidencePage:
    given = load_results(path, module, evidence) if path else None
    results = given or Results(level="", metrics={}, base={}, environment={}, sources={})
    report = analyse(module, find_pipeline(module, evidence.pipeline), sources, evidence.variant)
    decision = decide(evidence, results, report)
    table = evidence_table(module, evidence, report, given, decision)
    return EvidencePage(
        name=evidence.name,
        spec=spec,
        subject=f"{evidence.pipeline}.{evidence.variant}",
        source=path,
        open=decision.open,
        rows=tuple(
            EvidenceRow(
                title=line.title,
                record=_marked(line.row, line.record, evidence.row(line.row)),
                world=_marked(line.row, line.world, evidence.row(line.row, world=True)),
            )
            for line in table
        ),
        verdicts=tuple((v.what, _WORDS[v.holds], v.reason) for v in decision.verdicts),
        warnings=decision.warnings if path else (),
    )


def _marked(row: Row, texts: Sequence[str], stated: Sequence[str]) -> tuple[tuple[str, Provenance], ...]:
    """What the author states is asserted, what was computed is derived, and the level of results is measured."""
    more: Provenance = "measured" if row == "level" else "derived"
    return tuple((text, "asserted" if k < len(stated) else more) for k, text in enumerate(texts))
