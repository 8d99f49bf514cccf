"""Everything a change must pass, in one command: ``python -m tools.check``.

Runs each step below as its own process from the root of the checkout, prints its output as it comes,
then one line per step, and exits 1 if any failed. ``--only`` picks steps, ``--root`` checks another tree.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One check: arguments for this Python, run in the root. ``fix`` says how to mend a failure."""

    name: str
    arguments: tuple[str, ...]
    fix: str


def entry(module: str, function: str) -> tuple[str, str]:
    """The arguments that start a console entry point without looking for its script on PATH."""
    return "-c", f"import sys; from {module} import {function}; sys.exit({function}())"


STEPS = (
    Step(name="format", arguments=("-m", "ruff", "format", "--check", "."), fix="ruff format ."),
    Step(
        name="specs",
        arguments=(*entry("opspec.cli", "main"), "fmt", "specs/", "opspec/prelude/", "--check"),
        fix="opspec fmt specs/ opspec/prelude/",
    ),
    Step(name="lint", arguments=("-m", "ruff", "check", "."), fix="ruff check --fix ."),
    Step(name="types", arguments=("-m", "mypy"), fix="mend the type, or say why in an override"),
    Step(
        name="imports",
        arguments=entry("importlinter.cli", "lint_imports_command"),
        fix="move the code to the layer that may hold it",
    ),
    Step(
        name="tests",
        arguments=("-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"),
        fix="pytest -x --lf",
    ),
    Step(
        name="generated",
        arguments=(*entry("opspec.cli", "main"), "build", "specs/", "--check"),
        fix="opspec build specs/, read the diff, commit it",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the steps; 0 if all passed, 1 if one failed."""
    names = [step.name for step in STEPS]
    parser = argparse.ArgumentParser(
        prog="python -m tools.check", description="Everything a change must pass"
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--only", action="append", choices=names, metavar="STEP", help=", ".join(names))
    options = parser.parse_args(argv)
    chosen = [step for step in STEPS if not options.only or step.name in options.only]

    failed: list[Step] = []
    lines: list[str] = []
    for step in chosen:
        print(f"\n── {step.name}", flush=True)
        start = time.monotonic()
        passed = run(step, options.root)
        lines.append(f"{'pass' if passed else 'FAIL'}  {step.name:<10} {time.monotonic() - start:6.1f} s")
        if not passed:
            failed.append(step)

    print("\n" + "\n".join(lines))
    for step in failed:
        print(f"{step.name}: try `{step.fix}`")
    return 1 if failed else 0


def run(step: Step, root: Path) -> bool:
    """Run one step in ``root`` with this interpreter; whether it passed."""
    path = os.pathsep.join(part for part in (str(root), os.environ.get("PYTHONPATH", "")) if part)
    command = [sys.executable, *step.arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=root, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    raise SystemExit(main())
