"""The command line of every generated driver."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from opspec.runtime.bench.machines import find_machine, machine_names
from opspec.runtime.bench.model import Case, Distribution, Driver, UsageError, cases
from opspec.runtime.bench.named import named_peer
from opspec.runtime.bench.result import new_document, new_record, settle, write
from opspec.runtime.bench.roofline import Machine
from opspec.runtime.bench.statistics import Policy
from opspec.runtime.bench.table import show

POLICY = Policy(least=10, seconds=0.5, spread=0.005, budget=20.0)
INTERRUPTED = 130
QUICK = Policy(least=10, seconds=0.5, spread=0.02, budget=3.0)


def build_parser(drivers: Sequence[Driver]) -> argparse.ArgumentParser:
    """The options of a driver file, which measures one op or several."""
    names = ", ".join(f"`{driver.op}`" for driver in drivers)
    parser = argparse.ArgumentParser(
        prog="bench.py",
        description=f"Measure {names} of {drivers[0].spec} beside the closed form.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--at",
        action="append",
        metavar="WORKLOAD",
        help="only this workload (may be repeated); all by default",
    )
    add(
        "--op",
        action="append",
        metavar="OP",
        choices=[d.op for d in drivers],
        help=f"only this op of {names}",
    )
    add("--set", action="append", default=[], metavar="M=8192", help="change a dim of the workload")
    add("--dtype", action="append", default=[], metavar="X=bf16", help="choose a dtype parameter")
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the result, raw samples and all; `-` is standard output; of several ops each to FILE.OP",
    )
    add(
        "--machine",
        metavar="NAME",
        help="datasheet to stand beside: a name or a TOML file; by the card if left out",
    )
    add(
        "--peer",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="another implementation to measure beside, called like the op; a module or a .py file",
    )
    add(
        "--peers",
        choices=("none", "usual", "max"),
        default="usual",
        help="torch eager and torch.compile of the formula beside it, or none, or max-autotune too",
    )
    add("--no-peers", action="store_true", help="measure the operator alone, as --peers none")
    add(
        "--graph", action="store_true", help="time through a captured CUDA graph, too, also what is not short"
    )
    add("--warm", action="store_true", help="afterwards, and labelled as such, with a warm L2")
    add("--quick", action="store_true", help="a looser bound on the noise and a smaller time budget")
    add("--budget", type=float, metavar="S", help="seconds of sampling per shape at most")
    add("--seed", type=int, default=0, help="of the random inputs")
    add("--list", action="store_true", help="list workloads, dims and dtypes")
    return parser


def main(
    *drivers: Driver, argv: Sequence[str] | None = None, open_bench: Callable[..., Any] | None = None
) -> int:
    """Run drivers: 0 if all is well, 1 if a result is wrong or impossible, 2 for bad usage, 130 if interrupted.

    ``argv`` is the command line of the process if left out; ``open_bench`` stands in for the GPU in tests.
    """
    parser = build_parser(drivers)
    options = parser.parse_args(argv)
    if options.list:
        print("\n".join(listing(driver) for driver in drivers), end="")
        return 0
    status = 0
    try:
        named = tuple(named_peer(text) for text in options.peer)
        given = [dataclasses.replace(driver, peers=(*driver.peers, *named)) for driver in drivers]
        chosen = choose_drivers(given, options)
        for driver, shapes in chosen:
            path = options.json if len(chosen) == 1 else beside(options.json, driver.op)
            session = Session(driver, options, path, open_bench or open_cuda)
            status = max(status, session.run(shapes))
            if status == INTERRUPTED:
                break
    except UsageError as error:
        print(f"bench.py: error: {error}", file=sys.stderr)
        return 2
    return status


def choose_drivers(drivers: Sequence[Driver], options: argparse.Namespace) -> list[tuple[Driver, list[Case]]]:
    """The drivers that are asked for, each with its shapes: of several ops, those that have the workload."""
    wanted = [driver for driver in drivers if not options.op or driver.op in options.op]
    if options.at:
        having = [driver for driver in wanted if any(name in driver.workloads for name in options.at)]
        wanted = having or wanted[:1]
    found = []
    for driver in wanted:
        names = [n for n in options.at or driver.workloads if len(wanted) == 1 or n in driver.workloads]
        shapes = [
            case for name in names for case in cases(driver, name, numbers(options.set), pairs(options.dtype))
        ]
        found.append((driver, shapes))
    return found


def beside(path: Path | None, op: str) -> Path | None:
    """``result.OP.json`` for ``result.json``: each op of several has a file of its own."""
    return path if path is None or str(path) == "-" else path.with_name(f"{path.stem}.{op}{path.suffix}")


class Session:
    """One run of a driver: opens the device, measures each shape, and keeps the document up to date."""

    def __init__(
        self,
        driver: Driver,
        options: argparse.Namespace,
        path: Path | None,
        open_bench: Callable[..., Any],
    ) -> None:
        self.driver = driver
        self.options = options
        self.path = path
        self.bench, gpu = open_bench(driver, options, self.progress)
        name = "" if gpu is None else str(gpu["name"])
        self.machine: Machine | None
        self.machine, source = find_machine(options.machine, driver.machines, card=name)
        self.document = new_document(driver, self.machine, source)
        self.document["environment"]["gpu"] = gpu

    def run(self, chosen: Sequence[Case]) -> int:
        """Measure all shapes and report; the exit status."""
        interrupted = False
        records = [new_record(self.driver, case, self.machine, self.options.seed) for case in chosen]
        self.document["results"] = records
        try:
            with ending_as_interrupt():
                self.measure(chosen, records)
        except KeyboardInterrupt:
            interrupted = True
        settle(self.document, self.driver, interrupted=interrupted)
        self.progress("")
        self.report()
        if interrupted:
            return INTERRUPTED
        return 1 if self.document["status"] == "failed" else 0

    def measure(self, chosen: Sequence[Case], records: Sequence[dict[str, Any]]) -> None:
        """Roofs first, then each shape."""
        if self.bench is None:
            notes = self.document["notes"]
            notes.append("nothing was measured: no CUDA device; the closed form stands alone")
            if self.machine is None:
                names = ", ".join(machine_names(self.driver.machines))
                notes.append(f"no machine was named, so there is no floor; --machine knows {names}")
            return
        from opspec.runtime.bench.measure import measure_case

        roofs = self.bench.measure_roofs(roof_dtypes(self.driver, chosen, quick=self.options.quick))
        self.document["roofs"] = roofs
        self.keep()
        bench = dataclasses.replace(self.bench.bench, roofs=roofs)
        for place, (case, record) in enumerate(zip(chosen, records, strict=True)):
            label = f"[{place + 1}/{len(chosen)}] {case.workload}"
            shaped = dataclasses.replace(
                bench, progress=lambda text, label=label: self.progress(f"{label}: {text}")
            )
            measure_case(shaped, self.driver, case, record, self.keep)
            self.bench.release()

    def keep(self) -> None:
        """Write what there is."""
        if self.path is not None and str(self.path) != "-":
            write(self.document, self.path)

    def report(self) -> None:
        """Write the document and print the table."""
        if str(self.path) == "-":
            import json

            from opspec.runtime.bench.result import plain

            json.dump(plain(self.document), sys.stdout, indent=1)
            print()
            return
        self.keep()
        show(self.document, terminal=sys.stdout.isatty())

    def progress(self, text: str) -> None:
        """Show what is going on, on one line of a terminal."""
        if sys.stderr.isatty():
            print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def ending_as_interrupt() -> Iterator[None]:
    """Take a request to end (SIGTERM, as a job scheduler sends it) as an interrupt, which keeps what there is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def roof_dtypes(driver: Driver, chosen: Sequence[Case], *, quick: bool) -> list[str]:
    """Types whose matrix rate is measured: all, or when in a hurry bf16 and those of the contractions."""
    own = [case.dtype(driver.contraction) for case in chosen] if driver.contraction else []
    usual = ["bf16"] if quick else ["bf16", "f16", "f8e4m3", "tf32", "f32", "i8"]
    return list(dict.fromkeys([*usual, *own]))


def open_cuda(
    driver: Driver, options: argparse.Namespace, progress: Callable[[str], None]
) -> tuple[Any, Any]:
    """The CUDA device with what measuring needs, and its record; (None, None) where there is none."""
    from opspec.runtime.bench.cuda_bench import open_bench

    return open_bench(driver, policy(options), options, progress)


def policy(options: argparse.Namespace) -> Policy:
    """When to stop, by the options."""
    base = QUICK if options.quick else POLICY
    return base if options.budget is None else dataclasses.replace(base, budget=options.budget)


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """``["X=bf16,Y=f32"]`` as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or not name.strip() or not value.strip():
                raise UsageError(f"`{part}` is not NAME=VALUE")
            found[name.strip()] = value.strip()
    return found


def numbers(texts: Sequence[str]) -> dict[str, int]:
    """``["M=8192"]`` as a mapping to non-negative integers."""
    found: dict[str, int] = {}
    for name, value in pairs(texts).items():
        if not (value.isascii() and value.isdigit()):
            raise UsageError(f"`{name}={value}`: a dim is a non-negative integer")
        found[name] = int(value)
    return found


def listing(driver: Driver) -> str:
    """Workloads, dims and dtypes, one a line."""
    lines = [f"{driver.op} of {driver.spec}"]
    for name, workload in driver.workloads.items():
        if isinstance(workload, Distribution):
            lines += [f"  {name}  weight {weight:g}  {shape(dims)}" for weight, dims in workload.shapes]
        else:
            lines.append(f"  {name}  {shape(workload.dims)}")
    lines += [f"  --dtype {name}={'|'.join(allowed)}" for name, allowed in driver.dtypes.items()]
    return "\n".join(lines) + "\n"


def shape(dims: Any) -> str:
    """Dims on one line."""
    return ", ".join(f"{name} = {value}" for name, value in dims.items())
