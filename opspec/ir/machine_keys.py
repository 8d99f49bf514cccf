"""The properties of a machine: what a machine file must state and a machine block may restate.

Values are in base units (operations, bytes and seconds, nothing scaled). ``low`` and ``high`` bound what any GPU
has, wide enough for those to come, so that a value in the wrong unit is found.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One property: its unit, the range of what is plausible, and whether it is a whole number."""

    unit: str
    about: str
    low: float
    high: float
    whole: bool = False


KEYS = {
    "clock.boost": Key("Hz", "clock that the peaks are quoted at", 1e8, 1e10),
    "vector.f32": Key("FLOP/s", "f32 outside of matrix units, 2 to a multiply-add", 1e11, 1e16),
    "sfu.per_clock_sm": Key("", "special functions per clock and multiprocessor", 1, 1024),
    "memory.bandwidth": Key("B/s", "peak of the device memory", 1e10, 1e15),
    "memory.size": Key("B", "size of the device memory", 1e8, 1e14, whole=True),
    "l2.size": Key("B", "size of the second-level cache", 1e5, 1e11, whole=True),
    "l2.bandwidth": Key("B/s", "peak of the second-level cache", 1e11, 1e16),
    "sm.count": Key("", "multiprocessors or compute units", 1, 1e5, whole=True),
    "sm.shared": Key("B", "shared memory of a multiprocessor", 1e3, 1e8, whole=True),
    "sm.shared_block": Key("B", "shared memory that one block may take", 1e3, 1e8, whole=True),
    "sm.registers": Key("", "32-bit registers of a multiprocessor", 1e3, 1e7, whole=True),
    "sm.threads": Key("", "threads that a multiprocessor holds", 32, 1e5, whole=True),
    "launch.plain": Key("s", "time from one kernel's start to the next's, plain launches", 1e-8, 1e-2),
    "launch.graph": Key("s", "the same inside of a graph", 1e-8, 1e-2),
}

TENSOR = Key("FLOP/s", "dense matrix-unit peak of an operand type, 2 to a multiply-add", 1e11, 1e18)
TENSOR_TYPES = ("bf16", "f16", "tf32", "f8e4m3", "f8e5m2", "i8", "i4")


def key_of(name: str) -> Key | None:
    """The property of a dotted name such as ``memory.bandwidth`` or ``tensor.bf16``."""
    table, _, rest = name.partition(".")
    return TENSOR if table == "tensor" and rest in TENSOR_TYPES else KEYS.get(name)


def known() -> tuple[str, ...]:
    """Every dotted name."""
    return (*KEYS, *(f"tensor.{t}" for t in TENSOR_TYPES))
