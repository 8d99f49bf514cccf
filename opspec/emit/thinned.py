"""Masks that a straight kernel over much data need not apply to every element."""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Literal, Read, Select, Value
from opspec.schedule.exact import number
from opspec.schedule.tile import Collapse, Fetch, Let, Statement, TileProgram, Var, Write, inside

LEAST = 64  # a block of a whole axis is no longer than an axis of a power of two from here on


def thin_masks(program: TileProgram) -> TileProgram:
    """The program without masks against the end of an axis that always fills its block, and without those of a sum of
    what a load has as 0 wherever they do not hold; squares are masked before they are taken, so that they are added
    as they are multiplied."""
    filled: set[Value] = set()
    for a in program.axes:
        n = a.extent.constant
        if a.role == "tile" and n is not None and n >= LEAST and n & (n - 1) == 0:
            filled.add(inside(a.name, a.extent))
    zeros: dict[str, frozenset[Value]] = {}  # where a variable is not 0, at most
    taken = {v.name for v in program.vars} | {a.name for a in program.axes}
    made: list[Var] = []
    out: list[Statement] = []
    for statement in program.body:
        s = statement
        if isinstance(s, Fetch | Collapse | Write):
            s = replace(s, masks=tuple(m for m in s.masks if m not in filled))
        if isinstance(s, Fetch) and s.other is not None and number(s.other) == 0:
            zeros[s.var.name] = frozenset(s.masks)
        if isinstance(s, Let) and isinstance(s.value, Read) and s.value.name in zeros:
            zeros[s.var.name] = zeros[s.value.name]
        if isinstance(s, Collapse) and s.monoid == "sum" and s.counted is None:
            left = zeros.get(s.value.name, frozenset()) if isinstance(s.value, Read) else frozenset()
            s = replace(s, masks=()) if {*s.masks} <= left else s
            value = s.value
            if isinstance(value, Binary) and value.op == "mul" and value.a == value.b and len(s.masks) == 1:
                name = f"{s.var.name}_inside"
                while name in taken:
                    name += "_"
                taken.add(name)
                own = Var(name=name, axes=s.axes, dtype=value.dtype)
                zero = Literal(value=0.0 if value.dtype is F32 else 0, dtype=value.dtype)
                kept = Select(condition=s.masks[0], a=value.a, b=zero, dtype=value.dtype)
                out.append(Let(var=own, value=kept))
                made.append(own)
                s = replace(s, masks=(), value=replace(value, a=own.read, b=own.read))
        out.append(s)
    return replace(program, body=tuple(out), vars=(*program.vars, *made))


__all__ = ["thin_masks"]
