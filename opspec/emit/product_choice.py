"""Blocks, warps and stages of block products: tiles of a plain product, rows and chunks of a chain.

Tiles come from the resource model: one that the target's shared memory can't hold is never offered.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from opspec.emit.chain_choice import TALLEST, chain_choice
from opspec.emit.choice import Choice, Sizes, choice_of
from opspec.emit.choice_text import in_f32
from opspec.emit.host import host_int
from opspec.emit.offered import Offer, offer
from opspec.emit.signature import KernelText
from opspec.ir.dtypes import I4, choices
from opspec.ir.values import Read
from opspec.schedule.access import plain
from opspec.schedule.begun import begun_products
from opspec.schedule.nested import nested_product
from opspec.schedule.plan import Variant
from opspec.schedule.products import Product
from opspec.schedule.resources import (
    Limits,
    result_bits,
    warp_specialised_tiles,
)
from opspec.schedule.tile import Fetch, Multiply, TileProgram, statements

DEPTH = 128  # of a tile whose summed index is whole
BEGUN = 32  # the same of one that another sum begins at, and beside whose tiles it lies in shared memory
LEAST = 256  # of a chunk that every workload fills, so that short streams need no binary of their own
# the least depth of a product with four bits an element: Triton gives a thread eight of them in a row
PACKED = 64


def product_choice(
    variant: Variant,
    text: KernelText,
    names: Mapping[str, str],
    limits: Limits,
    sizes: Sizes,
    cases: Sequence[Mapping[str, int]],
    *,
    last: bool,
) -> Choice:
    """The configuration of a variant with block products; ``cases``: the shapes of the workloads."""
    roles = variant.roles
    extent = {a.name: host_int(a.extent, names) for a in variant.program.axes}
    # a matrix unit takes 32 bytes of depth at least
    deep = {
        p.k
        for p in roles.products.values()
        if p.cast is not None and min(d.bits for d in choices(p.cast)) == 8
    }
    least = {axis: 32 if axis in deep else 16 for axis in text.blocks}
    least |= dict.fromkeys(_packed(variant.program) & set(text.blocks), PACKED)
    lines: list[str] = []
    fixed: list[str] = []
    for axis in roles.tile:
        if axis in text.blocks:
            lines.append(f"{text.blocks[axis]} = launch.power_of_2({extent[axis]}, {least[axis]})")
            fixed.append(text.blocks[axis])
    product = next(iter(roles.products.values()))
    batch = [extent[a] for a in roles.grid if a not in text.blocks]
    blocked = [a for a in roles.stream if a in text.blocks]
    if nested_product(variant.program) is not None and not fixed:
        return _matmul_choice(variant, text, extent, least, batch, names, limits, sizes, cases)
    if {product.rows, product.columns} <= set(roles.grid):
        if blocked == [product.k] and not fixed:
            return _matmul_choice(variant, text, extent, least, batch, names, limits, sizes, cases)
        if not blocked and roles.stream and set(roles.tile) == {product.k}:
            choice = _matmul_choice(
                variant, text, extent, least, batch, names, limits, sizes, cases, depth="_"
            )
            test = None if last else f"{fixed[0]} <= {sizes.product or DEPTH}"
            return replace(choice, lines=(*lines, *choice.lines), test=test)
    begun = _begun(variant)
    if begun is not None:
        choice = _matmul_choice(
            variant, text, extent, least, batch, names, limits, sizes, cases, product=begun
        )
        beside = [
            f"{text.blocks[a]} = launch.power_of_2({extent[a]}, {least[a]}, {text.blocks[begun.k]})"
            for a in blocked
            if a != begun.k
        ]
        test = None if last else f"{' + '.join(fixed)} <= {sizes.product or BEGUN}"
        return replace(choice, lines=(*lines, *choice.lines, *beside), test=test)
    short = {a: min((variant.program.axis(a).extent.evaluate(c) for c in cases), default=1) for a in blocked}
    filled = {a: min(1 << max(e - 1, 0).bit_length(), LEAST) for a, e in short.items()}
    tallest = {
        a: max((variant.program.axis(a).extent.evaluate(c) for c in cases), default=TALLEST + 1)
        for a in roles.grid
    }
    return chain_choice(variant, text, extent, least, filled, tallest, lines, fixed, limits, sizes, last=last)


def _begun(variant: Variant) -> Product | None:
    """The product of a variant that streams its summed index, where all others make a tile of the same rows and
    columns that it begins at: the tiles are those of a plain product."""
    roles = variant.roles
    begun = begun_products(variant.program)
    if len(begun) != 1 or len(roles.products) < len(("begun", "beside")):
        return None
    streamed = {
        x.axes[0]: s.var.name
        for s in statements(variant.program.body)
        if isinstance(s, Multiply)
        for x in (s.b,)
    }
    main = [p for p in roles.products.values() if streamed.get(p.k) in begun]
    sides = {(p.rows, p.columns) for p in roles.products.values()}
    summed = {p.k for p in roles.products.values()}
    own = {*roles.tile, *(a for a in roles.stream if a in roles.blocked)}
    fits = len(main) == 1 and len(sides) == 1 and {*next(iter(sides))} <= set(roles.grid) and own == summed
    return main[0] if fits else None


def _packed(program: TileProgram) -> set[str]:
    """Axes along which a tensor is loaded that holds two elements in a byte."""
    packed = {t.name for t in program.tensors if t.dtype == I4}
    fetched = [s for s in statements(program.body) if isinstance(s, Fetch) and s.tensor in packed]
    return {a for s in fetched for a in s.at[-1].free_indices()}


def _matmul_choice(
    variant: Variant,
    text: KernelText,
    extent: Mapping[str, str],
    least: Mapping[str, int],
    batch: list[str],
    names: Mapping[str, str],
    limits: Limits,
    sizes: Sizes,
    cases: Sequence[Mapping[str, int]],
    *,
    depth: str | None = None,
    product: Product | None = None,
) -> Choice:
    """Rows and columns in parallel, the summed index streamed: the first tile that fills the device.

    ``depth``: what takes the tile's depth where the block along the summed index is chosen elsewhere; ``product``:
    the one whose tiles they are, the first if left out.
    """
    product = product or next(iter(variant.roles.products.values()))
    segments = None if text.described is None else text.described.segments
    tiles = offer(variant, product, limits, sizes, least, cases, segmented=segments is not None)
    blocks = [text.blocks[product.rows], text.blocks[product.columns], depth or text.blocks[product.k]]
    lines = _tile_lines(variant, text, tiles)
    rows, times = extent[product.rows], list(batch)
    if segments is not None:
        # tiles begin where segments do, and so are those of one segment, as many times as there are
        count = host_int(segments[1], names)
        rows, times = f"triton.cdiv({rows}, max({count}, 1))", [*times, count]
    arguments = [
        f"launch.less_padded(tiles, {extent[product.columns]})" if segments is not None else "tiles",
        rows,
        extent[product.columns],
        *([" * ".join(times)] if times else []),
    ]
    cut = text.split is not None and text.split.split.axis == product.k
    parted = cut and tiles.kind == "16" and sizes.product is None and nested_product(variant.program) is None
    parted = parted and not in_f32(variant)
    if parted:
        # parts of the sum fill a device where few tiles don't
        arguments.append(f"depth={extent[product.k]}")
    lines.append(f"{', '.join(blocks)}, num_warps, num_stages = launch.pick_tile({', '.join(arguments)})")
    if text.described is not None and "PARTS" in text.described.constexprs:
        lines += _one_column(extent[product.columns], blocks, sizes, packed=bool(_packed(variant.program)))
    choice = choice_of(text, lines, warps="num_warps", stages="num_stages", parted=parted)
    if segments is not None and sizes.product is None:
        # halves of a tile meet again sooner in L2
        choice = replace(choice, group="4 if num_warps == 4 else 8")
    return _with_roles(variant, text, product, limits, tiles.kind, choice)


def _tile_lines(variant: Variant, text: KernelText, tiles: Offer) -> list[str]:
    """The lines that say which tiles there are, by what is known of the operands as a kernel is launched."""
    lines = ["# rows, columns, depth, warps, stages: the first that fills the device"]
    if in_f32(variant):
        return [*lines, f"tiles = {tiles.text('32', descriptors=False)}"]
    lines.append(f"tiles = {tiles.text(tiles.kind, descriptors=False)}")
    lines.append("if width == 4:")
    lines.append(f"    tiles = {tiles.text('32', descriptors=False)}")
    if text.described is not None and not _by_address(variant.program, text.described.tiles):
        lines.append("elif described:")
        lines.append(f"    tiles = {tiles.text(tiles.kind, descriptors=True)}")
    if tiles.tiny is None and tiles.kind == "16":
        lines.append("elif not aligned:")
        lines.append(
            "    tiles = tiles[1:]  # loads of single elements need the registers of the widest tile"
        )
    return lines


def _with_roles(
    variant: Variant, text: KernelText, product: Product, limits: Limits, kind: str, choice: Choice
) -> Choice:
    """The choice with tiles of the kernel whose warps have roles, if there is one for operands of this kind."""
    if text.warps is None or text.warps.roles is None or kind not in ("16", "8"):
        return choice
    roles = text.warps.roles
    tiles = warp_specialised_tiles(
        limits,
        int(kind),
        row_tiles=roles.row_tiles,
        column_tiles=roles.column_tiles,
        sums=roles.sums,
        folded=roles.folded,
        vectors=roles.vectors,
        results=len(roles.results),
        result=result_bits(variant.program),
    )
    sides = tuple(text.blocks[a] for a in (product.rows, product.columns, product.k))
    return replace(choice, specialised=tiles, sides=sides)


def _by_address(program: TileProgram, tiles: Container[str]) -> bool:
    """Whether an operand of the product is loaded element by element, which takes registers for its addresses, beside
    another that moves through a descriptor."""
    body = list(statements(program.body))
    fetched = {s.var.name: s.tensor for s in body if isinstance(s, Fetch)}
    products = [s for s in body if isinstance(s, Multiply)]
    operands = {v.name for s in products for o in (s.a, s.b) if isinstance(v := plain(o.value), Read)}
    return any(name in fetched and fetched[name] not in tiles for name in operands)


def _one_column(columns: str, blocks: Sequence[str], sizes: Sizes, *, packed: bool) -> list[str]:
    """A tile for one column: each warp takes a part of a step's sum."""
    lines = [f"parts = launch.PARTS if described and {columns} == 1 else 1"]
    if sizes.product is None:
        tile = "ONE_COLUMN_PACKED" if packed else "ONE_COLUMN"
        lines.append("if parts > 1:")
        lines.append(f"    {', '.join(blocks)}, num_warps, num_stages = launch.{tile}")
    return ["# one column: each warp takes a part of a step's sum", *lines]
