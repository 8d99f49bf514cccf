"""``opspec pipeline``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from opspec.driver.select import Target, split_target
from opspec.ir.program import Module

if TYPE_CHECKING:
    from opspec.analysis.pipeline import Sources


def run(options: argparse.Namespace) -> int:
    """The end-to-end breakdown, what each variant makes of it, and what does not agree."""
    from opspec.analysis.pipeline import analyse, find_pipeline
    from opspec.frontend import load

    target = split_target(options.spec)
    module = load(target.spec.path)
    pipeline = find_pipeline(module, target.op)
    report = analyse(module, pipeline, sources(module, target, options), options.variant)
    match options.format:
        case "json":
            import json

            from opspec.analysis.pipeline.export import to_json

            print(json.dumps(to_json(report), indent=2, ensure_ascii=False))
        case "markdown":
            from opspec.analysis.pipeline.text import to_markdown

            print(to_markdown(report))
        case _:
            from opspec.analysis.pipeline.text import to_text

            print(to_text(report))
    return 0


def sources(module: Module, target: Target, options: argparse.Namespace) -> Sources:
    """Machine and result files of the command line.

    Raises: Failure if a machine or a file is not usable.
    """
    from pathlib import Path

    from opspec.analysis.pipeline import Sources
    from opspec.analysis.pipeline.results import check_wanted, result_op

    if options.machine is not None:
        from opspec.analysis.machine import machine_of

        machine_of(module, options.machine)
    results = {result_op(Path(p), p): p for p in options.results}
    for op, path in results.items():
        check_wanted(module, op, path)
    return Sources(
        module=module,
        folder=target.spec.path.resolve().parent,
        machine=options.machine or "",
        results=results,
    )
