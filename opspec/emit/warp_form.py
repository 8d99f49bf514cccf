"""Which block products can be kernels whose warps have roles, and what such a kernel needs to know of its program.

A program has the form where all that its stream loads enters the matrix unit as it is stored, where a step is products
alone or one product that vectors bring to the sum, and where it stores whole tiles. ``warp_specialised`` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opspec.emit.describe import Tile, Units, describe
from opspec.emit.narrow import Narrow
from opspec.ir.dtypes import F32, choices
from opspec.ir.values import Extent, Read, walk
from opspec.schedule.access import plain
from opspec.schedule.tile import (
    Begin,
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
    inside,
    values_of,
)

MOST_SUMS = 2  # accumulators of a group of warps beside each other
WIDTHS = frozenset({8, 16})  # bits of an operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the form needs to know of a program: its only loop, what stands before and behind it, its products, and
    whether a step's products are folded by other statements (or, of f8, by an addition) and not by the unit.

    ``rows``, ``columns``: the axes of a tile. ``results``: tensors that it stores, by tiles.
    """

    loop: Loop
    before: tuple[Statement, ...]
    behind: tuple[Statement, ...]
    products: tuple[Multiply, ...]
    folded: bool
    rows: str
    columns: str
    operands: Mapping[str, Tile]
    results: Mapping[str, Tile]

    @property
    def sums(self) -> tuple[str, ...]:
        """The variables that the loop carries."""
        return tuple(c.var.name for c in self.loop.carried)


def form_of(program: TileProgram, halves: Narrow) -> Form | None:
    """The form of a program, if it has one."""
    loops = [s for s in program.body if isinstance(s, Loop)]
    grid = [a.name for a in program.axes if a.role == "grid" and a.blocked]
    if len(loops) != 1 or len(grid) != len(("rows", "columns")) or program.sizes:
        return None
    (loop,) = loops
    place = program.body.index(loop)
    before, behind = program.body[:place], program.body[place + 1 :]
    products = tuple(s for s in loop.body if isinstance(s, Multiply))
    if not products or not _plain_walk(program, loop):
        return None
    axes = products[0].a.axes[0], products[0].b.axes[1]
    operands = _operands(program, loop, products, halves)
    results = stored_tiles(program, behind, (s for s in behind if isinstance(s, Write)), *axes)
    folded = _bits(products[0].a) == min(WIDTHS) or not all(p.accumulate for p in products)
    sums = _sums(loop, axes)
    if not operands or not results or any(p.var.axes != axes for p in products):
        return None
    if not 0 < len(sums) <= MOST_SUMS or (folded and (len(products) != 1 or len(sums) != 1)):
        return None
    if not _step(loop, products, operands, sums, folded) or not _around(loop, before, behind, sums):
        return None
    return Form(
        loop=loop,
        before=tuple(s for s in before if not isinstance(s, Begin)),
        behind=behind,
        products=products,
        folded=folded,
        rows=axes[0],
        columns=axes[1],
        operands=operands,
        results=results,
    )


def _sums(loop: Loop, axes: tuple[str, str]) -> set[str]:
    """The plain sums of whole tiles that a loop carries; none where it carries anything else."""
    plainly = all(
        c.monoid == "sum"
        and not (c.state or c.factor or c.sums)
        and c.var.axes == axes
        and c.var.dtype is F32
        for c in loop.carried
    )
    return {c.var.name for c in loop.carried} if plainly else set()


def _operands(
    program: TileProgram, loop: Loop, products: tuple[Multiply, ...], halves: Narrow
) -> dict[str, Tile]:
    """The tiles that a step loads, if they are what its products multiply and nothing else."""
    found = describe(program, halves.packed)
    fetched = {s.var.name: s for s in loop.body if isinstance(s, Fetch)}
    if not all(_stored(program, p, fetched, found) for p in products):
        return {}
    read = {v.name for p in products for o in (p.a, p.b) if isinstance(v := plain(o.value), Read)}
    if read != {name for name, s in fetched.items() if s.tensor in found}:
        return {}
    return {s.tensor: found[s.tensor] for name, s in fetched.items() if name in read}


def _step(
    loop: Loop, products: tuple[Multiply, ...], operands: Mapping[str, Tile], sums: set[str], folded: bool
) -> bool:
    """Whether a step is products alone; or one product that vectors and what is computed of them bring to the sum."""
    own = {p.var.name for p in products if p.accumulate}
    if own and own != sums:
        return False
    for s in loop.body:
        match s:
            case Multiply() | Remark():
                continue
            case Fetch(tensor=tensor) if tensor in operands:
                continue
            case Fetch(var=var) if folded and len(var.axes) < len(("rows", "columns")):
                continue
            case Let() if folded:
                continue
            case Combine(var=var) if folded and not own and var.name in sums:
                continue
            case _:
                return False
    return True


def _around(loop: Loop, before: tuple[Statement, ...], behind: tuple[Statement, ...], sums: set[str]) -> bool:
    """Whether what stands before the loop may stand behind it, but for the beginning of its sums."""
    begun = [s for s in before if isinstance(s, Begin)]
    if {s.var.name for s in begun} != sums or any(s.nowhere is not None for s in begun):
        return False
    if not all(isinstance(s, Begin | Fetch | Let | Remark) for s in before):
        return False
    if not all(isinstance(s, Fetch | Let | Remark | Write) for s in behind):
        return False
    early = {s.var.name for s in before if isinstance(s, Fetch | Let)}
    inner = {v.name for s in loop.body for value in values_of(s) for v in walk(value) if isinstance(v, Read)}
    return not early & inner


def _plain_walk(program: TileProgram, loop: Loop) -> bool:
    """Whether a loop goes through all of an axis from its beginning."""
    if loop.inner or loop.reverse or loop.segments or loop.sweeps > 1 or program.axis(loop.axis).rows:
        return False
    bounds = [v for v in (loop.start, loop.stop) if isinstance(v, Extent)]
    return len(bounds) == 2 and not any(b.value.free_indices() or b.value.tensors() for b in bounds)


def _bits(o: Operand) -> int:
    return 32 if o.cast is None else max(d.bits for d in choices(o.cast))


def _stored(
    program: TileProgram, product: Multiply, fetched: Mapping[str, Fetch], tiles: Mapping[str, Tile]
) -> bool:
    """Whether both operands of a product are tiles that enter the matrix unit as they are stored."""
    if product.var.dtype is not F32:
        return False
    for o, summed in ((product.a, product.a.axes[1]), (product.b, product.b.axes[0])):
        value = plain(o.value)
        fetch = fetched.get(value.name) if isinstance(value, Read) else None
        if fetch is None or o.masks or o.apart or fetch.tensor not in tiles:
            return False
        tile = tiles[fetch.tensor]
        stored = next(t.dtype for t in program.tensors if t.name == fetch.tensor)
        kinds = {(d.kind, d.bits) for d in choices(stored)}
        if isinstance(tile, Units) or stored != o.cast or any(kind != "float" for kind, _ in kinds):
            return False
        widths = {bits for _, bits in kinds}
        if not widths & WIDTHS or (8 in widths and (len(widths) > 1 or tile[-1] != summed)):
            return False  # of eight bits, a matrix unit takes what is summed along memory alone
    return True


def stored_tiles(
    program: TileProgram, behind: tuple[Statement, ...], writes: Iterable[Write], rows: str, columns: str
) -> dict[str, Tile]:
    """The tiles that ``writes`` store, of each result; none where one is no whole tile, or what ``behind`` loads."""
    edges = {inside(a, program.axis(a).extent) for a in (rows, columns)}
    dims = {a.name: a.dims for a in program.axes}
    read = {s.tensor for s in behind if isinstance(s, Fetch)}
    found: dict[str, Tile] = {}
    for s in writes:
        tile: list[str | None] = []
        for i in s.at:
            blocks = [n for n in i.free_indices() if dims.get(n)]
            if i.index in (rows, columns):
                tile.append(i.index)
            elif blocks:
                return {}
            else:
                tile.append(None)
        tensor = next(t for t in program.tensors if t.name == s.tensor)
        kinds = choices(tensor.dtype)
        fits = [a for a in tile if a] == [rows, columns] and tile[-1] == columns and set(s.masks) <= edges
        whole = all(tensor.extents[k] == program.axis(a).extent for k, a in enumerate(tile) if a is not None)
        if not fits or not whole or s.tensor in found or s.tensor in read:
            return {}
        if any(d.kind != "float" or d.bits < 16 for d in kinds) or not 2 <= len(s.at) <= 5:
            return {}
        found[s.tensor] = tuple(tile)
    return found


def reads(s: Statement, name: str) -> bool:
    """Whether a statement reads a variable."""
    return any(isinstance(v, Read) and v.name == name for value in values_of(s) for v in walk(value))
