"""The launch that joins the parts of a stream, by the laws that move a state on from step to step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opspec.ir.dtypes import BOOL, F32
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Tensor
from opspec.ir.values import (
    Binary,
    Compare,
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
    Carried,
    Collapse,
    Fetch,
    Let,
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


def within_axes(program: TileProgram, axes: tuple[str, ...]) -> tuple[Value, ...]:
    """The conditions under which places of these axes are inside of them."""
    return tuple(inside(a, program.axis(a).extent) for a in axes)


def join_statements(
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
        masks = within_axes(program, axes)
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


def needed_before(
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


def program_of(
    program: TileProgram,
    body: tuple[Statement, ...],
    axes: tuple[AxisPlan, ...],
    parts: Iterable[Tensor],
    extra: tuple[Var, ...] = (),
) -> TileProgram:
    """A program of these statements, with what they use of the variables, data and tensors of another and of ``parts``."""
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
