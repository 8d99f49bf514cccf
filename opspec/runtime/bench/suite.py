"""Many drivers in one run: ``python -m opspec.runtime.bench generated/ --json results/``.

This process starts the one that measures (``worker``), lives through its end, whatever ends it, and shows what was
found. It imports neither torch nor triton.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opspec.runtime.bench.compile_ahead import compile_all, modes
from opspec.runtime.bench.model import UsageError
from opspec.runtime.bench.options import SEVERAL, add_options
from opspec.runtime.bench.overview import Failed, show_overview
from opspec.runtime.bench.packages import find_packages
from opspec.runtime.bench.result import write
from opspec.runtime.bench.session import INTERRUPTED
from opspec.runtime.bench.shared import stamp
from opspec.runtime.bench.worker import RUNNING

ROOT = Path(__file__).resolve().parents[3]
Start = Callable[[list[str]], int]


def build_parser() -> argparse.ArgumentParser:
    """The options of a run of several drivers."""
    parser = argparse.ArgumentParser(
        prog="python -m opspec.runtime.bench",
        description="Measure generated packages one after the other, beside roofs that are measured once.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "packages", nargs="+", type=Path, metavar="FOLDER", help="a package, or a folder of packages"
    )
    add_options(
        parser, SEVERAL, json={"metavar": "FOLDER", "help": "write each op's result to FOLDER/OP.json"}
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure packages: 0 all well, 1 something failed, 2 bad usage, 130 interrupted."""
    options = build_parser().parse_args(argv)
    try:
        return measure(dict.fromkeys(find_packages(options.packages)), options)
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def measure(
    packages: Mapping[Path, Sequence[str] | None],
    options: argparse.Namespace,
    *,
    start: Start | None = None,
) -> int:
    """Measure the drivers of packages in one child process, and show what was found; the worst status.

    Raises: UsageError if there can be no folder for the results.

    ``packages``: folders, and which ops of each, None for all. ``options`` are those of ``build_parser``; ``start`` runs a worker on a plan, and stands in for it in tests.
    """
    with tempfile.TemporaryDirectory(prefix="opspec-run-") as folder:
        scratch = Path(folder)
        results = Path(options.json).resolve() if options.json else scratch / "results"
        try:
            results.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"`--json {options.json}` can't be a folder: {error.strerror}") from error
        named = {str(path): None if ops is None else list(ops) for path, ops in packages.items()}
        run = Run(packages=named, options=options, results=results, scratch=scratch)
        if options.jobs and (status := compile_all(run.plan(), options.jobs, environment())):
            return status
        status = run.until_done(start or start_worker)
        found = run.outcomes()
        if found:
            show_overview(found)
    return status


@dataclass(slots=True, kw_only=True)
class Run:
    """A run of several drivers, as the process sees it that starts others."""

    packages: dict[str, list[str] | None]
    options: argparse.Namespace
    results: Path
    scratch: Path
    identity: dict[str, str] = field(default_factory=lambda: {"id": uuid.uuid4().hex, "started_at": stamp()})
    statuses: list[int] = field(default_factory=list)

    @property
    def journal(self) -> Path:
        """Where workers say what became of each op."""
        return self.scratch / "journal.jsonl"

    def until_done(self, start: Start) -> int:
        """Start workers until one has come to the end; another one goes on behind an op that ends its process."""
        while True:
            before = len(self.entries("end"))
            ended = start([sys.executable, "-m", "opspec.runtime.bench.worker", str(self.plan())])
            self.bury(ended)
            if ended in (2, INTERRUPTED) or self.entries("finished"):
                break
            if len(self.entries("end")) == before:  # it didn't come to measure anything
                self.statuses.append(1)
                break
        return max([ended if ended in (2, INTERRUPTED) else 0, *self.statuses, *self.codes()])

    def codes(self) -> list[int]:
        """The status of each op that has ended."""
        return [int(entry["status"]) for entry in self.entries("end")]

    def plan(self) -> Path:
        """Write what is left to do."""
        o = self.options
        path = self.scratch / "plan.json"
        plan = {
            "packages": self.packages,
            "options": {
                "op": list(o.op),
                "at": list(o.at),
                "peer": list(o.peer),
                "peers_from": str(o.peers_from) if o.peers_from else None,
                "quick": o.quick,
                "resume": o.resume,
            },
            "argv": arguments(o),
            "compiled_modes": modes("none" if o.no_peers else o.peers),
            "results": str(self.results),
            "scratch": str(self.scratch),
            "journal": str(self.journal),
            "done": [entry["end"] for entry in self.entries("end")],
            "run": self.identity,
        }
        path.write_text(json.dumps(plan), encoding="utf-8")
        return path

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """What the journal says of one kind."""
        if not self.journal.is_file():
            return []
        lines = self.journal.read_text(encoding="utf-8").splitlines()
        return [entry for entry in map(json.loads, lines) if kind in entry]

    def bury(self, ended: int) -> None:
        """Of an op whose process ended before it did, keep what there is and say what ended it."""
        over = [entry["end"] for entry in self.entries("end")]
        open_ = [entry for entry in self.entries("begin") if entry["begin"] not in over]
        if not open_ or ended == INTERRUPTED:
            return
        how = f"by {signal.Signals(-ended).name}" if ended < 0 else f"with status {ended}"
        reason = f"its process ended {how}"
        entry: dict[str, Any] = {"end": open_[-1]["begin"], "status": 1, "reason": reason}
        running = self.scratch / RUNNING
        if running.is_file():
            document = json.loads(running.read_text(encoding="utf-8"))
            document["status"] = "failed"
            for record in document["results"]:
                if record["measured"] and record["measured"]["status"] == "running":
                    record["measured"].update(status="error", reason=reason)
            write(document, self.results / open_[-1]["file"])
            entry["file"] = open_[-1]["file"]
            running.unlink()
        with self.journal.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(entry) + "\n")

    def outcomes(self) -> list[Mapping[str, Any] | Failed]:
        """What was found, op by op: the document, or why there is none."""
        found: list[Mapping[str, Any] | Failed] = []
        for entry in self.entries("end"):
            if "file" in entry:
                found.append(json.loads((self.results / entry["file"]).read_text(encoding="utf-8")))
            else:
                package, op = entry["end"]
                found.append(Failed(op or Path(package).name, entry["reason"]))
        return found


def arguments(options: argparse.Namespace) -> list[str]:
    """What of a run's options each driver is told."""
    values = (
        ("machine", options.machine),
        ("peers", options.peers),
        ("budget", options.budget),
        ("seed", options.seed),
    )
    found = [f"--{name}={value}" for name, value in values if value is not None]
    return found + [
        f"--{name.replace('_', '-')}"
        for name in ("no_peers", "graph", "warm", "quick")
        if getattr(options, name)
    ]


def environment() -> dict[str, str]:
    """What a child lives in: this process's own, with this opspec before others."""
    path = os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path}


def start_worker(command: list[str]) -> int:
    """Run a child; an interrupt or a request to end is its own to answer, since it keeps what it has."""
    sys.stdout.flush()
    child = subprocess.Popen(command, env=environment())
    before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # the terminal has told the child, too
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
