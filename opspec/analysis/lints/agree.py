"""Statements of pipelines, variants and ledgers that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from opspec.analysis.lints.codes import DISAGREE, warning
from opspec.analysis.pipeline import Sources, analyse
from opspec.analysis.pipeline.codes import NO_TIME
from opspec.analysis.pipeline.consistency import Flag, count_tokens
from opspec.diagnostics import Diagnostic, Failure, Note
from opspec.ir.program import Module


def disagreements(module: Module, folder: Path) -> Iterator[Diagnostic]:
    """A warning for each contradiction; for a result that can't be used, too.

    A pipeline whose times need a machine that nobody names yet is left alone.
    """
    flags: dict[tuple[str, str], Flag] = {}
    for pipeline in module.pipelines:
        try:
            found = analyse(module, pipeline, Sources(module=module, folder=folder))
        except Failure as failure:
            yield from (replace(d, severity="warning") for d in failure.diagnostics if d.code is not NO_TIME)
            continue
        flags |= {(f.where, f.text): f for f in found.flags}
    flags |= {
        (t.flag.where, t.flag.text): t.flag
        for t in count_tokens(module, module.ledgers)
        if t.flag is not None
    }
    by_place: dict[tuple[int, str], list[Flag]] = {}
    for f in flags.values():
        by_place.setdefault((f.span.start, f.span.source.name) if f.span else (-1, f.where), []).append(f)
    for *others, last in by_place.values():  # one a place; the last flag compares the most
        told = warning(DISAGREE, f"{last.where}: {last.text}", last.span)
        yield replace(told, notes=tuple(Note(f.text) for f in others))
