"""Which tensors of a tile program can be moved as whole tiles, through descriptors.

A tensor-memory descriptor names a tensor once, on the host; a load is then one instruction for a
whole tile, without an address or a mask per element, and what lies outside the tensor reads as 0.
So an access qualifies where each of its axes is either a whole block dimension or a single index,
where its masks say no more than the tensor's own edges, and where what they give outside is 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from opspec.ir.dtypes import choices
from opspec.ir.integers import Int, index
from opspec.ir.program import Tensor
from opspec.ir.values import Compare, Extent, Literal, Value
from opspec.schedule.tile import Fetch, TileProgram, Write, statements

Tile = tuple[str | None, ...]  # for each axis of a tensor its block dimension; None: a single index


def describe(program: TileProgram) -> dict[str, Tile]:
    """Operands of products with a descriptor, and what its tile is. Results are stored through pointers:
    on an H200 that was no slower, and they may lie anywhere."""
    tensors = {t.name: t for t in program.tensors}
    dims = {a.name: a.dims for a in program.axes}
    extents = {a.name: a.extent for a in program.axes}
    found: dict[str, Tile] = {}
    refused: set[str] = set()
    for s in statements(program.body):
        if isinstance(s, Write):
            refused.add(s.tensor)
        elif isinstance(s, Fetch):
            tile = _tile(tensors[s.tensor], s.at, s.masks, s.var.axes, dims, extents)
            if tile is None or not s.raw or not _zero(s.other) or found.setdefault(s.tensor, tile) != tile:
                refused.add(s.tensor)
    return {t: tile for t, tile in found.items() if t not in refused}


def _zero(other: Value | None) -> bool:
    return other is None or (isinstance(other, Literal) and other.value == 0)


def _tile(
    tensor: Tensor,
    at: tuple[Int, ...],
    masks: tuple[Value, ...],
    axes: tuple[str, ...],
    dims: Mapping[str, tuple[str, ...]],
    extents: Mapping[str, Int],
) -> Tile | None:
    """The tile of one access, if a descriptor can make it."""
    if not 2 <= len(at) <= 5 or any(d.bits < 8 or d.kind == "bool" for d in choices(tensor.dtype)):
        return None
    out: list[str | None] = []
    edges: list[tuple[Int, Int]] = []
    for i, extent in zip(at, tensor.extents, strict=True):
        name = i.index
        if name is not None and dims[name] == (name,):
            out.append(name)
            if extents[name] == extent:
                edges.append((index(name), extent))
        elif any(dims.get(n) for n in i.free_indices()):
            return None
        else:
            out.append(None)
    blocks = [a for a in out if a is not None]
    whole = out[-1] is not None and sorted(blocks) == sorted(axes) and len(set(blocks)) == len(blocks)
    inside = all(_less(m) in edges for m in masks)
    return tuple(out) if whole and inside and len(edges) == len(blocks) else None


def _less(mask: Value) -> tuple[Int, Int] | None:
    """The two sides of a mask that says ``a < b`` of integers."""
    match mask:
        case Compare(op="lt", a=Extent(value=a), b=Extent(value=b)):
            return a, b
    return None
