"""Machines: datasheet peaks and limits of a GPU, each with its source, by name or from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from opspec.analysis.codes import BAD_MACHINE
from opspec.analysis.machine_file import Values, fault, read
from opspec.diagnostics import Diagnostic, Failure
from opspec.diagnostics.hints import nearest
from opspec.ir.program import Module
from opspec.resources import machines
from opspec.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One GPU. Rates are FLOP/s (2 to a multiply-add), bytes/s and operations/s; sizes bytes; times s.

    ``tensor``: dense matrix-unit peak by dtype. ``values``: what its file states, and ``sources`` where that is
    from, both by dotted key; one that starts with ``asserted`` is neither a datasheet's nor measured.
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
    values: Mapping[str, float]
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


_LARGEST = 100_000  # bytes of a machine file
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


def load(name_or_path: str) -> Machine:
    """A machine by the name of a shipped profile, or by the path of a TOML file.

    Raises: Failure if there is none of that name, or the file is not usable.
    """
    if name_or_path in available():
        return _shipped(name_or_path)
    path = Path(name_or_path)
    if not path.exists():
        known = f"machines that ship: {', '.join(available())}; or give the path of a TOML file"
        near = nearest(name_or_path, available())
        raise Failure(
            Diagnostic(
                code=BAD_MACHINE,
                message=f"there is no machine `{name_or_path[:80]}`",
                span=None,
                help=f"{near} {known}".strip(),
            )
        )
    return parse(_source(path, str(path)))


@lru_cache(maxsize=32)
def _shipped(name: str) -> Machine:
    return parse(_source(machines() / f"{name}.toml", f"{name}.toml"))


def _source(path: Path, label: str) -> Source:
    """The text of a machine file.

    Raises: Failure if it is no file, too big or not UTF-8.
    """
    reason = ""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
        if len(raw) <= _LARGEST:
            return Source.normalised(label, raw.decode("utf-8"))
        reason = f"it is larger than a machine file may be ({_LARGEST:,} bytes)"
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    raise Failure(fault(Source(label, ""), "", f"cannot read `{label}`: {reason}"))


def parse(source: Source) -> Machine:
    """A machine from the text of its file.

    Raises: Failure with every fault of the file.
    """
    values = read(source)
    return _machine(values.name, values.title, values.target, values)


def machine_of(module: Module, name: str) -> Machine:
    """A machine that the spec states, or else one that ships or a file.

    Raises: Failure if there is none of that name, or it is not usable.
    """
    block = next((b for b in module.machines if b.name == name), None)
    if block is None:
        return load(name)
    base = machine_of(module, block.like)
    own = {v.key: float(v.value) for v in block.values}
    title = block.doc.partition("\n")[0] or f"{base.title}, with {', '.join(own)} of its own"
    sources = {**base.sources, **{v.key: v.source for v in block.values}}
    values = Values(block.name, title, base.target, {**base.values, **own}, sources)
    return _machine(block.name, title, base.target, values)


def _machine(name: str, title: str, target: str, values: Values) -> Machine:
    number = values.numbers
    return Machine(
        name=name,
        title=title,
        target=target,
        clock=number["clock.boost"],
        tensor={k.partition(".")[2]: v for k, v in number.items() if k.startswith("tensor.")},
        vector=number["vector.f32"],
        sfu=number["sfu.per_clock_sm"] * number["clock.boost"] * number["sm.count"],
        bandwidth=number["memory.bandwidth"],
        memory=number["memory.size"],
        l2_size=int(number["l2.size"]),
        l2_bandwidth=number["l2.bandwidth"],
        sms=int(number["sm.count"]),
        shared=int(number["sm.shared"]),
        shared_block=int(number["sm.shared_block"]),
        registers=int(number["sm.registers"]),
        threads=int(number["sm.threads"]),
        launch=number["launch.plain"],
        launch_graph=number["launch.graph"],
        values=number,
        sources=values.sources,
    )
