"""Results that differ by what a matrix is, of the same rows: a program keeps its rows and walks over the matrices.

In ``y[m, o] = sum[j](sum[i](x[m, i] * w[o, i, j]) * z[m, j])`` all that has rows is the same for every o. A program of
one o would load a tile of ``z`` and of ``x`` for each; walking over o it keeps what stands outside of all streams in
registers, loads for the next o while it ends one, and has less to wait for.
"""

from __future__ import annotations

from opspec.ir.values import Read, walk
from opspec.schedule.tile import (
    AxisPlan,
    Fetch,
    Let,
    Loop,
    Multiply,
    Remark,
    Statement,
    TileProgram,
    assigned,
    integers_of,
    statements,
    values_of,
)


def walked_axis(program: TileProgram) -> AxisPlan | None:
    """The grid axis that a program may walk: the last one, without a block, which nothing with rows has, where a tile
    of rows is loaded outside of all streams and an operand of every block product has that axis."""
    grid = [a for a in program.axes if a.role == "grid"]
    blocked = [a for a in grid if a.blocked]
    if len(blocked) != 1 or not grid or grid[-1].blocked or program.sizes:
        return None
    axis, rows = grid[-1], blocked[0].name
    body = list(statements(program.body))
    fetched = [s for s in body if isinstance(s, Fetch)]
    with_rows = [s for s in fetched if rows in s.var.axes]
    kept = [s for s in program.body if isinstance(s, Fetch) and rows in s.var.axes and len(s.var.axes) > 1]
    beside = {s.var.name for s in fetched if _has(s, axis.name)}
    products = [s for s in body if isinstance(s, Multiply)]
    changing = all(
        {v.name for o in (s.a, s.b) for v in walk(o.value) if isinstance(v, Read)} & beside for s in products
    )
    if not kept or not products or not changing or any(_has(s, axis.name) for s in with_rows):
        return None
    return axis if all(s.raw or s in program.body for s in with_rows) else None


def around_walk(program: TileProgram, axis: str) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """The statements that are the same at every step of a walk, and those of a step."""
    moved: set[str] = set()
    before: list[Statement] = []
    inside: list[Statement] = []
    for k, s in enumerate(program.body):
        same = isinstance(s, Fetch | Let) and not _has(s, axis) and not _reads(s) & moved
        said = isinstance(s, Remark) and k + 1 < len(program.body) and program.body[k + 1] in before
        if same or said:
            before.append(s)
        else:
            inside.append(s)
            moved |= {v.name for x in statements((s,)) for v in assigned(x)}
    return tuple(before), _late(inside, {name for _, name in program.data})


def _late(body: list[Statement], data: set[str]) -> tuple[Statement, ...]:
    """A step with loads that its streams don't use behind these: there they wait beside the loads of the next step; ``data``: variables that say where something is."""
    last = max((k for k, s in enumerate(body) if isinstance(s, Loop)), default=-1)
    used = {n for s in statements(tuple(body[: last + 1])) for n in _reads(s)} | data
    late = [s for s in body[: last + 1] if isinstance(s, Fetch) and s.var.name not in used]
    kept = [s for s in body[: last + 1] if s not in late]
    return (*kept, *late, *body[last + 1 :])


def _has(s: Statement, axis: str) -> bool:
    """Whether a statement depends on an axis by an address, a mask or a value."""
    return any(axis in i.free_indices() for i in integers_of(s))


def _reads(s: Statement) -> set[str]:
    found: set[str] = set()
    for value in values_of(s):
        found |= {v.name for v in walk(value) if isinstance(v, Read)}
    return found
