"""``opspec bench`` of several specs: generate all drivers, and measure them in one process."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from opspec.cli.bench import check_names, need_torch, read_tuned
from opspec.cli.chosen import load_chosen, refuse, targets_of
from opspec.diagnostics import Failure
from opspec.driver.files import Spec, write_atomically


def run_suite(options: argparse.Namespace) -> int:
    """Measure what is asked for; the worst status, 2 if a spec can't be generated."""
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package
    from opspec.runtime.bench.model import UsageError
    from opspec.runtime.bench.suite import measure

    chosen, refused = load_chosen(targets_of(options.targets), options.op)
    check_names([w.name for c in chosen for op in c.ops for w in c.module.workloads_of(op.name)], options.at)
    need_torch()
    with tempfile.TemporaryDirectory(prefix="opspec-bench-") as folder:
        packages: dict[Path, list[str]] = {}
        for place, c in enumerate(chosen):
            try:
                package = build_package(c.module, c.spec.shown, limits())
            except Failure as failure:
                refused = refuse(failure)
                continue
            path = Path(folder) / str(place) / c.spec.package.name
            for name in ("kernel.py", "bench.py"):
                write_atomically(path / name, package.files[name])
            _place_tuned(options.tuned, c.spec, path)
            packages[path] = [op.name for op in c.ops]
        options.op = []  # which ops of which package is decided
        try:
            return max(refused, measure(packages, options)) if packages else refused
        except UsageError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2


def _place_tuned(tuned: str | None, spec: Spec, path: Path) -> None:
    """Put what ``opspec tune`` found beside the kernels: from its file, or from its folder of packages."""
    if tuned is None:
        return
    source = Path(tuned)
    if source.is_dir():
        source = source / spec.package / "tuned.json"
        if not source.is_file():
            return
    write_atomically(path / "tuned.json", read_tuned(source))
