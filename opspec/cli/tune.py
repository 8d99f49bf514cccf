"""``opspec tune``: find faster launch options on the GPU that is there."""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from opspec.cli.bench import check_workloads
from opspec.driver.files import write_atomically
from opspec.driver.select import choose_ops, split_target


def run(options: argparse.Namespace) -> int:
    """0 tuned (or nothing is faster), 1 if an untuned kernel is wrong, 2 without a GPU or for bad input."""
    from opspec.driver.targets import limits
    from opspec.driver.tune import Subject, store, tune
    from opspec.driver.verify import prepare
    from opspec.emit.launcher import function_name
    from opspec.emit.package import build_package
    from opspec.frontend import load

    target = split_target(options.spec)
    module = load(target.spec.path)
    ops = choose_ops(module, target)
    check_workloads(module, ops, options.at)
    prepare("cuda")
    package = build_package(module, target.spec.shown, limits())
    drivers = _drivers(package.files)
    bench, device, own = _open(options.budget)
    outcomes: list[Any] = []
    for op in ops:
        driver = next((d for d in drivers if d.op == op.name), None)
        if driver is None:
            continue
        subject = Subject(
            op=op,
            driver=driver,
            launches=package.launches[op.name, ""],
            name=function_name(op, ""),
            limits=own,
        )
        for case in _cases(driver, options.at):
            print(f"{op.name} {case.workload}  {_shape(case)}", flush=True)
            for outcome in tune(
                subject, case, bench, device=device, count=options.candidates, progress=_progress
            ):
                _progress("")
                print(line(outcome), flush=True)
                outcomes.append(outcome)
    path = Path(options.out) / target.spec.package / "tuned.json"
    store(path, package.files["kernel.py"], target.spec.shown, outcomes)
    kernel = path.with_name("kernel.py")
    if not kernel.is_file() or kernel.read_text(encoding="utf-8") != package.files["kernel.py"]:
        print(f"{kernel} is not what was tuned; `opspec build {options.spec}` makes it so", file=sys.stderr)
    print(f"wrote {path}")
    return 1 if any(o.fault for o in outcomes) else 0


def line(outcome: Any) -> str:
    """One kernel block's outcome as a person reads it."""
    refused = f", {len(outcome.refused)} refused" if outcome.refused else ""
    counts = f"{outcome.tried} tried{refused}"
    if outcome.fault:
        return f"  {outcome.kernel:24} WRONG untuned: {outcome.fault}"
    if outcome.best is None:
        return f"  {outcome.kernel:24} {outcome.untuned * 1e6:9.1f} µs, nothing is faster   {counts}"
    gain = outcome.tuned / outcome.untuned - 1
    return (
        f"  {outcome.kernel:24} {outcome.untuned * 1e6:9.1f} µs → {outcome.tuned * 1e6:.1f} µs ({gain:+.1%})"
        f"   {outcome.best.variant}: {outcome.best.words}   {counts}"
    )


def _drivers(files: dict[str, str]) -> list[Any]:
    """The package's drivers, loaded from a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="opspec-tune-") as folder:
        for name in ("kernel.py", "bench.py"):
            write_atomically(Path(folder) / name, files[name])
        sys.path.insert(0, folder)
        try:
            module = import_module("bench")
        finally:
            sys.path.remove(folder)
    return [value for name, value in vars(module).items() if name.startswith("DRIVER")]


def _open(budget: float) -> tuple[Any, str, Any]:
    """The device with what measuring needs, its name, and the limits of its multiprocessors."""
    import torch

    from opspec.runtime.bench.gpu import open_device
    from opspec.runtime.bench.measure import Bench
    from opspec.runtime.bench.statistics import Policy
    from opspec.schedule.resources import Limits

    device = open_device()
    assert device is not None
    properties = device.properties
    bench = Bench(
        device=device,
        place="cuda",
        free_bytes=lambda: int(torch.cuda.mem_get_info()[0]),
        synchronize=device.synchronize,
        stream=None,
        roofs=None,
        policy=Policy(least=20, seconds=0.3, spread=0.005, budget=budget),
    )
    shared = int(getattr(properties, "shared_memory_per_block_optin", 232448))
    own = Limits(shared_memory=shared, multiprocessors=int(properties.multi_processor_count))
    return bench, str(properties.name), own


def _cases(driver: Any, wanted: list[str]) -> list[Any]:
    from opspec.runtime.bench.model import cases

    names = [n for n in wanted or driver.workloads if n in driver.workloads]
    return [case for name in names for case in cases(driver, name)]


def _shape(case: Any) -> str:
    return ", ".join(f"{k} = {v}" for k, v in {**case.dims, **case.dtypes}.items())


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[2K  {text[:100]}", end="", file=sys.stderr, flush=True)
