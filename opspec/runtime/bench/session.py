"""One driver's run: its shapes one after the other, and a document that is whole at every moment."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opspec.runtime.bench.machines import find_machine, machine_names
from opspec.runtime.bench.model import Case, Driver
from opspec.runtime.bench.result import new_document, new_record, settle, write
from opspec.runtime.bench.roofline import Machine
from opspec.runtime.bench.seconds import Seconds
from opspec.runtime.bench.shared import RunRoofs
from opspec.runtime.bench.table import show

INTERRUPTED = 130


class Session:
    """One run of a driver: opens the device, measures each shape, and keeps the document up to date.

    ``roofs`` are those of the run that the driver is part of, and ``run`` says which one that is. ``label`` leads
    what is said on the way; ``quiet``: the tables are not printed.
    """

    def __init__(
        self,
        driver: Driver,
        options: argparse.Namespace,
        path: Path | None,
        open_bench: Callable[..., Any],
        *,
        roofs: RunRoofs | None = None,
        run: Mapping[str, Any] | None = None,
        label: str = "",
        quiet: bool = False,
    ) -> None:
        self.driver = driver
        self.options = options
        self.path = path
        self.roofs = RunRoofs() if roofs is None else roofs
        self.label = label
        self.quiet = quiet
        self.spent = Seconds()
        with self.spent.of("open"):
            self.bench, gpu = open_bench(driver, options, self.progress)
        name = "" if gpu is None else str(gpu["name"])
        self.machine: Machine | None
        self.machine, source = find_machine(options.machine, driver.machines, card=name)
        self.document = new_document(driver, self.machine, source)
        self.document["environment"]["gpu"] = gpu
        if run is not None:
            self.document["run"] = dict(run)

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
        self.document["seconds"] = self.spent.record()
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

        wanted = roof_dtypes(self.driver, chosen, quick=self.options.quick)
        with self.spent.of("roofs"):
            roofs = self.roofs.of(self.bench.measure_roofs, wanted)
        self.document["roofs"] = roofs
        self.keep()
        bench = dataclasses.replace(self.bench.bench, roofs=roofs)
        for place, (case, record) in enumerate(zip(chosen, records, strict=True)):
            label = f"[{place + 1}/{len(chosen)}] {case.workload}"
            shaped = dataclasses.replace(
                bench, progress=lambda text, label=label: self.progress(f"{label}: {text}")
            )
            with self.spent.of("shapes"):
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
        if not self.quiet:
            show(self.document, terminal=sys.stdout.isatty())

    def progress(self, text: str) -> None:
        """Show what is going on, on one line of a terminal."""
        if sys.stderr.isatty():
            print(f"\r\x1b[2K{self.label if text else ''}{text}", end="", file=sys.stderr, flush=True)


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
