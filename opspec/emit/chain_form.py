"""Which chains of two block products can be kernels whose warps have roles, and what such a kernel needs to know.

A program has the form where rows stay and a stream goes by: the first product of a step is that of the rows with a
tile of the stream, statements make of it what multiplies another tile, and the second product adds that to a sum,
which they may bring to a new state before (attention of any kind). ``warp_chained`` prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opspec.emit.describe import Tile, Units, describe
from opspec.emit.narrow import Narrow
from opspec.emit.warp_form import reads, stored_tiles
from opspec.ir.dtypes import F32, choices
from opspec.ir.values import Extent, Read, Unary, Value, walk
from opspec.schedule.access import plain
from opspec.schedule.tile import (
    Begin,
    Collapse,
    Combine,
    Fetch,
    Let,
    Loop,
    Multiply,
    Operand,
    Remark,
    Statement,
    TileProgram,
    Write,
    assigned,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the form needs to know of a program.

    ``before``, ``behind``: what stands around its only loop, without the load of the rows, ``held``; ``begun``: what
    the loop carries. ``first``, ``second``: its products; ``between``: what is made of the first; ``moved``: what
    brings the sum of the second to a new state. ``rows``, ``columns``: the axes of a result. ``results``: tensors
    that it stores by tiles. ``apart``: whether what lies outside the domain is multiplied by 0 in the second.
    """

    loop: Loop
    held: Fetch
    streamed: tuple[Fetch, Fetch]
    before: tuple[Statement, ...]
    begun: tuple[Begin, ...]
    first: Multiply
    second: Multiply
    between: tuple[Statement, ...]
    moved: tuple[Let, ...]
    behind: tuple[Statement, ...]
    rows: str
    columns: str
    operands: Mapping[str, Tile]
    results: Mapping[str, Tile]

    @property
    def apart(self) -> bool:
        """Whether the second product multiplies what lies outside its domain by 0, which only infinity and NaN show."""
        return bool(self.second.a.apart)

    @property
    def live(self) -> int:
        """How many blocks of rows and places of a step are needed at once, the first product among them; one more where
        a block is made of places, of vectors along them or by functions that take several instructions."""
        body, block = self.loop.body, (self.rows, self.loop.axis)
        blocks = {v.name: k for k, s in enumerate(body) for v in assigned(s) if v.axes == block}
        last = {
            n: max(k for k, s in enumerate(body) if k == made or reads(s, n)) for n, made in blocks.items()
        }
        most = max(sum(made <= k < last[n] for n, made in blocks.items()) for k in range(len(body)))
        along = {v.name for s in body for v in assigned(s) if v.axes == (self.loop.axis,)}
        lets = [s.value for s in body if isinstance(s, Let) and s.var.axes == block]
        return most + any(_takes_more(part, along) for value in lets for part in walk(value))

    @property
    def states(self) -> tuple[str, ...]:
        """What a step carries on beside the sum of the second product."""
        return tuple(b.var.name for b in self.begun if b.var.name != self.second.var.name)


def chain_of(program: TileProgram, halves: Narrow) -> Chain | None:
    """The form of a program, if it has one."""
    loops = [s for s in program.body if isinstance(s, Loop)]
    grid = [a.name for a in program.axes if a.role == "grid" and a.blocked]
    if len(loops) != 1 or len(grid) != 1 or program.sizes:
        return None
    (loop,), (rows,) = loops, grid
    place = program.body.index(loop)
    before, behind = program.body[:place], program.body[place + 1 :]
    products = [s for s in loop.body if isinstance(s, Multiply)]
    if len(products) != 2 or not _walks(program, loop, rows):
        return None
    first, second = products
    columns = second.var.axes[1]
    if first.accumulate or first.var.axes != (rows, loop.axis) or first.var.dtype is not F32:
        return None
    if not second.accumulate or second.var.axes != (rows, columns) or second.var.dtype is not F32:
        return None
    if program.axis(columns).role != "tile" or second.a.axes != (rows, loop.axis):
        return None
    tiles = describe(program, halves.packed)
    held = _tile(program, first.a, before, tiles)
    keys, values = (_tile(program, p.b, loop.body, tiles) for p in products)
    if held is None or keys is None or values is None or len({f.tensor for f in (held, keys, values)}) < 3:
        return None
    if not _computed(program, second.a, values) or halves.values:
        return None
    tiled = (s for s in behind if isinstance(s, Write) and set(s.axes) - {rows})
    found = Chain(
        loop=loop,
        held=held,
        streamed=(keys, values),
        before=tuple(s for s in before if s is not held and not isinstance(s, Begin)),
        begun=tuple(s for s in before if isinstance(s, Begin)),
        first=first,
        second=second,
        between=tuple(
            s for s in loop.body if s not in (keys, values, first, second) and not _moves(s, second)
        ),
        moved=tuple(s for s in loop.body if isinstance(s, Let) and _moves(s, second)),
        behind=behind,
        rows=rows,
        columns=columns,
        operands={f.tensor: tiles[f.tensor] for f in (held, keys, values)},
        results=stored_tiles(program, behind, tiled, rows, columns),
    )
    return found if _step(found) and _around(program, found) else None


def _walks(program: TileProgram, loop: Loop, rows: str) -> bool:
    """Whether a loop goes through its axis in one sweep, between bounds that all rows of a tile share.

    Of a window in a stream, masked at both ends, a third of the steps are masked: that was slower by a tenth.
    """
    axis = program.axis(loop.axis)
    whole = not (loop.reverse or loop.segments or loop.ahead or loop.sweeps > 1 or axis.rows)
    if not whole or axis.dims != (loop.axis,) or (loop.inner is not None and loop.inner.start is not None):
        return False
    known = {a.name for a in program.axes if a.role == "grid" and not a.blocked}
    known |= {f"{rows}.first", f"{rows}.last"}
    bounds = [loop.start, loop.stop, *([] if loop.inner is None else [loop.inner.stop])]
    return all(
        isinstance(v, Extent) and v.value.free_indices() <= known and not v.value.tensors() for v in bounds
    )


def _moves(s: Statement, second: Multiply) -> bool:
    return isinstance(s, Let) and s.var.name == second.var.name


def _tile(
    program: TileProgram, o: Operand, body: tuple[Statement, ...], tiles: Mapping[str, Tile]
) -> Fetch | None:
    """The load of an operand that enters the matrix unit as it is stored, in 16 bits for one dtype at least."""
    value = plain(o.value)
    if not isinstance(value, Read) or o.masks or o.apart:
        return None
    fetch = next((s for s in body if isinstance(s, Fetch) and s.var.name == value.name), None)
    if fetch is None or fetch.tensor not in tiles or isinstance(tiles[fetch.tensor], Units):
        return None
    stored = next(t.dtype for t in program.tensors if t.name == fetch.tensor)
    kinds = {(d.kind, d.bits) for d in choices(stored)}
    return (
        fetch if stored == o.cast and {k for k, _ in kinds} == {"float"} and ("float", 16) in kinds else None
    )


def _computed(program: TileProgram, o: Operand, other: Fetch) -> bool:
    """Whether an operand is computed, and enters in the type of what it multiplies."""
    value = plain(o.value)
    loaded = {f.var.name for f in program.body if isinstance(f, Fetch)}
    stored = next(t.dtype for t in program.tensors if t.name == other.tensor)
    return o.cast == stored and not (isinstance(value, Read) and value.name in loaded)


def _step(c: Chain) -> bool:
    """Whether a step is the two products and what stands between them, row by row."""
    tile = (c.rows, c.loop.axis)
    own = {v.name for s in c.between for v in assigned(s)} | {*c.states, c.first.var.name}
    for s in c.between:
        match s:
            case Remark():
                continue
            case Fetch(var=var, tensor=tensor) if tensor not in c.operands and set(var.axes) <= set(tile):
                continue
            case Let(var=var) | Combine(var=var) if set(var.axes) <= set(tile):
                pass
            case Collapse(var=var, axes=axes, counted=None) if set(axes) <= set(tile):
                pass
            case _:
                return False
        if reads(s, c.second.var.name):
            return False
    for s in c.moved:
        others = {v.name for v in walk(s.value) if isinstance(v, Read)} - {c.second.var.name}
        if s.var.axes != c.second.var.axes or not others <= own:
            return False
    early = c.loop.body.index(c.second)
    return all(c.loop.body.index(s) < early for s in c.moved)


def _takes_more(part: Value, along: set[str]) -> bool:
    """Whether a part of a value takes registers beside what it is made of."""
    match part:
        case Unary(op=op):
            return op not in ("exp2", "reciprocal", "sqrt")
        case Extent(value=value):
            return bool(value.free_indices())
        case Read(name=name):
            return name in along
        case _:
            return False


def _around(program: TileProgram, c: Chain) -> bool:
    """Whether what stands around the loop is of rows, and behind it of results."""
    carried = {b.var.name for b in c.begun}
    if c.second.var.name not in carried or any(b.nowhere is not None for b in c.begun):
        return False
    if {x.var.name for x in c.loop.carried} != carried:
        return False
    if any(set(b.var.axes) - {c.rows} for b in c.begun if b.var.name != c.second.var.name):
        return False
    for s in c.before:
        if not isinstance(s, Fetch | Let | Remark) or any(set(v.axes) - {c.rows} for v in assigned(s)):
            return False
    inner = {v.name for s in c.loop.body for v in assigned(s)} - carried
    for s in c.behind:
        if not isinstance(s, Fetch | Let | Remark | Write) or any(reads(s, name) for name in inner):
            return False
        if any(set(v.axes) - {c.rows, c.columns} for v in assigned(s)):
            return False
        if isinstance(s, Write) and s.tensor not in c.results and set(s.axes) - {c.rows}:
            return False
    known = {c.columns, *(a.name for a in program.axes if a.role == "grid")}
    places = [i for s in c.behind if isinstance(s, Write) for i in s.at]
    return bool(c.results) and all(i.free_indices() <= known for i in places)


def value_rows(value: Value, name: str) -> frozenset[str]:
    """The variables that a value reads beside ``name``."""
    return frozenset(v.name for v in walk(value) if isinstance(v, Read)) - {name}
