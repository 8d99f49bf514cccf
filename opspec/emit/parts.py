"""Which block products may be summed in parts, one for each warp.

With one column a product in the matrix unit is small. Where its rows are widened in registers, each warp can take a part
of every step's sum for all of them: so it must be the only product of its program, and add up over the only stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from opspec.emit.describe import Pairs, Tile, Words
from opspec.emit.narrow import Narrow
from opspec.ir.dtypes import F8E4M3, F8E5M2, I8, Storage, choices
from opspec.ir.values import Read
from opspec.schedule.access import plain
from opspec.schedule.tile import Begin, Fetch, Locate, Loop, Multiply, Scan, TileProgram, statements

WIDENED: frozenset[Storage] = frozenset({F8E4M3, F8E5M2, I8})  # that a few instructions take to 16 bits


def _only_sum(program: TileProgram) -> tuple[Multiply, Loop] | None:
    """A program's only product where it adds up over the only loop, of one domain for both operands."""
    body = tuple(statements(program.body))
    products = [s for s in body if isinstance(s, Multiply)]
    loops = [s for s in body if isinstance(s, Loop)]
    if len(products) != 1 or len(loops) != 1 or products[0] not in loops[0].body:
        return None
    s, begun = products[0], {x.var.name for x in program.body if isinstance(x, Begin)}
    found = s.accumulate and s.var.name in begun and not {*s.a.apart, *s.b.apart}
    # in parallel but for what is summed: one tile of rows and columns
    whole = any(a.role == "tile" for a in program.axes)
    tiled = all(program.axis(a).role == "grid" for a in s.var.axes)
    return (s, loops[0]) if found and tiled and not whole else None


def narrow_rows(program: TileProgram, found: Narrow, tiles: Mapping[str, Tile]) -> str | None:
    """The accumulator of such a product whose rows are widened in registers, from words or bytes that descriptors
    bring: it may be summed in parts, one for each warp."""
    sum_ = _only_sum(program)
    if sum_ is None or sum_[1].segments is not None:
        return None
    s, loop = sum_
    if any(isinstance(t, Pairs) for t in tiles.values()) or s.a.axes[1] != loop.axis:
        return None
    value = plain(s.a.value)
    if any(isinstance(t, Words) for t in tiles.values()):
        ordered = any(isinstance(x, Scan | Locate) for x in statements(program.body))
        own = isinstance(value, Read) and value.name in {*found.packed, *found.values}
        inline = s.a.cast is not None and found.inline(value, s.a.cast)
        return s.var.name if (own or inline) and not ordered else None
    rows = [
        x.tensor
        for x in statements(program.body)
        if isinstance(x, Fetch) and x.raw and isinstance(value, Read) and x.var.name == value.name
    ]
    stored = {t.name: t.dtype for t in program.tensors}
    into = () if s.a.cast is None else choices(s.a.cast)
    narrow = rows and rows[0] in tiles and not s.a.masks and stored[rows[0]] in WIDENED
    return s.var.name if narrow and into and all(d.bits == 16 for d in into) else None


__all__ = ["WIDENED", "narrow_rows"]
