"""What a run of several drivers has to do: one job for each op, in order."""

from __future__ import annotations

import argparse
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opspec.runtime.bench.model import Case, Driver, UsageError, cases
from opspec.runtime.bench.named import check_peers, peers_of, read_peers
from opspec.runtime.bench.packages import load_drivers
from opspec.runtime.bench.sampling import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One op to be measured: the folder of its package, its shapes, and the name of its result's file.

    A package that can't be loaded is a job without a driver, and ``fault`` says why.
    """

    package: str
    op: str
    driver: Driver | None = None
    cases: tuple[Case, ...] = ()
    file: str = ""
    fault: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What the job is known by."""
        return self.package, self.op


def plan_jobs(packages: Mapping[str, Sequence[str] | None], options: argparse.Namespace) -> list[Job]:
    """The jobs of a run, in the order of its packages; UsageError for an op, workload or peer that there isn't.

    ``packages``: folders, and which ops of each, None for all.
    ``options``: ``op``, ``at`` and ``peer`` as lists, ``peers_from`` a file or None.
    """
    told = read_peers(Path(options.peers_from)) if options.peers_from else {}
    loaded: list[tuple[str, Driver | str]] = []
    for package in packages:
        try:
            loaded += [
                (package, driver)
                for driver in load_drivers(Path(package))
                if (only := packages[package]) is None or driver.op in only
            ]
        except Exception as error:  # noqa: BLE001  # whatever the package raises is what is said of it
            loaded.append((package, one_line(error)))
    drivers = [item for _, item in loaded if isinstance(item, Driver)]
    broken = len(loaded) > len(drivers)
    if not broken:
        check_names(drivers, options)
    shown = Counter(driver.op for driver in drivers)
    jobs: list[Job] = []
    for package, item in loaded:
        if not isinstance(item, Driver):
            jobs.append(Job(package=package, op="", fault=item))
            continue
        if options.op and item.op not in options.op:
            continue
        table = told.get(item.op, {"peers": [], "at": []})
        names = [name for name in options.at or table["at"] or item.workloads if name in item.workloads]
        if not names:
            continue
        given = peers_of(item.op, [*table["peers"], *options.peer])
        jobs.append(
            Job(
                package=package,
                op=item.op,
                driver=dataclasses.replace(item, peers=(*item.peers, *given)),
                cases=tuple(case for name in names for case in cases(item, name)),
                file=file_name(item, shown),
            )
        )
    if not jobs:
        raise UsageError("nothing to measure: no op with a workload")
    return jobs


def check_names(drivers: Sequence[Driver], options: argparse.Namespace) -> None:
    """UsageError for an op or a workload that none of the drivers has."""
    ops = list(dict.fromkeys(driver.op for driver in drivers))
    check_peers(options.peer, ops)
    for op in options.op:
        if op not in ops:
            raise UsageError(f"no op `{op}`; there are: {', '.join(ops)}")
    chosen = [driver for driver in drivers if not options.op or driver.op in options.op]
    known = list(dict.fromkeys(name for driver in chosen for name in driver.workloads))
    for name in options.at:
        if name not in known:
            raise UsageError(f"no workload `{name}`; there are: {', '.join(known)}")


def file_name(driver: Driver, shown: Mapping[str, int]) -> str:
    """``OP.json``, or ``FOLDER.SPEC.OP.json`` where several specs have an op of that name."""
    if shown[driver.op] == 1:
        return f"{driver.op}.json"
    path = driver.spec.removesuffix(".op").strip("/").replace("/", ".")
    return f"{path}.{driver.op}.json"
