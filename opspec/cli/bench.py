"""``opspec bench``: generate the driver and run it with this Python."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.files import NOT_FOUND, write_atomically
from opspec.driver.select import Target, choose_ops, split_target
from opspec.ir.program import Module, Op


def run(options: argparse.Namespace) -> int:
    """The driver's exit status: 0 measured (or nothing to measure on), 1 wrong or impossible, 2 bad input."""
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package
    from opspec.frontend import load

    target = split_target(options.spec)
    module = load(target.spec.path)
    ops = choose_ops(module, target)
    check_workloads(module, ops, options.at)
    _check_machine(options.machine)
    _need_torch()
    package = build_package(module, target.spec.shown, limits())
    with tempfile.TemporaryDirectory(prefix="opspec-bench-") as folder:
        for name in ("kernel.py", "bench.py"):
            write_atomically(Path(folder) / name, package.files[name])
        if options.tuned:
            write_atomically(Path(folder) / "tuned.json", _tuned(Path(options.tuned)))
        return _wait([sys.executable, str(Path(folder) / "bench.py"), *arguments(target, options)])


def _tuned(path: Path) -> str:
    """The text of what ``opspec tune`` wrote."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"`{path}` can't be read: {error.strerror}"
        raise Failure(Diagnostic(code=NOT_FOUND, message=message, span=None)) from error


def arguments(target: Target, options: argparse.Namespace) -> list[str]:
    """The driver's command line for ours."""
    found = [f"--op={target.op}"] if target.op else []
    found += [f"--at={name}" for name in options.at]
    found += [
        f"--{k}={v}" for k, v in (("json", options.json), ("machine", options.machine)) if v is not None
    ]
    found += [f"--peer={name}" for name in options.peer]
    found += [f"--peers={options.peers}"] if options.peers else []
    found += ["--no-peers"] if options.no_peers else []
    found += ["--graph"] if options.graph else []
    found += ["--quick"] if options.quick else []
    return found


def check_workloads(module: Module, ops: tuple[Op, ...], wanted: list[str]) -> None:
    """Raise ``Failure`` for a workload that none of the ops has."""
    from opspec.analysis.query.context import unknown, written

    known = [w.name for op in ops for w in module.workloads_of(op.name)]
    for name in wanted:
        if name not in known:
            raise unknown(name, known, written("at", name), "workload")


def _check_machine(name: str | None) -> None:
    if name is not None:
        from opspec.analysis.machine import load

        load(name)


def _need_torch() -> None:
    if find_spec("torch") is None or find_spec("triton") is None:
        from opspec.driver.verify import NO_TORCH

        message = "torch and triton are not installed, and the driver imports both"
        raise Failure(Diagnostic(code=NO_TORCH, message=message, span=None, help=NO_TORCH.fix))


def _wait(command: list[str]) -> int:
    """Run the driver; an interrupt or a request to end is the driver's to answer, since it keeps what it has."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
    sys.stdout.flush()
    child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
    before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        while True:
            try:
                status = child.wait()
                break
            except KeyboardInterrupt:  # the terminal has told the driver, too
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
    return status if status >= 0 else 128 - status
