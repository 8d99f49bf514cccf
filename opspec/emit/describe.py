"""Which tensors of a tile program can be moved as whole tiles, through descriptors.

A tensor-memory descriptor names a tensor once, on the host; a load is then one instruction for a
whole tile, without an address or a mask per element, and what lies outside the tensor reads as 0.
So an access qualifies where each of its axes is either a whole block dimension or a single index,
where its masks say no more than the tensor's own edges, and where what they give outside is 0.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import ClassVar

from opspec.ir.dtypes import I4, DType, choices
from opspec.ir.integers import Int, index
from opspec.ir.program import Tensor
from opspec.ir.values import Compare, Extent, Literal, Read, Value
from opspec.schedule.access import plain
from opspec.schedule.tile import Fetch, Locate, Loop, Multiply, Operand, Scan, TileProgram, Write, statements

Tile = tuple[str | None, ...]  # for each axis of a tensor its block dimension; None: a single index


class Units(Tile):
    """The tile of a tensor of which ``elements`` move as one, neighbours along memory; named as its launch calls it."""

    elements: ClassVar[int]


class Pairs(Units):
    """Of a tensor of bytes: units of two."""

    elements = 2


class Words(Units):
    """Of a tensor of packed elements: words of eight."""

    elements = 8


def describe(program: TileProgram, packed: Container[str]) -> dict[str, Tile]:
    """Operands of products with a descriptor, and what its tile is; ``packed``: variables that stay in 16 bits. Results are stored through pointers:
    on an H200 that was no slower, and they may lie anywhere."""
    tensors = {t.name: t for t in program.tensors}
    dims = {a.name: a.dims for a in program.axes}
    extents = {a.name: a.extent for a in program.axes}
    grid = [a.blocked for a in program.axes if a.role == "grid"]
    # of a product that has rows and columns in tiles and nothing beside them, what is summed may begin anywhere
    held = {a.name for a in program.axes if a.role == "tile" and grid == [True, True]}
    found: dict[str, Tile] = {}
    refused: set[str] = set()
    for s in statements(program.body):
        if isinstance(s, Write):
            refused.add(s.tensor)
        elif isinstance(s, Fetch):
            tile = _tile(tensors[s.tensor], s.at, s.masks, s.var.axes, dims, extents, held)
            if tile is not None and s.var.name in packed:
                tile = Words(tile)
            raw = isinstance(tile, Words) if tensors[s.tensor].dtype == I4 else s.raw
            if tile is None or not raw or not _zero(s.other) or found.setdefault(s.tensor, tile) != tile:
                refused.add(s.tensor)
    return _paired(program, {t: tile for t, tile in found.items() if t not in refused})


def paired_axes(tiles: Mapping[str, Tile]) -> frozenset[str]:
    """Block dimensions whose places a kernel holds in the order of ``interleaved``."""
    return frozenset(tile[-1] for tile in tiles.values() if isinstance(tile, Pairs) and tile[-1] is not None)


def _paired(program: TileProgram, tiles: dict[str, Tile]) -> dict[str, Tile]:
    """``tiles`` with bytes in units of two where neighbours along memory are not of one sum.

    Only 16 bits together can be turned into the order in which a matrix unit takes them. A dimension along
    which one tensor moves in units has its places in another order, so every tensor must: what is loaded
    before the stream then comes through pointers, and where that is not so, or an order along the dimension
    matters, all stay as they are.
    """
    streamed = {id(s) for loop in program.body if isinstance(loop, Loop) for s in statements(loop.body)}
    body = tuple(statements(program.body))
    fetched = {s.var.name: s for s in body if isinstance(s, Fetch) and s.tensor in tiles}
    bytes_: set[str] = set()
    wanted: set[str] = set()
    for s in body:
        if isinstance(s, Multiply):
            for operand, summed in ((s.a, s.a.axes[1]), (s.b, s.b.axes[0])):
                fetch = _fetch_of(operand, fetched)
                if fetch is None or not _widened(program, fetch.tensor, operand):
                    continue
                bytes_.add(fetch.tensor)
                last = tiles[fetch.tensor][-1]
                if last is not None and last != summed:
                    wanted.add(last)
    for s in body:
        if isinstance(s, Scan | Locate):
            wanted -= set(s.axes)
    out = dict(tiles)
    for axis in wanted:
        beside = {t: tile for t, tile in tiles.items() if axis in tile}
        fits = {t for t, tile in beside.items() if t in bytes_ and tile[-1] == axis}
        others = set(beside) - fits
        if any(id(s) in streamed for s in fetched.values() if s.tensor in others):
            continue
        out = {t: Pairs(tile) if t in fits else tile for t, tile in out.items() if t not in others}
    return out


def _fetch_of(operand: Operand, fetched: Mapping[str, Fetch]) -> Fetch | None:
    """The load that an operand is."""
    value = plain(operand.value)
    return fetched.get(value.name) if isinstance(value, Read) else None


def _widened(program: TileProgram, tensor: str, operand: Operand) -> bool:
    """Whether a tensor of bytes enters a product in 16 bits."""
    stored = next(t.dtype for t in program.tensors if t.name == tensor)
    entered = () if operand.cast is None else choices(operand.cast)
    whole = isinstance(stored, DType) and stored.bits == 8
    return whole and bool(entered) and all(d.bits == 16 for d in entered)


def _zero(other: Value | None) -> bool:
    return other is None or (isinstance(other, Literal) and other.value == 0)


def _tile(
    tensor: Tensor,
    at: tuple[Int, ...],
    masks: tuple[Value, ...],
    axes: tuple[str, ...],
    dims: Mapping[str, tuple[str, ...]],
    extents: Mapping[str, Int],
    held: set[str],
) -> Tile | None:
    """The tile of one access, if a descriptor can make it; ``held``: axes of which a program has every place."""
    if not 2 <= len(at) <= 5 or any(d.kind == "bool" for d in choices(tensor.dtype)):
        return None
    out: list[str | None] = []
    edges: list[tuple[Int, Int]] = []
    for i, extent in zip(at, tensor.extents, strict=True):
        name = i.index
        if name is not None and dims[name] == (name,):
            out.append(name)
            if extents[name] == extent:
                edges.append((index(name), extent))
        elif (own := _stretch(i, dims)) in held and out.count(own) == 0:
            # the launch takes a tile of as many places as there are
            out.append(own)
            edges.append((index(own), extents[own]))
        elif any(dims.get(n) for n in i.free_indices()):
            return None
        else:
            out.append(None)
    blocks = [a for a in out if a is not None]
    whole = out[-1] is not None and sorted(blocks) == sorted(axes) and len(set(blocks)) == len(blocks)
    inside = all(_less(m) in edges for m in masks)
    return tuple(out) if whole and inside and len(edges) == len(blocks) else None


def _stretch(at: Int, dims: Mapping[str, tuple[str, ...]]) -> str:
    """The block dimension of which an access takes neighbours from some place on: ``k`` of ``g * S + k``; else none."""
    blocks = [n for n in at.free_indices() if dims.get(n)]
    if len(blocks) != 1 or dims[blocks[0]] != (blocks[0],):
        return ""
    rest = at - index(blocks[0])
    return "" if rest.tensors() or blocks[0] in rest.free_indices() else blocks[0]


def exact_axes(program: TileProgram, tiles: Mapping[str, Tile]) -> tuple[str, ...]:
    """Axes of which a tile begins at some place of its tensor, so that it may have no place more than the axis."""
    found = dict.fromkeys(
        axis
        for s in statements(program.body)
        if isinstance(s, Fetch) and s.tensor in tiles
        for i, axis in zip(s.at, tiles[s.tensor], strict=True)
        if axis is not None and i.index != axis
    )
    return tuple(found)


def _less(mask: Value) -> tuple[Int, Int] | None:
    """The two sides of a mask that says ``a < b`` of integers."""
    match mask:
        case Compare(op="lt", a=Extent(value=a), b=Extent(value=b)):
            return a, b
    return None
