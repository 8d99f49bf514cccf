"""``opspec query``."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import Any

from opspec.cli.quick import without_collector
from opspec.driver.select import choose_op, dtypes, settings, split_target
from opspec.ir.program import Module, Op


def run(options: argparse.Namespace) -> int:
    """Answer one question about one op."""
    with without_collector():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from opspec.frontend import load

    target = split_target(options.spec)
    numbers, types = settings(options.set), dtypes(options.dtype)
    module = load(target.spec.path)
    op = choose_op(module, target, workload=options.at)

    from opspec.analysis.query import query

    traffic: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    if re.search(r"\btraffic\b", options.expr):
        traffic, notes = _traffic(op, options.boundary, types | _fixed(module, options.at))
    answer = query(
        module,
        op,
        options.expr,
        workload=options.at,
        settings=numbers,
        machine=options.machine,
        boundary=options.boundary,
        dtypes=types,
        traffic=traffic,
        why=options.why,
    )
    answer = replace(answer, notes=(*answer.notes, *notes))
    match options.format:
        case "json":
            import json

            print(json.dumps(answer.to_json(), indent=2, ensure_ascii=False))
        case "latex":
            print(answer.to_latex())
        case _:
            print(answer.to_text())
    return 0


def _traffic(op: Op, name: str, types: dict[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Bytes by kernel from the schedule, and what to know about them; nothing for a boundary of costs only."""
    from opspec.driver.traffic import traffic_of

    boundary = next((b for b in op.boundaries if b.name == name), None)
    if boundary is None or boundary.analysis:
        return {}, ()
    known = {p.name: [c.name for c in p.choices] for p in op.dtype_params}
    types = {k: v for k, v in types.items() if v in known.get(k, ())}
    return traffic_of(op, boundary, types), (
        "of the schedule that streams the most; tile sizes are symbols that `--set` takes",
    )


def _fixed(module: Module, workload: str | None) -> dict[str, str]:
    """The dtypes that a workload fixes."""
    return {k: d.name for w in module.workloads if w.name == workload for k, d in w.dtypes}
