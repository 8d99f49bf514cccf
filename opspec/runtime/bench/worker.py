"""The process that measures the drivers of a run: one after the other, on a device that is opened once.

``python -m opspec.runtime.bench.worker PLAN.json`` is started by ``suite``, which says what to measure and reads
from the plan's journal what became of each op. When the device is lost, the process ends with ``LOST`` and another
one goes on behind the op that lost it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opspec.runtime.bench.command import all_dtypes, build_parser, open_cuda
from opspec.runtime.bench.jobs import Job, plan_jobs
from opspec.runtime.bench.model import UsageError
from opspec.runtime.bench.result import write
from opspec.runtime.bench.sampling import one_line
from opspec.runtime.bench.session import INTERRUPTED, Session, ending_as_interrupt
from opspec.runtime.bench.shared import RunRoofs, stamp

LOST = 3
RUNNING = "running.json"  # the result of the op that is being measured, in the plan's scratch folder


def main(argv: Sequence[str] | None = None, *, card: Any = None) -> int:
    """Measure what a plan says: 0 all well, 1 something failed, 2 bad usage, 3 device lost, 130 interrupted.

    ``card`` stands in for the GPU in tests.
    """
    (path,) = sys.argv[1:] if argv is None else argv
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        with ending_as_interrupt():
            return Worker(plan, card).run()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


class Worker:
    """One process of a run. ``plan`` is what ``suite.Plan`` wrote."""

    def __init__(self, plan: Mapping[str, Any], card: Any) -> None:
        self.plan = plan
        self.card = card
        self.options = argparse.Namespace(**plan["options"])
        self.results, self.scratch = Path(plan["results"]), Path(plan["scratch"])
        self.done = {tuple(key) for key in plan["done"]}
        self.roofs = RunRoofs()

    def run(self) -> int:
        """All jobs that are left, in order; the worst status."""
        jobs = plan_jobs(self.plan["packages"], self.options, self.results)
        if not jobs:
            say("every op is measured already")
        card = self.card or open_cuda()
        chosen = [(job.driver, job.cases) for job in jobs if job.driver is not None]
        self.roofs.wanted = all_dtypes(chosen, quick=self.options.quick)
        status = 0
        for place, job in enumerate(jobs):
            if job.key in self.done:
                continue
            self.note(begin=job.key, file=job.file)
            start = time.monotonic()
            status = max(status, ended := self.measure(job, card, f"[{place + 1}/{len(jobs)}] {job.op} "))
            say(f"[{place + 1}/{len(jobs)}] {summary(job, ended, time.monotonic() - start)}")
            if ended == INTERRUPTED:
                return INTERRUPTED
            if not card.alive():
                return LOST
        self.note(finished=True)
        return status

    def measure(self, job: Job, card: Callable[..., Any], label: str) -> int:
        """One op; its result is written when it is there."""
        if job.driver is None:
            self.note(end=job.key, status=1, reason=f"the package can't be loaded: {job.fault}")
            return 1
        options = build_parser([job.driver]).parse_args(self.plan["argv"])
        running = self.scratch / RUNNING
        session = None
        try:
            session = Session(
                job.driver,
                options,
                running,
                card,
                roofs=self.roofs,
                run=self.plan["run"],
                label=label,
                quiet=True,
            )
            status = session.run(job.cases)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # of one op; the others are still to be measured
            if session is None or not any(has_time(record) for record in session.document["results"]):
                self.note(end=job.key, status=1, reason=one_line(error))
                return 1
            session.document["notes"].append(f"the run ended: {one_line(error)}")
            session.document["status"], status = "failed", 1
        if status != INTERRUPTED or any(has_time(record) for record in session.document["results"]):
            write(session.document, self.results / job.file)
            self.note(end=job.key, status=status, file=job.file)
        running.unlink(missing_ok=True)
        return status

    def note(self, **entry: Any) -> None:
        """Add a line to the journal, which outlives this process."""
        with Path(self.plan["journal"]).open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"at": stamp(), **entry}) + "\n")


def has_time(record: Mapping[str, Any]) -> bool:
    """Whether a shape has been timed."""
    return bool((record["measured"] or {}).get("time_s"))


def summary(job: Job, status: int, seconds: float) -> str:
    """What is said of an op when it is done."""
    words = {0: "done", INTERRUPTED: "interrupted"}.get(status, "FAILED")
    shapes = f"{len(job.cases)} shape{'' if len(job.cases) == 1 else 's'}"
    return f"{job.op or job.package}: {words}, {shapes} in {seconds:.1f} s"


def say(text: str) -> None:
    """A line of progress, over the one that a terminal shows."""
    lead = "\r\x1b[2K" if sys.stderr.isatty() else ""
    print(f"{lead}{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
