"""What the installed Triton makes of the first choices: registers, spills, shared memory, occupancy.

Figures go to the terminal and to an ignored cache that spares an unchanged kernel a second
compilation. Without triton the build says so and is done.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from opspec.diagnostics import Failure
from opspec.driver.build import Built, Report
from opspec.driver.compile import Compiled
from opspec.driver.files import read_text, write_atomically
from opspec.driver.targets import Target

HEADER = f"  {'kernel':34} {'workload':18} {'warps':>5} {'stages':>6} {'regs':>5} {'spills':>6} {'shared':>8} {'occupancy':>9}"


def show_resources(report: Report, targets: list[Target], out: Path) -> None:
    """Compile and print a table per target."""
    if find_spec("triton") is None or find_spec("torch") is None:
        print("not compiled: torch and triton are not installed")
        return
    path = out.parent / ".cache" / "opspec-resources.json"
    known = _load(path)
    from importlib.metadata import version

    triton = version("triton")
    fresh = dict(known)
    for target in targets:
        print(f"compiled for {target.name} by triton {triton}, without a GPU:")
        print(HEADER)
        for built in report.built:
            key = hashlib.sha256(f"{triton}{target.name}{built.files['kernel.py']}".encode()).hexdigest()
            rows = known.get(key)
            if rows is None:
                rows = _compile(built, target)
                fresh[key] = rows
            for row in rows:
                print(_line(row))
    if fresh != known:
        try:
            write_atomically(path, json.dumps(fresh, indent=1, sort_keys=True))
        except Failure:
            return


def _load(path: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        found = json.loads(read_text(path) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _compile(built: Built, target: Target) -> list[dict[str, Any]]:
    from opspec.driver.compile import compile_first_choices
    from opspec.driver.targets import limits
    from opspec.driver.verify import load_module
    from opspec.emit.package import build_package
    from opspec.frontend import load

    module = load(built.spec.path)
    package = build_package(module, built.spec.shown, limits())
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="opspec-compile-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(built.files["kernel.py"], encoding="utf-8")
        kernels = load_module(path)
        for (name, _), launches in package.launches.items():
            op = module.op(name)
            assert op is not None
            rows += [_row(c) for c in compile_first_choices(module, op, launches, kernels, target)]
    return rows


def _row(c: Compiled) -> dict[str, Any]:
    return {
        "kernel": c.kernel.lstrip("_"), "workload": c.workload, "warps": c.options["num_warps"],
        "stages": c.options["num_stages"], "registers": c.registers, "spills": c.spills,
        "shared": c.shared, "occupancy": c.occupancy, "wgmma": c.wgmma,
    }  # fmt: skip


def _line(row: dict[str, Any]) -> str:
    regs, spills, occupancy = row["registers"], row["spills"], row["occupancy"]
    return (
        f"  {row['kernel'][:34]:34} {row['workload'][:18]:18} {row['warps']:5} {row['stages']:6} "
        f"{'-' if regs is None else regs:>5} {'-' if spills is None else spills:>6} {row['shared']:8} "
        f"{'-' if occupancy is None else f'{occupancy:.0%}':>9}{'  wgmma' if row['wgmma'] else ''}"
    )
