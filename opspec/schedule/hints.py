"""What L2 should do with elements that a straight program reads once: what such a load says of them.

A row of which nothing as long is written is no use to anyone behind its only load. Where a launch writes several
tensors as large as those that it reads, and all are many times what L2 holds, loads that stay rather than others let
what was written go to memory early and in order; what they leave in L2 costs the next launch less than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opspec.ir.integers import Int
from opspec.schedule.tile import Collapse, Fetch, Hint, Let, Locate, Remark, TileProgram, Write

SEVERAL = 2  # tensors that are read, and as many that are written
MUCH = 1 << 28  # elements of them all: ten times what fits in L2


def hint_loads(program: TileProgram, typical: Callable[[Int], int | None]) -> TileProgram:
    """The program with hints for loads of elements that no other program reads; ``typical``: the largest extent that a
    workload gives an expression."""
    if not all(isinstance(s, Fetch | Let | Collapse | Locate | Write | Remark) for s in program.body):
        return program
    every = {a.name for a in program.axes}
    whole = {a.name for a in program.axes if a.role == "tile"}

    def once(at: tuple[Int, ...]) -> bool:
        return every <= {n for i in at for n in i.free_indices()} and not any(i.tensors() for i in at)

    # what another launch of the op has just written may be there still
    given = {t.name for t in program.op.tensors if t.role != "out"}
    reads = [s for s in program.body if isinstance(s, Fetch) and s.tensor in given and once(s.at)]
    reads = [s for s in reads if s.again is None]
    writes = [s for s in program.body if isinstance(s, Write)]
    hint: Hint | None = None
    if whole and not any(whole & set(s.axes) for s in writes):
        # one row, of elements that lie side by side in memory, and no look at one of them later
        reads = [s for s in reads if whole & s.at[-1].free_indices()]
        loads = [s.tensor for s in program.body if isinstance(s, Fetch)]
        hint = "evict_first" if len(reads) == 1 and loads.count(reads[0].tensor) == 1 else None
    elif len(reads) >= SEVERAL and sum(once(s.at) for s in writes) >= SEVERAL:
        elements = Int.of(1)
        for axis in program.axes:
            elements = elements * axis.extent
        moved = len(reads) + len(writes)
        hint = "evict_last" if moved * (typical(elements) or 0) >= MUCH else None
    if hint is None:
        return program
    body = tuple(replace(s, hint=hint) if s in reads else s for s in program.body)
    return replace(program, body=body)
