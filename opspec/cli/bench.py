"""``opspec bench``: generate drivers and run them with this Python, each by itself or all of a library in one run."""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.files import NOT_FOUND, write_atomically
from opspec.driver.select import Target, choose_ops, split_target
from opspec.ir.program import Module, Op


def run(options: argparse.Namespace) -> int:
    """The worst status of a driver: 0 measured (or nothing to measure on), 1 wrong or impossible, 2 bad input."""
    _check_machine(options.machine)
    if is_suite(options):
        from opspec.cli.bench_suite import run_suite

        return run_suite(options)
    return _run_one(options)


def is_suite(options: argparse.Namespace) -> bool:
    """Whether several specs are asked for, or what only a run of several can do."""
    several = len(options.targets) > 1 or Path(options.targets[0]).is_dir()
    folder = options.json is not None and (options.json.endswith("/") or Path(options.json).is_dir())
    return several or folder or options.peers_from is not None or options.jobs is not None or options.resume


def _run_one(options: argparse.Namespace) -> int:
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package
    from opspec.frontend import load
    from opspec.runtime.bench.suite import start_worker

    target = split_target(options.targets[0])
    module = load(target.spec.path)
    ops = choose_ops(module, target)
    for name in options.op:
        choose_ops(module, Target(target.spec, name))
    check_workloads(module, ops, options.at)
    need_torch()
    package = build_package(module, target.spec.shown, limits())
    with tempfile.TemporaryDirectory(prefix="opspec-bench-") as folder:
        for name in ("kernel.py", "bench.py"):
            write_atomically(Path(folder) / name, package.files[name])
        if options.tuned:
            write_atomically(Path(folder) / "tuned.json", read_tuned(Path(options.tuned)))
        command = [sys.executable, str(Path(folder) / "bench.py"), *arguments(target, options)]
        status = start_worker(command)
    return status if status >= 0 else 128 - status


def read_tuned(path: Path) -> str:
    """The text of what ``opspec tune`` wrote."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"`{path}` can't be read: {error.strerror}"
        raise Failure(Diagnostic(code=NOT_FOUND, message=message, span=None)) from error


def arguments(target: Target, options: argparse.Namespace) -> list[str]:
    """The driver's command line for ours."""
    from opspec.runtime.bench import suite

    found = [f"--op={name}" for name in dict.fromkeys([*([target.op] if target.op else []), *options.op])]
    found += [f"--at={name}" for name in options.at]
    found += [f"--json={options.json}"] if options.json is not None else []
    found += [f"--peer={name}" for name in options.peer]
    return [*found, *suite.arguments(options)]


def check_workloads(module: Module, ops: tuple[Op, ...], wanted: list[str]) -> None:
    """Raise ``Failure`` for a workload that none of the ops has."""
    check_names([w.name for op in ops for w in module.workloads_of(op.name)], wanted)


def check_names(known: list[str], wanted: list[str]) -> None:
    """Raise ``Failure`` for a workload that is not among those known."""
    from opspec.analysis.query.context import unknown, written

    for name in wanted:
        if name not in known:
            raise unknown(name, known, written("at", name), "workload")


def _check_machine(name: str | None) -> None:
    if name is not None:
        from opspec.analysis.machine import load

        load(name)


def need_torch() -> None:
    """Raise ``Failure`` where torch or triton is not installed."""
    if find_spec("torch") is None or find_spec("triton") is None:
        from opspec.driver.verify import NO_TORCH

        message = "torch and triton are not installed, and the driver imports both"
        raise Failure(Diagnostic(code=NO_TORCH, message=message, span=None, help=NO_TORCH.fix))
