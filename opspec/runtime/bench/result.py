"""The result document: its parts, its status, and writing it whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opspec.runtime.bench.environment import record_software
from opspec.runtime.bench.findings import distribution
from opspec.runtime.bench.model import Case, Distribution, Driver, cost_of
from opspec.runtime.bench.roofline import Machine, roofline

SCHEMA = "opspec.bench/1"
SCHEMA_FILE = Path(__file__).with_name("result.schema.json")


def new_document(driver: Driver, machine: Machine | None, machine_source: str) -> dict[str, Any]:
    """A document without results."""
    return {
        "schema": SCHEMA,
        "op": driver.op,
        "spec": driver.spec,
        "status": "running",
        "notes": [],
        "machine": None if machine is None else {**dataclasses.asdict(machine), "source": machine_source},
        "environment": {"software": record_software(driver), "gpu": None},
        "roofs": None,
        "results": [],
        "distributions": [],
    }


def new_record(driver: Driver, case: Case, machine: Machine | None, seed: int) -> dict[str, Any]:
    """One shape: its closed form and its roofline; nothing measured yet."""
    cost = cost_of(driver, case)
    line = None if machine is None else roofline(cost, machine, case.dtype(driver.contraction))
    return {
        "workload": case.workload,
        "weight": case.weight,
        "dims": dict(case.dims),
        "dtypes": dict(case.dtypes),
        "seed": seed,
        "cost": cost,
        "roofline": None
        if line is None
        else {
            "terms_s": line.terms,
            "floor_s": line.floor,
            "limit_s": line.limit,
            "launch_s": line.launch,
            "predicted_s": line.predicted,
            "bound": line.bound,
        },
        "tensors": [],
        "measured": None,
    }


def settle(document: dict[str, Any], driver: Driver, *, interrupted: bool) -> None:
    """Set the document's status from its results, and summarise distributions."""
    measured = [record["measured"] for record in document["results"]]
    names = [name for name, item in driver.workloads.items() if isinstance(item, Distribution)]
    found = (distribution(name, document["results"]) for name in names)
    document["distributions"] = [item for item in found if item is not None]
    if interrupted:
        document["status"] = "interrupted"
    elif all(item is None for item in measured):
        document["status"] = "not measured"
    elif all(item is not None and item["status"] == "ok" for item in measured):
        document["status"] = "measured"
    else:
        document["status"] = "failed"


def plain(value: Any) -> Any:
    """A value as JSON holds it: records become objects, and a number that is not finite its name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write the document in one step, so that a reader never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(plain(document), file, indent=1, allow_nan=False)
            file.write("\n")
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
