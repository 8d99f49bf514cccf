"""Pieces of the lines that choose blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opspec.emit.signature import KernelText
from opspec.schedule.plan import Variant
from opspec.schedule.tile import Multiply, TileProgram, statements


def in_f32(variant: Variant) -> bool:
    """Whether a product multiplies in f32 what is stored in fewer bits: the vector units do, from tiles as of f32."""
    return any(p.cast is None and not p.unit for p in variant.roles.products.values())


def in_tf32(program: TileProgram) -> bool:
    """Whether all products of a program may round f32 to tf32."""
    return all(s.precision == "tf32" for s in statements(program.body) if isinstance(s, Multiply))


def block_text(text: KernelText, extent: Mapping[str, str], axis: str, low: int, high: str) -> str:
    """The line that makes the block of an axis: its extent as a power of two from ``low`` to ``high``."""
    return f"{text.blocks[axis]} = launch.power_of_2({extent[axis]}, {low}, {high})"


def sum_text(tiles: Sequence[tuple[str, ...]], blocks: Mapping[str, str]) -> str:
    """Elements of several block shapes together, as text."""
    return " + ".join(" * ".join(blocks[a] for a in axes) or "1" for axes in tiles) or "0"


def tiles_text(tiles: tuple[tuple[int, ...], ...]) -> str:
    """Tiles as a tuple of Python."""
    return f"({', '.join(str(t) for t in tiles)}{',' if len(tiles) == 1 else ''})"
