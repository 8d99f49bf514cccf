"""One stream in several programs: each walks a part of it, and a second launch joins what they carried.

A program that streams can't be faster than one multiprocessor. Where too few programs are left for a
device, the stream is cut; what the loop carries (an accumulator, or a running extreme and the sums beside
it) goes to workspace, and the same laws that move it on from step to step join the parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from opspec.ir.dtypes import BOOL, F32, I64
from opspec.ir.integers import Datum, Int, dim, greatest, index, least
from opspec.ir.program import Tensor
from opspec.ir.values import (
    Binary,
    Compare,
    Extent,
    Literal,
    Read,
    Select,
    Value,
    integers,
    walk,
)
from opspec.schedule.laws import between_states
from opspec.schedule.means import brought, difference, mean_of
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    AxisPlan,
    Begin,
    Carried,
    Collapse,
    Fetch,
    Let,
    Loop,
    Statement,
    TileProgram,
    Var,
    Write,
    assigned,
    inside,
    integers_of,
    statements,
    values_of,
)

IDENTITY = {"max": float("-inf"), "min": float("inf"), "sum": 0.0}


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
    partial = _program(program, (*before, *cut, *writes), (first, *program.axes), tensors.values())
    partial = replace(partial, sizes=(splits, *spans))
    every = AxisPlan(name=part, extent=dim(splits), role="tile", dims=(part,))
    walked = {s.axis for s in statements(loops) if isinstance(s, Loop)}
    axes = (every, *(a for a in program.axes if a.name not in walked))
    joins, new = _joins(replace(program, axes=axes), part, carried, tensors, places, names)
    needed = _needed([s for s in before if not isinstance(s, Begin)], after, program)
    merged = _program(program, (*needed, *joins, *after), axes, tensors.values(), extra=tuple(new))
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
    return Write(tensor=tensor.name, at=at, value=var.read, axes=var.axes, masks=_inside(program, var.axes))


def _inside(program: TileProgram, axes: tuple[str, ...]) -> tuple[Value, ...]:
    return tuple(inside(a, program.axis(a).extent) for a in axes)


def _joins(
    program: TileProgram,
    part: str,
    carried: tuple[Carried, ...],
    tensors: dict[str, Tensor],
    places: dict[str, tuple[Int, ...]],
    names: Names,
) -> tuple[list[Statement], list[Var]]:
    """Load what all parts carried, and join it."""
    made: list[Var] = []
    out: list[Statement] = []
    joint: dict[str, tuple[Read, Read]] = {}  # state → what the parts had, and the joint state made finite
    whole: dict[str, tuple[Read, Read]] = {}  # variable → what the parts had, and the joint one
    moved: dict[str, Var] = {}  # sum → how far the mean of each part is from the joint one
    scales: dict[tuple[str, Value], Var] = {}

    def declare(name: str, axes: tuple[str, ...]) -> Var:
        made.append(Var(name=names.fresh(name), axes=axes, dtype=F32))
        return made[-1]

    def distance(total: str, count: str) -> Value:
        if total not in moved:
            (theirs, ours), (some, every) = whole[total], whole[count]
            mean = declare(f"{total}_mean_all", tuple(i.index or "" for i in ours.indices))
            out.append(Let(var=mean, value=mean_of(ours, every)))
            moved[total] = declare(f"{total}_parts_moved", (part, *mean.axes))
            out.append(Let(var=moved[total], value=difference(mean_of(theirs, some), mean.read)))
        return moved[total].read

    states = {c.state for c in carried if c.state is not None}
    for c in sorted(carried, key=lambda c: (c.var.name not in states, c.sums is not None)):
        axes = (part, *c.var.axes)
        other = declare(f"{c.var.name}_parts", axes)
        identity = Literal(value=IDENTITY[c.monoid], dtype=F32)
        tensor, at = tensors[c.var.name].name, places[c.var.name]
        masks = _inside(program, axes)
        out.append(Fetch(var=other, tensor=tensor, at=at, masks=masks, other=identity, raw=False))
        value: Value = other.read
        if c.state is not None and c.factor is not None:
            state = next(k.var for k in carried if k.var.name == c.state)
            theirs, safe = joint[c.state]
            if (c.state, c.factor) not in scales:
                scale = declare("scale", (part, *state.axes))
                scales[c.state, c.factor] = scale
                out.append(Let(var=scale, value=between_states(c.factor, theirs, safe)))
            value = Binary(op="mul", a=value, b=scales[c.state, c.factor].read, dtype=F32)
        if c.sums is not None and c.count is not None:
            value = brought(
                value, whole[c.count][0], (distance(c.sums[0], c.count), distance(c.sums[1], c.count))
            )
        whole[c.var.name] = other.read, c.var.read
        out.append(Collapse(var=c.var, monoid=c.monoid, value=value, axes=axes, over=(part,)))
        if c.var.name in states:
            finite = declare(f"{c.var.name}_safe", c.var.axes)
            at_identity = Compare(op="eq", a=c.var.read, b=identity, dtype=BOOL)
            zero = Literal(value=0.0, dtype=F32)
            out.append(Let(var=finite, value=Select(condition=at_identity, a=zero, b=c.var.read, dtype=F32)))
            joint[c.var.name] = (other.read, finite.read)
    return out, made


def _needed(
    before: list[Statement], after: tuple[Statement, ...], program: TileProgram
) -> tuple[Statement, ...]:
    """What the statements behind the loop use of those before it."""
    data = dict(program.data)
    wanted = _used(after, data)
    kept: list[Statement] = []
    for s in reversed(before):
        if any(v.name in wanted for v in assigned(s)):
            kept.append(s)
            wanted |= _used([s], data)
    return tuple(reversed(kept))


def _used(body: Iterable[Statement], data: dict[tuple[str, tuple[Int, ...]], str]) -> set[str]:
    found: set[str] = set()
    for s in body:
        for value in values_of(s):
            found |= {v.name for v in walk(value) if isinstance(v, Read)}
            for v in walk(value):
                if not isinstance(v, Read):
                    for i in integers(v):
                        found |= _datums(i, data)
        for i in integers_of(s):
            found |= _datums(i, data)
    return found


def _datums(i: Int, data: dict[tuple[str, tuple[Int, ...]], str]) -> set[str]:
    return {data[a.tensor, a.indices] for a in i.atoms() if isinstance(a, Datum)}


def _program(
    program: TileProgram,
    body: tuple[Statement, ...],
    axes: tuple[AxisPlan, ...],
    parts: Iterable[Tensor],
    extra: tuple[Var, ...] = (),
) -> TileProgram:
    every = list(statements(body))
    touched = {s.tensor for s in every if isinstance(s, Fetch | Write)}
    given = {v.name for s in every for v in assigned(s)}
    known = (*program.vars, *extra)
    kept = tuple(v for v in known if v.name in given)
    return replace(
        program,
        axes=axes,
        body=body,
        tensors=tuple(t for t in (*program.tensors, *parts) if t.name in touched),
        vars=kept,
        data=tuple((k, v) for k, v in program.data if v in given),
    )
