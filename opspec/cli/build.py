"""``opspec build``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from opspec.driver.build import Built, build


def run(options: argparse.Namespace) -> int:
    """Build; 1 if ``--check`` finds a difference."""
    from opspec.diagnostics.render import render_text
    from opspec.driver.targets import target

    targets = [] if options.target == "none" else [target(t.strip()) for t in options.target.split(",")]
    out = Path(options.out or ("debug" if options.debug else "generated"))
    report = build(options.paths, out, check=options.check, debug=options.debug)
    if report.warnings:
        print(render_text(report.warnings), file=sys.stderr)
    stale = False
    for built in report.built:
        stale |= bool(built.changed)
        print(_line(built, out, check=options.check))
        for op, boundary, reason in built.skipped:
            name = f"{op}__{boundary}" if boundary else op
            print(f"  {name}: not built: {reason}")
    if options.check:
        if stale:
            print("the output differs; run `opspec build` without --check and commit it", file=sys.stderr)
        return 1 if stale else 0
    if targets:
        from opspec.driver.resources import show_resources

        show_resources(report, targets, out)
    return 0


def _line(built: Built, out: Path, *, check: bool) -> str:
    where = (out / built.spec.package).as_posix()
    if not built.changed:
        return f"{built.spec.shown} -> {where}/  unchanged"
    verb = "would write" if check else "wrote"
    return f"{built.spec.shown} -> {where}/  {verb} {', '.join(built.changed)}"
