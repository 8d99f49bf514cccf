"""``opspec report``: specs and results → the page's content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from opspec.analysis.lints.memory import materialised
from opspec.analysis.lints.release import gaps_of
from opspec.analysis.machine import Machine
from opspec.analysis.machine import load as load_machine
from opspec.analysis.report.evidence import gather_evidence, peek
from opspec.analysis.report.gather import gather
from opspec.analysis.report.model import EvidencePage, OpPage, PipelinePage, Report
from opspec.analysis.report.pipelines import gather_pipelines
from opspec.analysis.report.results import Result, other_spec, read_result
from opspec.driver.files import Spec, find_specs
from opspec.driver.library import Relative, library_of, relatives_in
from opspec.driver.questions.reuse import reuse
from opspec.emit.package import spec_hash
from opspec.frontend import load
from opspec.ir.program import Module
from opspec.version import VERSION

USUAL = "h200"


def make_report(paths: Sequence[str], machines: Sequence[str]) -> Report:
    """The report of results (``.json``) and specs; of all of ``specs/`` if neither is given.

    A result brings its spec and its machine along.

    Raises: Failure for what is not there, broken, or does not belong together.
    """
    given = [p for p in paths if p.endswith(".json")]
    proofs = tuple(f for f in map(peek, given) if f is not None)
    results = tuple(read_result(p) for p in given if p not in {f.path for f in proofs})
    named = [p for p in paths if not p.endswith(".json")]
    named += [f.spec for f in proofs if f.spec not in named]
    specs = find_specs(named or ([] if results else ["specs"]))
    specs += _specs_of(results, {s.path.resolve() for s in specs})
    chosen = _machines(machines, results)
    library = relatives_in(library_of(specs[0])) if specs else []
    pages: list[OpPage] = []
    pipelines: list[PipelinePage] = []
    evidence: list[EvidencePage] = []
    for spec in specs:
        module = load(spec.path)
        mine = tuple(r for r in results if _is(r, spec))
        for r in mine:
            if r.spec_hash != spec_hash(module):
                raise other_spec(r, "which has changed since")
            if module.op(r.data["op"]) is None:
                raise other_spec(r, f"and it has no op `{r.data['op']}`")
        pages += _asked(gather(module, spec.shown, chosen, mine), module, spec, library)
        files = {str(r.data["op"]): r.source for r in mine if r.data["status"] == "measured"}
        folder = spec.path.resolve().parent
        pipelines += gather_pipelines(module, spec.shown, folder, chosen[0].name, files)
        about = [f for f in proofs if Path(f.spec).resolve() == spec.path.resolve()]
        proven = gather_evidence(module, spec.shown, folder, chosen[0].name, files, about)
        evidence += (_with_gaps(e, module, folder) for e in proven)
    return Report(
        version=VERSION,
        machines=chosen,
        ops=tuple(pages),
        pipelines=tuple(pipelines),
        evidence=tuple(evidence),
    )


def _asked(
    pages: Sequence[OpPage], module: Module, spec: Spec, library: Sequence[Relative]
) -> Iterator[OpPage]:
    """Pages with the questions that make an op reusable, and with what `opspec check` warns of."""
    warned = list(materialised(module))
    for page in pages:
        op = module.op(page.name)
        assert op is not None
        mine = tuple(d.message for d in warned if f"`{op.name}`" in d.message)
        yield replace(page, reuse=reuse(module, op, spec.shown, library), notes=(*page.notes, *mine))


def _with_gaps(page: EvidencePage, module: Module, folder: Path) -> EvidencePage:
    """Evidence with its usual gaps among the warnings."""
    evidence = next(e for e in module.evidence if e.name == page.name)
    gaps = tuple(d.message for d in gaps_of(module, evidence, folder))
    return replace(page, warnings=(*page.warnings, *gaps))


def _specs_of(results: Sequence[Result], known: set[Path]) -> list[Spec]:
    """Specs of the results that are not named already."""
    found: dict[Path, Spec] = {}
    for r in results:
        path = Path(r.spec)
        if not path.is_file():
            raise other_spec(r, "and there is no such file below the working folder")
        if path.resolve() not in known:
            found.setdefault(path.resolve(), find_specs([r.spec])[0])
    return list(found.values())


def _is(result: Result, spec: Spec) -> bool:
    return Path(result.spec).resolve() == spec.path.resolve()


def _machines(names: Sequence[str], results: Sequence[Result]) -> tuple[Machine, ...]:
    """The machines that are named, else those of the results, else the usual one."""
    from opspec.analysis.machine import available

    wanted = list(names) or [r.machine for r in results if r.machine in available()] or [USUAL]
    return tuple(load_machine(n) for n in dict.fromkeys(wanted))
