"""A machine file in TOML → its values, each with a source, or every fault that it has.

A tensor peak must say ``density = "dense"``: headline figures are sparse, and a
sparse roof makes a dense kernel look half as good as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opspec.analysis.codes import BAD_MACHINE
from opspec.diagnostics import Diagnostic, Failure
from opspec.diagnostics.hints import nearest, suggest
from opspec.ir.machine_keys import KEYS, TENSOR_TYPES, Key, key_of, known
from opspec.source import Source, Span

TEXTS = ("name", "title", "target")
TARGET = r"sm_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,4}"
FIELDS = ("value", "source", "density")


@dataclass(frozen=True, slots=True)
class Values:
    """What a machine file states: numbers and their sources by dotted key."""

    name: str
    title: str
    target: str
    numbers: Mapping[str, float]
    sources: Mapping[str, str]


def read(source: Source) -> Values:
    """The values of a machine file.

    Raises: Failure with every fault of the file.
    """
    try:
        data = tomllib.loads(source.text)
    except (ValueError, RecursionError) as reason:
        raise Failure(fault(source, "", f"the file is not TOML: {str(reason)[:200]}")) from None
    reader = _Reader(data)
    name, title, target = (reader.text(key) for key in TEXTS)
    if target and not re.fullmatch(TARGET, target):
        reader.faults.setdefault("target", (f"`{target[:40]}` is no target", "such as `sm_90` or `gfx942`"))
    for key in KEYS:
        reader.number(key)
    reader.tensor()
    reader.unknown()
    if reader.faults:
        raise Failure(*(fault(source, key, text, hint) for key, (text, hint) in reader.faults.items()))
    return Values(name, title, target, reader.numbers, reader.sources)


def fault(source: Source, key: str, message: str, help: str = "") -> Diagnostic:
    """A fault of a machine file, at the line of a key or of its table."""
    return Diagnostic(
        code=BAD_MACHINE, message=message, span=_place(source, key), help=help or BAD_MACHINE.fix
    )


class _Reader:
    """Takes values out of the parsed file and collects its faults: message and help by key."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.numbers: dict[str, float] = {}
        self.sources: dict[str, str] = {}
        self.faults: dict[str, tuple[str, str]] = {}

    def blame(self, key: str, message: str, help: str = "") -> None:
        """Record a fault; the first of a key stands."""
        self.faults.setdefault(key, (message, help))

    def text(self, key: str) -> str:
        """A top-level string."""
        value = self.data.get(key)
        if not isinstance(value, str) or not value.strip():
            self.blame(key, f"`{key}` is missing or not a string")
            return ""
        return value

    def number(self, key: str) -> None:
        """A plausible ``{ value = …, source = … }``."""
        table, name = key.split(".")
        group = self.data.get(table)
        entry = group.get(name) if isinstance(group, dict) else None
        if not isinstance(entry, dict):
            self.blame(key, f"`{key}` is missing; write `{{ value = …, source = … }}`", _about(key))
            return
        for extra in entry.keys() - set(FIELDS):
            self.blame(key, f"`{key}` has no field `{extra[:40]}`", suggest(extra, FIELDS, "fields"))
        spec = key_of(key)
        value, source = entry.get("value"), entry.get("source")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            self.blame(key, f"`{key}` needs a positive number as its `value`", _about(key))
        elif spec is not None and not spec.low <= value <= spec.high:
            self.blame(key, f"`{key}` is not plausibly {_shown(value)} {spec.unit}".rstrip(), _about(key))
        elif spec is not None and spec.whole and value != int(value):
            self.blame(key, f"`{key}` is a whole number, not {_shown(value)}")
        else:
            self.numbers[key] = float(value)
        if not isinstance(source, str) or not source.strip():
            self.blame(key, f"`{key}` does not say its `source`", "a datasheet, a measurement, or `asserted`")
        else:
            self.sources[key] = source

    def tensor(self) -> None:
        """The dense matrix-unit peaks by dtype."""
        group = self.data.get("tensor")
        if not isinstance(group, dict) or not group:
            self.blame("tensor", "there is no table `tensor` of matrix-unit peaks")
            return
        for name, entry in group.items():
            key = f"tensor.{name}"
            if name not in TENSOR_TYPES:
                continue
            self.number(key)
            density = entry.get("density") if isinstance(entry, dict) else None
            if density is None:
                self.blame(key, f"`{key}` does not say whether it is dense: a sparse peak is no roof")
            elif density != "dense":
                self.blame(key, f"`{key}` is a {str(density)[:40]} peak; give the dense one")

    def unknown(self) -> None:
        """Keys that mean nothing."""
        for table, group in self.data.items():
            keys = [f"{table}.{n}" for n in group] if isinstance(group, dict) else [table]
            for key in keys:
                if key not in TEXTS and key_of(key) is None:
                    self.blame(
                        key, f"`{key[:60]}` is not a property of a machine", nearest(key, [*TEXTS, *known()])
                    )


def _about(key: str) -> str:
    spec = key_of(key)
    return "" if spec is None else described(spec)


def described(key: Key) -> str:
    """``peak of the device memory, in B/s, from 1e+10 to 1e+15``."""
    unit = f", in {key.unit}" if key.unit else ""
    return f"{key.about}{unit}, from {key.low:g} to {key.high:g}"


def _shown(value: float) -> str:
    return f"{value:g}" if value < 1e300 else "so large a number"


def _place(source: Source, key: str) -> Span:
    """The line of a key, or of its table, or the start of the file."""
    table, _, name = key.partition(".")
    at, offset, inside = 0, 0, not name
    for line in source.text.split("\n"):
        stripped = line.strip()
        if stripped.startswith("["):
            inside = stripped.startswith(f"[{table}]")
            if inside:
                at = offset
        elif inside and stripped.split("=")[0].strip() == (name or table):
            return Span(source, offset, offset + len(line))
        offset += len(line) + 1
    end = source.text.find("\n", at)
    return Span(source, at, end if end >= 0 else len(source.text))
