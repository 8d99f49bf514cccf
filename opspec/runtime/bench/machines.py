"""Which machine's datasheet a result stands beside: by name, by file, or by the card's own name.

Reads the same TOML files as the rest of the project (``opspec/machines``), but only what a driver needs, and
without the compiler.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opspec.runtime.bench.model import UsageError
from opspec.runtime.bench.roofline import Machine

FOLDER = Path(__file__).resolve().parents[2] / "machines"


def find_machine(
    wanted: str | None, built_in: Mapping[str, Mapping[str, Any]], *, card: str, folder: Path = FOLDER
) -> tuple[Machine | None, str]:
    """The machine and where its numbers come from; (None, "") if none is named and the card is unknown.

    ``wanted`` is a name or a path; UsageError if it is neither. ``built_in`` are those that a driver carries.
    """
    known = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if wanted is not None:
        if wanted in built_in:
            return read_machine(wanted, built_in[wanted]), "datasheet carried by the driver"
        path = known.get(wanted) or (Path(wanted) if wanted.endswith(".toml") else None)
        if path is None or not path.is_file():
            names = sorted({*known, *built_in})
            raise UsageError(
                f"no machine `{wanted}`; there are: {', '.join(names) or 'none'}, or a .toml file"
            )
        return load(path), f"datasheet, {path.name}"
    for name in sorted({*known, *built_in}):
        if name_matches(name, card):
            if name in built_in:
                return read_machine(
                    name, built_in[name]
                ), "datasheet carried by the driver, by the card's name"
            return load(known[name]), f"datasheet, {known[name].name}, by the card's name"
    return None, ""


def machine_names(built_in: Mapping[str, Mapping[str, Any]], folder: Path = FOLDER) -> list[str]:
    """Names that ``find_machine`` knows."""
    return sorted({*(path.stem for path in folder.glob("*.toml")), *built_in})


def name_matches(name: str, card: str) -> bool:
    """Whether ``h200`` is a word of ``NVIDIA H200``; ``h20`` is not."""
    return bool(name) and name.lower() in re.split(r"[^a-z0-9]+", card.lower())


def load(path: Path) -> Machine:
    """A machine from its TOML file."""
    try:
        return read_machine(path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: {error}") from error


def read_machine(name: str, data: Mapping[str, Any]) -> Machine:
    """The numbers that a driver needs, from a machine's table; UsageError names one that is missing."""
    bandwidth = number(data, "memory", "bandwidth")
    if bandwidth is None:
        raise UsageError(f"machine `{name}` states no memory bandwidth")
    tensor = {dtype: number(data, "tensor", dtype) for dtype in data.get("tensor", {})}
    return Machine(
        name=name,
        title=str(data.get("title", data.get("name", name))),
        bandwidth=bandwidth,
        tensor={dtype: rate for dtype, rate in tensor.items() if rate},
        vector=number(data, "vector", "f32"),
        sfu=special_rate(data),
        launch=number(data, "launch", "plain"),
        launch_graph=number(data, "launch", "graph"),
    )


def special_rate(data: Mapping[str, Any]) -> float | None:
    """Special functions per second: so many a clock and multiprocessor."""
    per_clock, count, clock = (
        number(data, *path) for path in (("sfu", "per_clock_sm"), ("sm", "count"), ("clock", "boost"))
    )
    return per_clock * count * clock if per_clock and count and clock else None


def number(data: Mapping[str, Any], *path: str) -> float | None:
    """A number at ``path``, which may be a table with a ``value``; None if it is not there."""
    found: Any = data
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    if isinstance(found, Mapping):
        found = found.get("value")
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None
