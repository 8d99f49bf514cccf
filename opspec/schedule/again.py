"""Rows of 16 bits stay as they were loaded: what each fold needs of them is made again from the same registers.

A program that folds a whole row more than once holds it from its load to its store. In f32 that takes a register an
element, and what is computed from it between two folds one more; as it was loaded an element takes half a register,
and what stands behind a fold is made of it anew. That is a few instructions an element, which memory hides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from opspec.ir.dtypes import choices
from opspec.ir.integers import Int
from opspec.ir.values import Literal, Read, Unary, Value, map_values, walk
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    Collapse,
    Fetch,
    Let,
    Remark,
    Statement,
    TileProgram,
    Var,
    Write,
    assigned,
    values_of,
)

NARROW = 16  # bits of an element that takes half a register
SPECIAL = ("exp", "exp2", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "one_plus_erf")
SHORT = 16384  # elements of a row that a program holds in f32


def make_again(program: TileProgram, names: Names, typical: Callable[[Int], int | None]) -> TileProgram:
    """The program with rows that it holds packed; as it is where it isn't one that folds whole rows twice and stores them.

    ``typical``: the largest extent that a workload gives an expression. Of shorter rows there is nothing to gain.
    """
    tiles = [a for a in program.axes if a.role == "tile"]
    straight = all(isinstance(s, Fetch | Let | Collapse | Write | Remark) for s in program.body)
    if len(tiles) != 1 or not straight or tiles[0].extent.constant is not None or not tiles[0].blocked:
        return program
    rows = [s for s in program.body if isinstance(s, Fetch) and tiles[0].name in s.var.axes]
    stored = any(isinstance(s, Write) and tiles[0].name in s.axes for s in program.body)
    if len(rows) != 1 or not stored or (typical(tiles[0].extent) or 0) <= SHORT:
        return program
    return _Segments(program, tiles[0].name, names).program()


class _Segments:
    """The statements of a program between one fold of its rows and the next."""

    def __init__(self, program: TileProgram, axis: str, names: Names) -> None:
        self.source, self.axis, self.names = program, axis, names
        self.made = {v.name: s for s in program.body for v in assigned(s)}
        self.number = 0
        self.now: dict[str, Var] = {}
        self.used: dict[str, int] = {}  # the first segment that converts what was loaded
        self.again: dict[str, int] = {}
        self.anew: list[Let] = []
        self.body: list[Statement] = []
        self.vars: list[Var] = []

    def program(self) -> TileProgram:
        """The program with later segments made of what was loaded."""
        folds = 0
        for s in self.source.body:
            if folds and not isinstance(s, Fetch):
                for value in values_of(s):
                    self.need(value)
            else:
                self.note(s)
            self.body.append(_with_reads(s, self.now))
            if isinstance(s, Collapse) and self.axis in s.over:
                folds += 1
                self.number, self.now = folds, {}
        # a stream that only converts what it loads again waits for memory alone
        special = any(isinstance(v, Unary) and v.op in SPECIAL for s in self.anew for v in walk(s.value))
        if folds < 2 or not special:
            return self.source
        body = tuple(
            replace(s, packed=True)
            if isinstance(s, Fetch) and s.again is None and s.var.name in self.again
            else s
            for s in self.body
        )
        return replace(self.source, body=body, vars=(*self.source.vars, *self.vars))

    def note(self, s: Statement) -> None:
        """Rows that a statement of the first segment converts."""
        for value in values_of(s):
            for v in walk(value):
                if isinstance(v, Read) and v.name in self.made:
                    self.used.setdefault(v.name, 0)

    def need(self, value: Value) -> None:
        """Make what a value reads of whole rows, if it was made before the last fold."""
        for v in walk(value):
            if isinstance(v, Read) and v.name in self.made and v.name not in self.now:
                self.make(v.name)

    def make(self, name: str) -> None:
        """One variable of whole rows again, from what was loaded."""
        s = self.made[name]
        if not isinstance(s, Fetch | Let) or self.axis not in s.var.axes:
            return
        first = self.used.setdefault(name, self.number)
        if first == self.number or not self.held(s):
            return
        own = Var(name=self.names.fresh(name), axes=s.var.axes, dtype=s.var.dtype)
        if isinstance(s, Fetch):
            self.again[name] = self.number
            made: Statement = replace(s, var=own, again=(name, self.number))
        else:
            self.need(s.value)
            made = _with_reads(replace(s, var=own), self.now)
            self.anew.append(s)
        self.vars.append(own)
        self.now[name] = own
        self.body.append(made)

    def held(self, s: Statement) -> bool:
        """Whether a variable is a row that may come in 16 bits, or is made of such rows."""
        if isinstance(s, Fetch):
            tensor = next(t for t in self.source.tensors if t.name == s.tensor)
            kinds = choices(tensor.dtype)
            plain = s.other is None or isinstance(s.other, Literal)
            narrow = any(d.bits == NARROW for d in kinds)
            return (
                plain and narrow and not s.raw and all(d.kind == "float" and d.bits >= NARROW for d in kinds)
            )
        if not isinstance(s, Let):
            return False
        rows = [
            self.made[v.name]
            for v in walk(s.value)
            if isinstance(v, Read) and v.name in self.made and self.axis in _axes(self.made[v.name])
        ]
        return bool(rows) and all(self.held(r) for r in rows)


def _axes(s: Statement) -> tuple[str, ...]:
    return tuple(a for v in assigned(s) for a in v.axes)


def _with_reads(s: Statement, now: dict[str, Var]) -> Statement:
    """A statement that reads variables under their names of now."""
    if not now:
        return s

    def change(value: Value) -> Value:
        if isinstance(value, Read) and value.name in now:
            return replace(value, name=now[value.name].name)
        return map_values(value, change)

    match s:
        case Let(value=value):
            return replace(s, value=change(value))
        case Collapse(value=value, masks=masks, points=points):
            return replace(
                s,
                value=change(value),
                masks=tuple(change(m) for m in masks),
                points=tuple(change(p) for p in points),
            )
        case Write(value=value, masks=masks):
            return replace(s, value=change(value), masks=tuple(change(m) for m in masks))
        case _:
            return s
