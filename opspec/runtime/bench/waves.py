"""How the programs of a launch fill a device: how many a multiprocessor holds at once, and in how many waves.

Works on what a compiled kernel and the card say of themselves; needs neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

THREADS = 32  # of a warp
BLOCKS = 32  # programs that a multiprocessor holds at most
PARTITIONS = 4  # of a multiprocessor, each with registers of its own
PER_WARP = 256  # registers are given to a warp in multiples of this
RESERVED = 1024  # bytes of shared memory that the driver takes per program


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One launch: ``programs`` in the grid, and ``go`` to launch it again by hand."""

    kernel: str
    programs: int
    compiled: Any
    go: Callable[[], Any]


def describe_launches(started: Sequence[Started], properties: Any) -> list[dict[str, Any]]:
    """Each launch as an object: its grid, what it takes, and how many waves of programs it is; None where
    that isn't known."""
    return [describe_launch(item, properties) for item in started]


def describe_launch(item: Started, properties: Any) -> dict[str, Any]:
    """One launch as an object."""
    metadata = getattr(item.compiled, "metadata", None)
    registers = whole(item.compiled, "n_regs")
    shared, warps = whole(metadata, "shared"), whole(metadata, "num_warps")
    held = None
    if registers is not None and shared is not None and warps is not None:
        held = occupancy(registers, shared, warps, properties)
    count = getattr(properties, "multi_processor_count", None)
    return {
        "kernel": item.kernel,
        "programs": item.programs,
        "registers": registers,
        "shared_bytes": shared,
        "warps": warps,
        "per_multiprocessor": held,
        "multiprocessors": count,
        "waves": item.programs / (count * held) if held and count else None,
    }


def whole(source: Any, name: str) -> int | None:
    """A whole number that something says of itself, or None."""
    found = getattr(source, name, None)
    return found if isinstance(found, int) else None


def occupancy(registers: int, shared: int, warps: int, properties: Any) -> int | None:
    """Programs that a multiprocessor holds at once, by registers, shared memory and threads; None where the
    device doesn't tell what it has."""
    file = getattr(properties, "regs_per_multiprocessor", None)
    memory = getattr(properties, "shared_memory_per_multiprocessor", None)
    threads = getattr(properties, "max_threads_per_multi_processor", None)
    if not (file and memory and threads):
        return None
    each = -(-max(registers, 1) * THREADS // PER_WARP) * PER_WARP
    resident = file // PARTITIONS // each * PARTITIONS
    return int(min(resident // warps, memory // (shared + RESERVED), threads // (THREADS * warps), BLOCKS))


def unfilled(launches: Sequence[dict[str, Any]]) -> float:
    """How much longer than on a full device the launches may take because their last wave is not full: the
    largest of ceil(w) / w - 1, for w waves."""
    waves = [item["waves"] for item in launches if item["waves"]]
    return max((math.ceil(w) / w - 1 for w in waves), default=0.0)
