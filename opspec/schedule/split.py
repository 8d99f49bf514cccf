"""One stream in several programs: each walks a part of it, and a second launch joins what they carried.

A program that streams can't be faster than one multiprocessor. Where too few programs are left for a
device, the stream is cut; what the loop carries (an accumulator, or a running extreme and the sums beside
it) goes to workspace, and the same laws that move it on from step to step join the parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from opspec.ir.dtypes import F32, I64
from opspec.ir.integers import Int, dim, greatest, index, least
from opspec.ir.program import Tensor
from opspec.ir.values import (
    Extent,
    Read,
    walk,
)
from opspec.schedule.joining import IDENTITY, join_statements, needed_before, program_of, within_axes
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    AxisPlan,
    Begin,
    Loop,
    Statement,
    TileProgram,
    Var,
    Write,
    assigned,
    integers_of,
    statements,
    values_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A stream ``axis`` in ``splits`` parts of ``span`` indices: the programs that walk them, and the join.

    ``beside``: further streams in as many parts, each with the span of its own. ``parts``: workspace, one tensor per
    carried variable; ``splits`` and the spans are sizes of a launch.
    """

    axis: str
    splits: str
    span: str
    parts: tuple[Tensor, ...]
    partial: TileProgram
    merge: TileProgram
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes of a launch that say how streams are cut."""
        return (self.splits, self.span, *(span for _, span in self.beside))


def split_stream(program: TileProgram, names: Names) -> Split | None:
    """The two programs for one that streams once, or several streams apart; None where it can't be cut."""
    loops = tuple(s for s in program.body if isinstance(s, Loop))
    before, after = _around(program.body)
    if not loops or not _divisible(program, loops, after):
        return None
    part, splits = names.fresh("part"), names.fresh("splits")
    spans = [names.fresh("span") for _ in loops]
    carried = tuple(c for loop in loops for c in loop.carried)
    grid = [a for a in program.axes if a.role == "grid"]
    tensors: dict[str, Tensor] = {}
    places: dict[str, tuple[Int, ...]] = {}
    for c in carried:
        own = [*grid, *(a for a in program.axes if a.name in c.var.axes and a not in grid)]
        name = names.fresh(f"{c.var.name}_part")
        tensors[c.var.name] = Tensor(
            name=name, dtype=F32, extents=(dim(splits), *(a.extent for a in own)), role="out", span=None
        )
        places[c.var.name] = (index(part), *(index(a.name) for a in own))
    cut = (_cut(loop, part, span) for loop, span in zip(loops, spans, strict=True))
    writes = tuple(_store(program, c.var, tensors[c.var.name], places[c.var.name]) for c in carried)
    first = AxisPlan(name=part, extent=dim(splits), role="grid", dims=())
    partial = program_of(program, (*before, *cut, *writes), (first, *program.axes), tensors.values())
    partial = replace(partial, sizes=(splits, *spans))
    every = AxisPlan(name=part, extent=dim(splits), role="tile", dims=(part,))
    walked = {s.axis for s in statements(loops) if isinstance(s, Loop)}
    axes = (every, *(a for a in program.axes if a.name not in walked))
    joins, new = join_statements(replace(program, axes=axes), part, carried, tensors, places, names)
    needed = needed_before([s for s in before if not isinstance(s, Begin)], after, program)
    merged = program_of(program, (*needed, *joins, *after), axes, tensors.values(), extra=tuple(new))
    merged = replace(merged, sizes=(splits,))
    return Split(
        axis=loops[0].axis,
        splits=splits,
        span=spans[0],
        beside=tuple((loop.axis, span) for loop, span in zip(loops[1:], spans[1:], strict=True)),
        parts=tuple(tensors.values()),
        partial=partial,
        merge=merged,
    )


def _around(body: tuple[Statement, ...]) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """The statements that no loop leads to, and those behind the last one or made of what one carried."""
    before: list[Statement] = []
    after: list[Statement] = []
    behind: set[str] = set()
    last = max((i for i, s in enumerate(body) if isinstance(s, Loop)), default=0)
    for i, s in enumerate(body):
        if isinstance(s, Loop):
            behind |= {c.var.name for c in s.carried}
            continue
        given = {v.name for v in assigned(s)}
        if i > last or (_read_by((s,)) | given) & behind:
            after.append(s)
            behind |= given
        else:
            before.append(s)
    return tuple(before), tuple(after)


def _read_by(body: Iterable[Statement]) -> set[str]:
    """Every variable that statements read."""
    return {
        v.name
        for s in statements(tuple(body))
        for value in values_of(s)
        for v in walk(value)
        if isinstance(v, Read)
    }


def _divisible(program: TileProgram, loops: tuple[Loop, ...], after: tuple[Statement, ...]) -> bool:
    """Whether loops use nothing of each other and leave nothing but what they carry, in f32 and for each row of a
    block."""
    rows = {a.name for a in program.axes if a.role == "grid" and a.blocked}
    carried = [c for loop in loops for c in loop.carried]
    outside = {v.name for s in after for v in assigned(s)} | {c.var.name for c in carried}
    for loop in loops:
        if (
            not loop.carried
            or loop.reverse
            or loop.segments is not None
            or loop.sweeps > 1
            or len(program.axis(loop.axis).dims) != 1
        ):
            return False
        if not isinstance(loop.start, Extent) or not isinstance(loop.stop, Extent):
            return False
        if any(isinstance(s, Write) for s in statements(loop.body)):
            return False
        if len(loops) > 1:
            # plain sums add up where they are: a workspace for each would be written for nothing
            own = {c.var.name for c in loop.carried}
            if _read_by((loop,)) & (outside - own) or all(c.state is None for c in loop.carried):
                return False
        if any(loop.axis in i.free_indices() for s in after for i in integers_of(s)):
            return False
    if {s.var.name for s in program.body if isinstance(s, Begin)} != {c.var.name for c in carried}:
        return False
    if any(isinstance(s, Begin) for s in after) or len({loop.axis for loop in loops}) < len(loops):
        return False
    return all(c.var.dtype is F32 and rows <= set(c.var.axes) and c.monoid in IDENTITY for c in carried)


def _cut(loop: Loop, part: str, span: str) -> Loop:
    """The loop over one part of its stream."""
    assert isinstance(loop.start, Extent)
    assert isinstance(loop.stop, Extent)
    start = loop.start.value + index(part) * dim(span)
    stop = least(loop.stop.value, start + dim(span))
    inner = loop.inner
    if inner is not None:
        assert isinstance(inner.stop, Extent)
        whole = inner.start is None and loop.start.value == Int.of(0)
        known = not inner.stop.value.free_indices() and not inner.stop.value.tensors()
        end = inner.stop.value if whole and known and inner.stop.value == loop.stop.value else None
        high = Extent(value=least(inner.stop.value, start + dim(span)), dtype=I64)
        low = inner.start
        if low is not None:
            assert isinstance(low, Extent)
            low = Extent(value=greatest(low.value, start), dtype=I64)
        inner = replace(inner, start=low, stop=high, end=end)
    return replace(
        loop, start=Extent(value=start, dtype=I64), stop=Extent(value=stop, dtype=I64), inner=inner
    )


def _store(program: TileProgram, var: Var, tensor: Tensor, at: tuple[Int, ...]) -> Write:
    return Write(
        tensor=tensor.name, at=at, value=var.read, axes=var.axes, masks=within_axes(program, var.axes)
    )
