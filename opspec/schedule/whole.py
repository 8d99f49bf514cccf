"""What a chain of block products without a stream holds: everything at once, for one tile of its rows."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.schedule.tile import Fetch, Multiply, TileProgram, statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Block shapes without the rows. ``accumulated``: of products, per row. ``kept``: of operands, per row.
    ``loaded``: of operands that all rows share."""

    accumulated: tuple[tuple[str, ...], ...]
    kept: tuple[tuple[str, ...], ...]
    loaded: tuple[tuple[str, ...], ...]


def held_whole(program: TileProgram, rows: str) -> Whole:
    """What the products and operands of a program without streams hold beside a tile of ``rows``."""
    products: list[tuple[str, ...]] = []
    kept: list[tuple[str, ...]] = []
    loaded: list[tuple[str, ...]] = []
    for s in statements(program.body):
        match s:
            case Multiply(var=var):
                products.append(tuple(a for a in var.axes if a != rows))
            case Fetch(var=var, raw=True) if rows in var.axes:
                kept.append(tuple(a for a in var.axes if a != rows))
            case Fetch(var=var, raw=True):
                loaded.append(var.axes)
            case _:
                pass
    return Whole(accumulated=tuple(products), kept=tuple(kept), loaded=tuple(loaded))
