"""A block product inside a stream: what a step of the stream folds is the product of its own tile.

The logits of a vocabulary that is streamed are such a product. Its accumulator lives for one step, so that
registers hold as wide a tile as those of a plain product; a step is as heavy as a program of one, so that
a part of the stream is worth a program from one step on.
"""

from __future__ import annotations

from dataclasses import dataclass

from opspec.schedule.tile import Loop, Multiply, TileProgram, statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """The axes of such a product: its rows in parallel, the stream of its columns, and the one it sums over."""

    rows: str
    stream: str
    k: str


def nested_product(program: TileProgram) -> Nested | None:
    """The product of a program that is one stream around one product, else None."""
    loops = [s for s in statements(program.body) if isinstance(s, Loop)]
    products = [s for s in statements(program.body) if isinstance(s, Multiply)]
    if len(loops) != 2 or len(products) != 1 or loops[0] not in program.body or loops[1] not in loops[0].body:
        return None
    outer, inner, product = loops[0], loops[1], products[0]
    if product not in inner.body or not product.accumulate or outer.segments is not None:
        return None
    rows = [a.name for a in program.axes if a.role == "grid" and a.blocked]
    if len(rows) != 1 or set(product.var.axes) != {rows[0], outer.axis}:
        return None
    if program.axis(outer.axis).dims != (outer.axis,) or program.axis(inner.axis).dims != (inner.axis,):
        return None
    return Nested(rows=rows[0], stream=outer.axis, k=inner.axis)
