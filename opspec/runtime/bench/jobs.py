"""What a run of several drivers has to do: one job for each op, in order."""

from __future__ import annotations

import argparse
import dataclasses
import json
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


def plan_jobs(
    packages: Mapping[str, Sequence[str] | None], options: argparse.Namespace, results: Path
) -> list[Job]:
    """The jobs of a run, in the order of its packages; UsageError for an op, workload or peer that there isn't.

    ``packages``: folders, and which ops of each, None for all.
    ``options``: ``op``, ``at`` and ``peer`` as lists, ``peers_from`` a file or None; with ``resume`` without what lies
    in the folder ``results``.
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
    return [job for job in jobs if not is_measured(job, results)] if options.resume else jobs


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


def is_measured(job: Job, results: Path) -> bool:
    """Whether a folder has the result of a job: of this very kernel, at all its shapes, beside all its named peers."""
    if job.driver is None:
        return False
    try:
        document = json.loads((results / job.file).read_text(encoding="utf-8"))
        known = document["environment"]["software"]["kernel_hash"] == job.driver.kernel_hash
        if document["op"] != job.op or document["status"] != "measured" or not known:
            return False
        shapes = {
            identity(r["workload"], r["dims"], r["dtypes"]): {c["name"] for c in r["measured"]["candidates"]}
            for r in document["results"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return False
    peers = {peer.name for peer in job.driver.peers}
    wanted = [identity(case.workload, case.dims, case.dtypes) for case in job.cases]
    return all(key in shapes and peers <= shapes[key] for key in wanted)


def identity(workload: str, dims: Mapping[str, int], dtypes: Mapping[str, str]) -> tuple[object, ...]:
    """What a shape is recognised by."""
    return workload, tuple(sorted(dims.items())), tuple(sorted(dtypes.items()))
