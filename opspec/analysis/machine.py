"""Machines: datasheet peaks and limits of a GPU, each with its source, from a TOML file.

A tensor peak must say ``density = "dense"``: headline figures are sparse, and a
sparse roof makes a dense kernel look half as good as it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from opspec.analysis.codes import BAD_MACHINE
from opspec.diagnostics import Diagnostic, Failure
from opspec.ir.program import Module
from opspec.resources import machines
from opspec.source import Source, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One GPU. Rates are FLOP/s (2 to a multiply-add), bytes/s and operations/s; sizes bytes; times s.

    ``tensor``: dense matrix-unit peak by dtype. ``sources``: where each value is from,
    by dotted key; one that starts with ``asserted`` is neither a datasheet's nor measured.
    """

    name: str
    title: str
    target: str
    clock: float
    tensor: Mapping[str, float]
    vector: float
    sfu: float
    bandwidth: float
    memory: float
    l2_size: int
    l2_bandwidth: float
    sms: int
    shared: int
    shared_block: int
    registers: int
    threads: int
    launch: float
    launch_graph: float
    sources: Mapping[str, str]

    def peak(self, dtype: str) -> tuple[str, float] | None:
        """The matrix-unit peak of an operand dtype, with the type that runs: a machine without a
        narrow type widens to the next one it has. None where no matrix unit takes the type (f32)."""
        for name in (dtype, *_WIDER.get(dtype, ())):
            if name in self.tensor:
                return name, self.tensor[name]
        return None

    def ridge(self, dtype: str) -> float:
        """FLOP/B at which the matrix unit (or else the vector unit) and memory take equally long."""
        found = self.peak(dtype)
        return (found[1] if found else self.vector) / self.bandwidth


_WIDER = {
    "f8e4m3": ("f16", "bf16"),
    "f8e5m2": ("f16", "bf16"),
    "i4": ("i8", "f16", "bf16"),
    "i8": ("f16", "bf16"),
    "f16": ("bf16",),
    "bf16": ("f16",),
}


def available() -> tuple[str, ...]:
    """Names of the machines that ship."""
    return tuple(sorted(p.stem for p in machines().glob("*.toml")))


@lru_cache(maxsize=32)
def load(name_or_path: str) -> Machine:
    """A machine by the name of a shipped profile, or by the path of a TOML file.

    Raises: Failure if there is none of that name, or the file is not usable.
    """
    shipped = machines() / f"{name_or_path}.toml"
    path = shipped if name_or_path in available() else Path(name_or_path)
    if not path.is_file():
        known = ", ".join(available())
        raise Failure(
            Diagnostic(
                code=BAD_MACHINE,
                message=f"there is no machine `{name_or_path}`",
                span=None,
                help=f"machines that ship: {known}; or give the path of a TOML file",
            )
        )
    label = f"{name_or_path}.toml" if path == shipped else str(path)
    return parse(Source.normalised(label, path.read_text(encoding="utf-8")))


def machine_of(module: Module, name: str) -> Machine:
    """A machine that the spec states, or else one that ships or a file.

    Raises: Failure if there is none of that name, or it is not usable.
    """
    block = next((b for b in module.machines if b.name == name), None)
    if block is None:
        return load(name)
    base = machine_of(module, block.like)
    values = {v.key: float(v.value) for v in block.values}
    sources = {**base.sources, **{v.key: v.source for v in block.values}}
    clock = values.get("clock.boost", base.clock)
    sms = int(values.get("sm.count", base.sms))
    per_clock = values.get("sfu.per_clock_sm", base.sfu / base.clock / base.sms)
    peaks = {k.partition(".")[2]: v for k, v in values.items() if k.startswith("tensor.")}
    return Machine(
        name=block.name,
        title=block.doc.partition("\n")[0] or f"{base.title}, with {', '.join(values)} of its own",
        target=base.target,
        clock=clock,
        tensor={**base.tensor, **peaks},
        vector=values.get("vector.f32", base.vector),
        sfu=per_clock * clock * sms,
        bandwidth=values.get("memory.bandwidth", base.bandwidth),
        memory=values.get("memory.size", base.memory),
        l2_size=int(values.get("l2.size", base.l2_size)),
        l2_bandwidth=values.get("l2.bandwidth", base.l2_bandwidth),
        sms=sms,
        shared=int(values.get("sm.shared", base.shared)),
        shared_block=int(values.get("sm.shared_block", base.shared_block)),
        registers=int(values.get("sm.registers", base.registers)),
        threads=int(values.get("sm.threads", base.threads)),
        launch=values.get("launch.plain", base.launch),
        launch_graph=values.get("launch.graph", base.launch_graph),
        sources=sources,
    )


def parse(source: Source) -> Machine:
    """A machine from the text of its file.

    Raises: Failure with every fault of the file.
    """
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as reason:
        raise Failure(_fault(source, "", f"the file is not TOML: {reason}")) from None
    reader = _Reader(source, data)
    tensor = reader.tensor()
    machine = Machine(
        name=reader.text("name"),
        title=reader.text("title"),
        target=reader.text("target"),
        clock=reader.number("clock.boost"),
        tensor=tensor,
        vector=reader.number("vector.f32"),
        sfu=reader.number("sfu.per_clock_sm") * reader.number("clock.boost") * reader.number("sm.count"),
        bandwidth=reader.number("memory.bandwidth"),
        memory=reader.number("memory.size"),
        l2_size=int(reader.number("l2.size")),
        l2_bandwidth=reader.number("l2.bandwidth"),
        sms=int(reader.number("sm.count")),
        shared=int(reader.number("sm.shared")),
        shared_block=int(reader.number("sm.shared_block")),
        registers=int(reader.number("sm.registers")),
        threads=int(reader.number("sm.threads")),
        launch=reader.number("launch.plain"),
        launch_graph=reader.number("launch.graph"),
        sources=reader.sources,
    )
    reader.finish()
    return machine


class _Reader:
    """Takes values out of the parsed file and collects its faults."""

    def __init__(self, source: Source, data: dict[str, Any]) -> None:
        self.source, self.data = source, data
        self.sources: dict[str, str] = {}
        self.used: set[str] = set()
        self.faults: dict[str, str] = {}

    def text(self, key: str) -> str:
        """A top-level string."""
        self.used.add(key)
        value = self.data.get(key)
        if not isinstance(value, str) or not value:
            self.faults.setdefault(key, f"`{key}` is missing or not a string")
            return ""
        return value

    def number(self, key: str) -> float:
        """A positive ``{ value = …, source = … }``."""
        self.used.add(key)
        table, name = key.split(".")
        group = self.data.get(table)
        entry = group.get(name) if isinstance(group, dict) else None
        if not isinstance(entry, dict):
            self.faults.setdefault(key, f"`{key}` is missing; write `{{ value = …, source = … }}`")
            return 1.0
        value, source = entry.get("value"), entry.get("source")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            self.faults.setdefault(key, f"`{key}` needs a positive number as its `value`")
            return 1.0
        if not isinstance(source, str) or not source.strip():
            self.faults.setdefault(key, f"`{key}` does not say its `source`")
        else:
            self.sources[key] = source
        return float(value)

    def tensor(self) -> dict[str, float]:
        """The dense matrix-unit peaks by dtype."""
        group = self.data.get("tensor")
        if not isinstance(group, dict) or not group:
            self.faults["tensor"] = "there is no table `tensor` of matrix-unit peaks"
            return {}
        found: dict[str, float] = {}
        for name, entry in group.items():
            key = f"tensor.{name}"
            found[name] = self.number(key)
            density = entry.get("density") if isinstance(entry, dict) else None
            if density is None:
                self.faults.setdefault(
                    key, f"`{key}` does not say whether it is dense: a sparse peak is no roof"
                )
            elif density != "dense":
                self.faults.setdefault(key, f"`{key}` is a {density} peak; give the dense one")
        return found

    def finish(self) -> None:
        """Report what was wrong, unknown keys included."""
        for table, group in self.data.items():
            names = [f"{table}.{n}" for n in group] if isinstance(group, dict) else [table]
            for key in names:
                if key not in self.used:
                    self.faults.setdefault(key, f"`{key}` is not a property of a machine")
        if self.faults:
            raise Failure(*(_fault(self.source, key, text) for key, text in self.faults.items()))


def _fault(source: Source, key: str, message: str) -> Diagnostic:
    return Diagnostic(code=BAD_MACHINE, message=message, span=_place(source, key), help=BAD_MACHINE.fix)


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
