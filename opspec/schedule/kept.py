"""Rows of a group in registers: a stream of a few whole rows that is swept several times loads each row once.

A program that holds a group of rows as one tile pads both of its axes; one that streams the rows loads them anew in
each sweep. Where rows are few, loops over them are written out when the kernel compiles, and the later ones take
from registers what the first one loaded.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.integers import ZERO, index
from opspec.ir.values import Extent
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    Combine,
    Fetch,
    Let,
    Loop,
    Remark,
    Statement,
    Take,
    TileProgram,
    Unroll,
    Write,
)


def keep_rows(program: TileProgram, axis: str, names: Names) -> TileProgram | None:
    """The program with its sweeps over ``axis`` written out; None where they are no plain ones, or one alone."""
    loops = [s for s in program.body if isinstance(s, Loop)]
    if len(loops) < 2 or not all(s.axis == axis and _plain(program, s) for s in loops):
        return None
    kept: dict[Fetch, str] = {}
    body: list[Statement] = []
    for s in program.body:
        if not isinstance(s, Loop):
            body.append(s)
            continue
        own: list[tuple[str, str]] = []
        steps: list[Statement] = []
        for inner in s.body:
            if isinstance(inner, Fetch) and (key := replace(inner, reread=False)) in kept:
                steps.append(Take(var=inner.var, kept=kept[key], at=index(axis)))
                continue
            if isinstance(inner, Fetch) and inner.var.axes and s is not loops[-1]:
                inner = replace(inner, reread=False)  # noqa: PLW2901
                kept[inner] = names.fresh(f"{inner.var.name}_rows")
                own.append((inner.var.name, kept[inner]))
            steps.append(inner)
        body.append(
            Unroll(index=axis, count=index(f"{axis}.count"), body=tuple(steps), kept=tuple(own), raw=True)
        )
    if not any(isinstance(x, Take) for s in body if isinstance(s, Unroll) for x in s.body):
        return None
    return replace(program, body=tuple(body))


def _plain(program: TileProgram, loop: Loop) -> bool:
    """Whether a loop walks all of its axis in order, one index at a time, and its body is straight."""
    axis = program.axis(loop.axis)
    whole = isinstance(loop.start, Extent) and loop.start.value == ZERO
    whole = whole and isinstance(loop.stop, Extent) and loop.stop.value == axis.extent
    plain = not axis.blocked and loop.segments is None and not loop.reverse and loop.inner is None
    return whole and plain and all(isinstance(s, Fetch | Let | Combine | Write | Remark) for s in loop.body)
