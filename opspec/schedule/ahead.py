"""Loads ahead of stores: all tiles that a program reads are on their way before it writes the first one.

A compiler can't tell that a tensor which is written is none of those that are read afterwards, so a load that stands
behind a store waits for what is stored, and so for the loads in front of it. What a statement reads is what was there
before the launch, so that a load may always go ahead of the stores of its program to other tensors.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.values import Read, walk
from opspec.schedule.tile import (
    Collapse,
    Fetch,
    Loop,
    Statement,
    TileProgram,
    Unroll,
    Write,
    assigned,
    integers_of,
    values_of,
)


def load_ahead(program: TileProgram) -> TileProgram:
    """The program with each tile that is as large as what is stored loaded before the first store of its block."""
    return replace(program, body=_ordered(program, _shared_early(program.body)))


def _shared_early(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """What tiles share, such as a weight a column, before the first reduction, where a later one reduces what it makes.

    A reduction that goes from warp to warp is a barrier, and what would be loaded behind it can't be taken into the
    tile before it.
    """
    folds = [k for k, s in enumerate(body) if isinstance(s, Collapse) and s.over]
    if any(isinstance(s, Loop | Unroll) for s in body) or not folds:
        return body
    early: list[int] = []
    for k, s in enumerate(body):
        reads = {part.name for v in values_of(s) for part in walk(v) if isinstance(part, Read)}
        behind = [body[f] for f in folds if f > k]
        small = isinstance(s, Fetch) and any(set(s.var.axes) < set(f.axes) for f in behind)  # type: ignore[union-attr]
        alone = not reads and not any(i.tensors() for i in integers_of(s))
        if small and alone and k > folds[0] and _reaches(s, body[k + 1 :]):
            early.append(k)
    first = folds[0]
    moved = tuple(body[k] for k in early)
    rest = tuple(s for k, s in enumerate(body) if k not in early and k >= first)
    return (*body[:first], *moved, *rest)


def _reaches(fetch: Statement, body: tuple[Statement, ...]) -> bool:
    """Whether a reduction takes what is made of a load."""
    known = {v.name for v in assigned(fetch)}
    for s in body:
        if any(isinstance(part, Read) and part.name in known for v in values_of(s) for part in walk(v)):
            if isinstance(s, Collapse):
                return True
            known |= {v.name for v in assigned(s)}
    return False


def _ordered(program: TileProgram, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Statements of one block in their new order."""
    body = tuple(replace(s, body=_ordered(program, s.body)) if isinstance(s, Loop) else s for s in body)
    first = next((k for k, s in enumerate(body) if isinstance(s, Write)), None)
    if first is None:
        return body
    shapes = {s.axes for s in body if isinstance(s, Write)}
    late = {v.name for s in body[first:] for v in assigned(s)}
    written: set[str] = set()
    early: list[Statement] = []
    rest: list[Statement] = []
    for s in body[first:]:
        if isinstance(s, Write):
            written.add(s.tensor)
        if isinstance(s, Loop):
            break
        if isinstance(s, Fetch) and s.var.axes in shapes and s.tensor not in written:
            needs = {part.name for v in values_of(s) for part in walk(v) if isinstance(part, Read)}
            tensors = {t for i in integers_of(s) for t in i.tensors()}
            needs |= {name for (tensor, _), name in program.data if tensor in tensors}
            if not needs & late:
                early.append(s)
                late -= {s.var.name}
                continue
        rest.append(s)
    return (*body[:first], *early, *rest, *body[first + len(early) + len(rest) :])
