"""Loads ahead of stores: all tiles that a program reads are on their way before it writes the first one.

A compiler can't tell that a tensor which is written is none of those that are read afterwards, so a load that stands
behind a store waits for what is stored, and so for the loads in front of it. What a statement reads is what was there
before the launch, so that a load may always go ahead of the stores of its program to other tensors.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.values import Read, walk
from opspec.schedule.tile import Fetch, Loop, Statement, TileProgram, Write, assigned, integers_of, values_of


def load_ahead(program: TileProgram) -> TileProgram:
    """The program with each tile that is as large as what is stored loaded before the first store of its block."""
    return replace(program, body=_ordered(program, program.body))


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
