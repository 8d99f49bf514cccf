"""Which axes meet in the values of a tile program: what of a choice of blocks multiplies, and what adds up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opspec.schedule.tile import Collapse, Combine, Fetch, Loop, Multiply, Scan, TileProgram, statements

EXTREMES = ("max", "min")


def shapes(program: TileProgram) -> Iterator[set[str]]:
    """The block dimensions of each value, those of what is reduced or scanned too."""
    for v in program.vars:
        yield set(v.axes)
    for s in statements(program.body):
        if isinstance(s, Collapse | Scan):
            yield set(s.axes)


def three_deep(program: TileProgram, axes: set[str]) -> set[str]:
    """Those of the axes that meet another one and a third in one value. No matrix unit makes such a value, and all of
    it lives in registers."""
    return {a for shape in shapes(program) if len(shape) > 2 and len(shape & axes) > 1 for a in shape & axes}


def never_together(program: TileProgram, whole: Sequence[str]) -> bool:
    """Whether no value of a program has two of the whole axes."""
    return all(len(shape & set(whole)) < 2 for shape in shapes(program))


def beside_rows(program: TileProgram, rows: str) -> tuple[bool, tuple[str, ...]]:
    """Whether results of block products are summed over a stream, and the one axis that each has beside its rows.

    No axes where a result has more of them, or not these rows.
    """
    results = {s.var.axes for s in statements(program.body) if isinstance(s, Multiply)}
    summed = any(isinstance(s, Combine) and s.var.axes in results for s in statements(program.body))
    if any(len(axes) != 2 or rows not in axes for axes in results):
        return summed, ()
    return summed, tuple(sorted({a for axes in results for a in axes} - {rows}))


def tiles_beside(program: TileProgram, rows: str, streams: Sequence[str]) -> int:
    """How many values over rows and a chunk of a stream live beside the scores in one step: what is loaded, and scores
    that have a running extreme of their own."""
    most = 0
    for loop in statements(program.body):
        if isinstance(loop, Loop) and loop.axis in streams:
            shape = {rows, loop.axis}
            loaded = sum(isinstance(s, Fetch) and set(s.var.axes) == shape for s in loop.body)
            extremes = sum(c.monoid in EXTREMES and c.var.axes == (rows,) for c in loop.carried)
            most = max(most, loaded + max(extremes - 1, 0))
    return most
