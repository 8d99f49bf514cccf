"""``opspec check``."""

from __future__ import annotations

import argparse
import os
import sys

from opspec.cli.quick import without_collector
from opspec.diagnostics import Diagnostic, Failure, render_github, render_json, render_text
from opspec.driver.files import Spec, find_specs


def run(options: argparse.Namespace) -> int:
    """Check every spec: 2 if one is broken, else 1 if a budget does not hold; warnings are shown, no more."""
    with without_collector():
        from opspec.frontend.loading import ordered

    try:
        specs = find_specs(options.paths)
    except Failure as failure:
        if options.format == "sarif":  # whoever reads the log gets one
            print(_sarif(failure.diagnostics), end="")
            return 2
        raise
    found: list[Diagnostic] = []
    status, ops, budgets = 0, 0, 0
    for spec in specs:
        with without_collector():
            verdict = check_spec(spec)
        found += verdict[0]
        status = max(status, verdict[1])
        ops += verdict[2]
        budgets += verdict[3]
    diagnostics = ordered(found)
    match options.format:
        case "json":
            print(render_json(diagnostics), end="")
        case "github":
            print(render_github(diagnostics), end="")
        case "sarif":
            print(_sarif(diagnostics), end="")
        case _:
            colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            text = render_text(diagnostics, colour=colour)
            print(text + ("\n" if text else ""), end="")
            print(_summary(len(specs), ops, budgets, status))
    return status


def check_spec(spec: Spec) -> tuple[tuple[Diagnostic, ...], int, int, int]:
    """Diagnostics, exit status, ops and budgets of one spec."""
    from opspec.frontend import load_with_warnings

    try:
        module, warnings = load_with_warnings(spec.path)
    except Failure as failure:
        return failure.diagnostics, 2, 0, 0
    from opspec.schedule.prepare import refusals

    refused = refusals(module)
    if refused:
        return (*warnings, *refused), 2, 0, 0
    several = any(len(op.boundaries[0].kernels) > 1 for op in module.ops)
    if module.pipelines or module.evidence or module.ledgers or several:
        from opspec.analysis.lints import lints

        warnings = (*warnings, *lints(module, spec.path.resolve().parent))
    if not module.expectations:
        return warnings, 0, len(module.ops), 0

    from opspec.analysis.expectations import check_expectations, is_budget

    broken = check_expectations(module)
    status = 0 if not broken else 1 if all(map(is_budget, broken)) else 2
    return (*warnings, *broken), status, len(module.ops), len(module.expectations)


def _sarif(diagnostics: tuple[Diagnostic, ...]) -> str:
    from opspec.diagnostics.sarif import render_sarif
    from opspec.driver.codes import all_codes, page
    from opspec.version import VERSION

    rules = all_codes()
    return render_sarif(diagnostics, rules, {name: page(code) for name, code in rules.items()}, VERSION)


def _summary(specs: int, ops: int, budgets: int, status: int) -> str:
    counts = f"{_count(specs, 'spec')}, {_count(ops, 'op')}, {_count(budgets, 'budget')}"
    return f"{counts}: {('all good', 'a budget does not hold', 'not accepted')[status]}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
