"""Scans across memory in registers: each thread walks a few steps of its own columns, and parts meet once a chunk.

A chunk that is scanned as one block goes through the threads that share a column at every step of a tree. Here a chunk
has parts of several steps each. A thread takes the steps of a part one by one, for what the part adds as a whole;
one short scan over the parts says what came before each; and with that the thread takes its steps again, from what it has
in registers. The state is then the one that the recurrence itself makes, step after step, and every load of a chunk
is on its way at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opspec.ir.dtypes import F32, I4
from opspec.ir.integers import index
from opspec.ir.values import Binary, Literal, Read, Value, walk
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    Ahead,
    Begin,
    Combine,
    Fetch,
    Let,
    Loop,
    Remark,
    Scan,
    Statement,
    Take,
    TileProgram,
    Unroll,
    Var,
    Write,
    assigned,
    integers_of,
    values_of,
)


def hold_steps(program: TileProgram, names: Names) -> TileProgram:
    """The program with the steps of its scan in registers, if it streams along one across memory and does no more."""
    loops = [s for s in program.body if isinstance(s, Loop)]
    inner = [a.name for a in program.axes if a.role != "grid"]
    if len(loops) != 1 or inner != [loops[0].axis] or not _plain(loops[0]):
        return program
    scans = [s for s in loops[0].body if isinstance(s, Scan)]
    if len(scans) != 1 or not _across(scans[0]):
        return program
    own: list[Var] = []
    loop = replace(loops[0], body=tuple(_chunk(loops[0], scans[0], names, own)))
    loop = _ahead(program, loop, names, own)
    return replace(
        program,
        axes=tuple(replace(a, rows=a.name == loop.axis) for a in program.axes),
        body=tuple(loop if s is loops[0] else s for s in program.body),
        vars=(*program.vars, *own),
    )


def _ahead(program: TileProgram, loop: Loop, names: Names, own: list[Var]) -> Loop:
    """The loop with what its steps read loaded a chunk ahead, as it is stored; as it is where a load needs another."""
    first = loop.body[_first_unroll(loop)]
    assert isinstance(first, Unroll)
    loads = [s for s in first.body if isinstance(s, Fetch)]
    stored = {t.name: t.dtype for t in program.tensors}
    if not loads or any(_needs_more(s) or stored[s.tensor] == I4 for s in loads):
        return loop
    ahead: list[Statement] = []
    takes: dict[str, Take] = {}
    kept: list[tuple[str, str]] = []
    for s in loads:
        var = replace(s.var, name=names.fresh(f"{s.var.name}_stored"))
        coming, now = (names.fresh(f"{s.var.name}_{when}") for when in ("next", "now"))
        own.append(var)
        ahead.append(replace(s, var=var))
        kept.append((var.name, coming))
        takes[s.var.name] = Take(var=s.var, kept=now, at=index(f"{loop.axis}.row"), stored=s.tensor)
    again = {values: takes[name] for name, values in first.kept if name in takes}

    def taken(s: Statement) -> Statement:
        if isinstance(s, Fetch):
            return takes[s.var.name]
        return again.get(s.kept, s) if isinstance(s, Take) else s

    body: list[Statement] = []
    for part in loop.body:
        if isinstance(part, Unroll):
            own_takes = tuple(taken(x) if part is first or isinstance(x, Take) else x for x in part.body)
            left = tuple(k for k in part.kept if k[0] not in takes)
            body.append(replace(part, body=own_takes, kept=left))
        else:
            body.append(part)
    every = replace(first, body=tuple(ahead), kept=tuple(kept))
    return replace(
        loop, body=tuple(body), ahead=Ahead(loads=every, now=tuple(t.kept for t in takes.values()))
    )


def _first_unroll(loop: Loop) -> int:
    return next(k for k, s in enumerate(loop.body) if isinstance(s, Unroll))


def _needs_more(s: Fetch) -> bool:
    """Whether a load needs another before it, or gives other than 0 where it is outside."""
    reads = any(isinstance(part, Read) for v in values_of(s) for part in walk(v))
    zero = s.other is None or (isinstance(s.other, Literal) and s.other.value == 0)
    return reads or not zero or any(i.tensors() for i in integers_of(s))


def _plain(loop: Loop) -> bool:
    """Whether a loop goes forwards through one stretch, and its body is straight."""
    straight = all(isinstance(s, Fetch | Let | Scan | Write | Remark) for s in loop.body)
    return straight and loop.segments is None and not loop.reverse and loop.inner is None


def _across(scan: Scan) -> bool:
    """Whether a scan is carried along an axis other than that of memory, and takes every point."""
    carried = scan.carry is not None and scan.along == scan.axis and not scan.reverse and not scan.masks
    return carried and scan.axes[-1] != scan.axis and scan.var.dtype is F32


def _chunk(loop: Loop, scan: Scan, names: Names, own: list[Var]) -> Iterable[Statement]:
    """What one step of the loop does; new variables go to ``own``."""
    at = loop.body.index(scan)
    before, after = loop.body[:at], loop.body[at + 1 :]
    label = scan.var.name

    def fresh(name: str) -> Var:
        own.append(Var(name=names.fresh(name), axes=scan.axes, dtype=scan.var.dtype))
        return own[-1]

    part, state = fresh(f"{label}_part"), fresh(f"{label}_state")
    factor = None if scan.decay is None else fresh(f"{label}_factor")
    yield Begin(var=part, monoid=scan.monoid)
    if factor is not None:
        yield Begin(var=factor, monoid="prod")
    ahead: list[Statement] = [s for s in before if not isinstance(s, Write | Remark)]
    made = {v.name: v for s in ahead for v in assigned(s)}
    wanted = _reads((scan, *after, *(s for s in before if isinstance(s, Write))))
    kept = tuple((n, names.fresh(f"{n}_steps")) for n in made if n in wanted)
    ahead.append(_step(part, scan))
    if factor is not None and scan.decay is not None:
        ahead.append(Combine(var=factor, monoid="prod", value=scan.decay))
    yield _steps(loop.axis, ahead, kept)
    yield replace(
        scan,
        var=state,
        value=part.read,
        decay=None if factor is None else factor.read,
        exclusive=True,
    )
    takes = [Take(var=made[n], kept=values, at=index(f"{loop.axis}.row")) for n, values in kept]
    moved = [_step(state, scan), Let(var=scan.var, value=state.read)]
    moved = moved[::-1] if scan.exclusive else moved
    again = [*takes, *(s for s in before if isinstance(s, Write | Remark)), *moved, *after]
    yield _steps(loop.axis, again, ())


def _steps(axis: str, body: list[Statement], kept: tuple[tuple[str, str], ...]) -> Unroll:
    place = (axis, index(f"{axis}.place") + index(f"{axis}.row"))
    return Unroll(index=f"{axis}.row", count=index(f"{axis}.step"), body=tuple(body), place=place, kept=kept)


def _step(state: Var, scan: Scan) -> Let | Combine:
    """A state moved on by one point."""
    if scan.decay is None:
        return Combine(var=state, monoid=scan.monoid, value=scan.value)
    decayed = Binary(op="mul", a=state.read, b=scan.decay, dtype=F32)
    return Let(var=state, value=Binary(op="add", a=decayed, b=scan.value, dtype=F32))


def _reads(body: Iterable[Statement]) -> set[str]:
    """The variables that statements read."""
    values: list[Value] = [v for s in body for v in values_of(s)]
    return {part.name for v in values for part in walk(v) if isinstance(part, Read)}
