"""``opspec query``."""

from __future__ import annotations

import argparse

from opspec.cli.quick import without_collector
from opspec.driver.select import choose_op, dtypes, settings, split_target


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

    answer = query(
        module,
        op,
        options.expr,
        workload=options.at,
        settings=numbers,
        machine=options.machine,
        boundary=options.boundary,
        dtypes=types,
        why=options.why,
    )
    match options.format:
        case "json":
            import json

            print(json.dumps(answer.to_json(), indent=2, ensure_ascii=False))
        case "latex":
            print(answer.to_latex())
        case _:
            print(answer.to_text())
    return 0
