"""The tiles that a block product is offered, of which a launch takes the first that fills the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opspec.emit.choice import Sizes
from opspec.emit.choice_text import tiles_text
from opspec.schedule.nested import nested_product
from opspec.schedule.plan import Variant
from opspec.schedule.products import Product
from opspec.schedule.resources import (
    Limits,
    ProductTile,
    epilogue_registers,
    loaded_apart,
    loaded_packed,
    offered_tiles,
    operand_kind,
    result_bits,
    side_by_side,
    waiting_columns,
)

NARROW = tuple(ProductTile(rows=64, columns=columns, depth=128, warps=4, stages=4) for columns in (32, 16))
# half a tile, of which a multiprocessor holds two: segments leave many tiles partly empty, and one fills what the other
# leaves idle
HALF = ProductTile(rows=128, columns=128, depth=64, warps=4, stages=3)
FEW_WARPS = 4  # of which a multiprocessor holds two programs with full tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tiles that a product is offered, best first.

    ``kind`` of its operands, by bits; ``busy``: registers of an epilogue, of ``result`` bits; ``sharing``: products side
    by side; ``apart``: what is loaded apart from tiles; ``waiting``: columns that wait in shared memory; ``few``: whether no
    workload has many columns; ``segmented``: whether tiles begin where segments do; ``tiny``: the tile of blocks of a few
    elements.
    """

    limits: Limits
    kind: str
    busy: int
    sharing: int
    result: int
    apart: tuple[int, int]
    waiting: int
    few: bool
    segmented: bool
    tiny: tuple[int, ...] | None

    def text(self, kind: str, *, descriptors: bool) -> str:
        """The tiles for operands of a kind as a tuple of Python."""
        if self.tiny is not None:
            return tiles_text((self.tiny,))
        found = offered_tiles(
            self.limits,
            kind,
            self.busy,
            self.sharing,
            descriptors=descriptors,
            result=self.result,
            apart=self.apart,
            columns=self.waiting if descriptors else 0,
        )
        if kind == "8" and descriptors and self.sharing > 1:
            # a step waits for its product and folds it: of two programs one multiplies while the other folds
            found = tuple(t for t in found if t[3] <= FEW_WARPS)
        if kind == "16" and self.few:
            found = (*_narrow_tiles(self.limits, descriptors=descriptors, result=self.result), *found)
        if self.segmented and descriptors and kind == "16" and found[0][:2] == (HALF.rows, 2 * HALF.columns):
            found = (found[0], (HALF.rows, HALF.columns, HALF.depth, HALF.warps, HALF.stages), *found[1:])
        return tiles_text(found)


def offer(
    variant: Variant,
    product: Product,
    limits: Limits,
    sizes: Sizes,
    least: Mapping[str, int],
    cases: Sequence[Mapping[str, int]],
    *,
    segmented: bool,
) -> Offer:
    """The tiles for a product at these shapes; ``least``: what blocks must not go below; ``cases``: dims of workloads."""
    program = variant.program
    kind = operand_kind(program)
    # what a step that is a product folds lives beside the accumulator, of which nothing is stored
    nested = nested_product(program) is not None
    whole = program.axis(product.columns).extent
    return Offer(
        limits=limits,
        kind=kind,
        busy=1 if nested else epilogue_registers(program),
        sharing=side_by_side(program),
        result=0 if nested else result_bits(program),
        apart=loaded_packed(program) if kind == "8" else loaded_apart(program),
        waiting=waiting_columns(program, product.columns),
        few=bool(cases) and max(whole.evaluate(c) for c in cases) <= max(t.columns for t in NARROW),
        segmented=segmented,
        tiny=None if sizes.product is None else (sizes.product, sizes.product, least[product.k], 4, 2),
    )


def _narrow_tiles(
    limits: Limits, *, descriptors: bool, result: int
) -> tuple[tuple[int, int, int, int, int], ...]:
    """Tiles of many rows for the few columns that workloads have: rows pass a multiprocessor once."""
    return tuple(
        (t.rows, t.columns, t.depth, t.warps, t.stages)
        for t in NARROW
        if t.fits(limits, 16, descriptors=descriptors, result=result)
    )
