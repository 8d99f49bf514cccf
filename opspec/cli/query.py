"""``opspec query``."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from opspec.cli.quick import without_collector
from opspec.diagnostics import Failure
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

    if options.save and not options.plot:
        raise _no_range("`--save` needs the range of a plot, `--plot T=1..65536`", options.save)
    traffic: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    if re.search(r"\btraffic\b|\btime\.l2\b", options.expr):
        traffic, notes = _traffic(op, options.boundary, types | _fixed(module, options.at))
    about: dict[str, Any] = {
        "workload": options.at,
        "settings": numbers,
        "machine": options.machine,
        "boundary": options.boundary,
        "dtypes": types,
        "traffic": traffic,
    }
    if options.plot:
        return _plot(module, op, options, about, notes)
    answer = query(module, op, options.expr, why=options.why, **about)
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


def _plot(
    module: Module, op: Op, options: argparse.Namespace, about: dict[str, Any], notes: tuple[str, ...]
) -> int:
    """Draw the answer over a range: in the terminal, as data, or into a file."""
    from opspec.analysis.plot.sweep import read_range, sweep
    from opspec.analysis.query.question import prepare

    over = read_range(options.plot)
    suffix = Path(options.save).suffix.lower().removeprefix(".") if options.save else ""
    if options.save and suffix not in ("png", "svg"):
        raise _no_range("a picture's name ends in `.png` or `.svg`", options.save)
    if options.format == "latex":
        raise _no_range("a plot is text, JSON or a picture; for LaTeX save an `.svg`", options.plot)
    where = ", ".join(
        text
        for text in (
            options.at and f"at {options.at}",
            ", ".join(f"{k} = {v}" for k, v in about["settings"].items() if k != over[0]),
            options.boundary and f"as {options.boundary}",
            options.machine and f"on {Path(options.machine).stem}",
        )
        if text
    )
    plot = sweep(prepare(module, op, options.expr, **about), options.expr, over, where)
    plot = replace(plot, notes=(*plot.notes, *notes))
    if suffix:
        from opspec.analysis.plot.picture import to_picture
        from opspec.driver.files import write_atomically

        write_atomically(Path(options.save), to_picture(plot, suffix))
        print(options.save)
    elif options.format == "json":
        import json

        print(json.dumps(plot.to_json(), indent=2, ensure_ascii=False))
    else:
        import shutil

        from opspec.analysis.plot.terminal import to_text

        print(to_text(plot, min(110, shutil.get_terminal_size().columns)))
    return 0


def _no_range(message: str, text: str) -> Failure:
    from opspec.analysis.codes import BAD_RANGE
    from opspec.analysis.query.context import refuse, written

    return refuse(BAD_RANGE, message, written("plot", text))


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
