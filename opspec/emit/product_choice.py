"""Blocks, warps and stages of block products: tiles of a plain product, rows and chunks of a chain.

Tiles come from the resource model: one that the target's shared memory can't hold is never offered.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from opspec.emit.choice import Choice, Sizes, choice_of
from opspec.emit.host import host_int
from opspec.emit.signature import KernelText
from opspec.ir.dtypes import I4, choices
from opspec.ir.values import Extent, Read
from opspec.schedule.access import plain
from opspec.schedule.begun import begun_products
from opspec.schedule.nested import nested_product
from opspec.schedule.plan import Variant
from opspec.schedule.products import Product
from opspec.schedule.resources import (
    Limits,
    ProductTile,
    epilogue_registers,
    held_elements,
    loaded_apart,
    loaded_packed,
    offered_tiles,
    operand_kind,
    result_bits,
    side_by_side,
    waiting_columns,
    warp_specialised_tiles,
)
from opspec.schedule.shapes import beside_rows, never_together, three_deep, tiles_beside
from opspec.schedule.tile import Fetch, Loop, Multiply, TileProgram, statements
from opspec.schedule.whole import held_whole

DEPTH = 128  # of a tile whose summed index is whole
BEGUN = 32  # the same of one that another sum begins at, and beside whose tiles it lies in shared memory
PER_STEP = 16384  # elements of a step beside a product that no matrix unit runs
LEAST = 256  # of a chunk that every workload fills, so that short streams need no binary of their own
CHUNK = 64  # elements per row of a further value over rows and a chunk, alive beside the scores
# the least depth of a product with four bits an element: Triton gives a thread eight of them in a row
PACKED = 64
NARROW = tuple(ProductTile(rows=64, columns=columns, depth=128, warps=4, stages=4) for columns in (32, 16))
# half a tile, of which a multiprocessor holds two: segments leave many tiles partly empty, and one fills what the other
# leaves idle
HALF = ProductTile(rows=128, columns=128, depth=64, warps=4, stages=3)
TALLEST = 128  # rows of a tile: where no workload has more, their number is no length that varies
GROUP = 64  # rows that a group of four warps multiplies at once
FEW_WARPS = 4  # of which a multiprocessor holds two programs with full tiles
ACCUMULATOR = 16384  # elements of a product's accumulator, beside which its epilogue fits


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
    return _chain_choice(
        variant, text, extent, least, filled, tallest, lines, fixed, limits, sizes, last=last
    )


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
    kind = operand_kind(variant.program)
    busy, sharing = epilogue_registers(variant.program), side_by_side(variant.program)
    result = result_bits(variant.program)
    apart = loaded_packed(variant.program) if kind == "8" else loaded_apart(variant.program)
    if nested_product(variant.program) is not None:
        busy, result = 1, 0  # what a step folds lives beside the accumulator, of which nothing is stored

    columns = waiting_columns(variant.program, product.columns)

    def offered(kind: str, *, descriptors: bool) -> str:
        if sizes.product is not None:
            return _tiles_text(((sizes.product, sizes.product, least[product.k], 4, 2),))
        found = offered_tiles(
            limits,
            kind,
            busy,
            sharing,
            descriptors=descriptors,
            result=result,
            apart=apart,
            columns=columns if descriptors else 0,
        )
        if kind == "8" and descriptors and sharing > 1:
            # a step waits for its product and folds it: of two programs one multiplies while the other folds
            found = tuple(t for t in found if t[3] <= FEW_WARPS)
        if kind == "16" and few:
            found = (*_narrow_tiles(limits, descriptors=descriptors, result=result), *found)
        if segmented and descriptors and kind == "16" and found[0][:2] == (HALF.rows, 2 * HALF.columns):
            found = (found[0], (HALF.rows, HALF.columns, HALF.depth, HALF.warps, HALF.stages), *found[1:])
        return _tiles_text(found)

    segmented = text.described is not None and text.described.segments is not None
    whole = variant.program.axis(product.columns).extent
    few = bool(cases) and max(whole.evaluate(c) for c in cases) <= max(t.columns for t in NARROW)
    blocks = [text.blocks[product.rows], text.blocks[product.columns], depth or text.blocks[product.k]]
    lines = ["# rows, columns, depth, warps, stages: the first that fills the device"]
    if _in_f32(variant):
        lines.append(f"tiles = {offered('32', descriptors=False)}")
    else:
        lines.append(f"tiles = {offered(kind, descriptors=False)}")
        lines.append("if width == 4:")
        lines.append(f"    tiles = {offered('32', descriptors=False)}")
        if text.described is not None and not _by_address(variant.program, text.described.tiles):
            lines.append("elif described:")
            lines.append(f"    tiles = {offered(kind, descriptors=True)}")
        if sizes.product is None and kind == "16":
            lines.append("elif not aligned:")
            lines.append(
                "    tiles = tiles[1:]  # loads of single elements need the registers of the widest tile"
            )
    rows, times = extent[product.rows], list(batch)
    if segmented and text.described is not None and text.described.segments is not None:
        # tiles begin where segments do, and so are those of one segment, as many times as there are
        count = host_int(text.described.segments[1], names)
        rows, times = f"triton.cdiv({rows}, max({count}, 1))", [*times, count]
    arguments = [
        f"launch.less_padded(tiles, {extent[product.columns]})" if segmented else "tiles",
        rows,
        extent[product.columns],
        *([" * ".join(times)] if times else []),
    ]
    cut = text.split is not None and text.split.split.axis == product.k
    parted = cut and kind == "16" and sizes.product is None and nested_product(variant.program) is None
    parted = parted and not _in_f32(variant)
    if parted:
        # parts of the sum fill a device where few tiles don't
        arguments.append(f"depth={extent[product.k]}")
    lines.append(f"{', '.join(blocks)}, num_warps, num_stages = launch.pick_tile({', '.join(arguments)})")
    if text.described is not None and "PARTS" in text.described.constexprs:
        lines += _one_column(extent[product.columns], blocks, sizes, packed=bool(_packed(variant.program)))
    choice = choice_of(text, lines, warps="num_warps", stages="num_stages", parted=parted)
    if segmented and sizes.product is None:
        # halves of a tile meet again sooner in L2
        choice = replace(choice, group="4 if num_warps == 4 else 8")
    if text.warps is None or text.warps.roles is None or kind not in ("16", "8"):
        return choice
    sides = tuple(text.blocks[a] for a in (product.rows, product.columns, product.k))
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
    return replace(choice, specialised=tiles, sides=sides)


def _narrow_tiles(
    limits: Limits, *, descriptors: bool, result: int
) -> tuple[tuple[int, int, int, int, int], ...]:
    """Tiles of many rows for the few columns that workloads have: rows pass a multiprocessor once."""
    return tuple(
        (t.rows, t.columns, t.depth, t.warps, t.stages)
        for t in NARROW
        if t.fits(limits, 16, descriptors=descriptors, result=result)
    )


def _in_f32(variant: Variant) -> bool:
    """Whether a product multiplies in f32 what is stored in fewer bits: the vector units do, from tiles as of f32."""
    return any(p.cast is None and not p.unit for p in variant.roles.products.values())


def _in_tf32(program: TileProgram) -> bool:
    """Whether all products of a program may round f32 to tf32."""
    return all(s.precision == "tf32" for s in statements(program.body) if isinstance(s, Multiply))


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


def _chain_choice(
    variant: Variant,
    text: KernelText,
    extent: Mapping[str, str],
    least: Mapping[str, int],
    filled: Mapping[str, int],
    tallest: Mapping[str, int],
    lines: list[str],
    fixed: list[str],
    limits: Limits,
    sizes: Sizes,
    *,
    last: bool,
) -> Choice:
    """Rows in parallel, some axes whole, the others streamed: rows and chunk from what a thread and a
    multiprocessor hold. A chunk that every workload fills (``filled``) is no smaller for short streams;
    ``tallest``: the most that a workload has along a grid axis."""
    roles, width = variant.roles, "4" if _in_f32(variant) else "width"
    rows = [a for a in roles.grid if a in text.blocks]
    streams = [a for a in roles.stream if a in text.blocks]
    most = sizes.held ** len(fixed) if sizes.product else sizes.held
    joint = " + " if never_together(variant.program, roles.tile) else " * "
    test = f"{joint.join(fixed)} <= {most}" if fixed and not last else None
    if sizes.product is None and len(rows) == 1 and not roles.stream and len(fixed) > 1:
        return _whole_choice(variant, text, extent, rows[0], lines, limits, last=last)
    holds = held_elements(variant.program, rows[0], frozenset(streams)) if len(rows) == 1 else None
    multiplied = {a for p in roles.products.values() for a in (p.rows, p.columns, p.k)}
    deep = three_deep(variant.program, {*rows, *streams} & multiplied)
    if (
        sizes.product is None
        and len(rows) == 1
        and not deep
        and _across(variant) == (rows[0], streams, roles.tile)
    ):
        return _across_choice(variant, text, extent, least, rows[0], lines, limits, test)
    if sizes.product is not None or holds is None or not streams or not holds.axes <= set(roles.tile) or deep:
        for axis in (*rows, *streams):
            size = _wide("64", "32", width) if axis in streams else _wide("128", "32", width)
            if axis in rows and fixed:
                # the f32 accumulator takes a quarter of the registers, and its epilogue about as many
                room, beside = _room(variant.program, axis, text, fixed)
                size = f"max(16, min(128, launch.share({_wide(str(room), str(room // 4), width)}, {beside})))"
            if axis in streams and len(fixed) == 1 and len(streams) > 1:
                # chunks of every stream lie in shared memory, two of each, beside what is whole
                room = limits.shared_memory // (4 * len(streams))
                size = f"max({least[axis]}, min({size}, launch.share({room} // {width}, {fixed[0]})))"
            if axis in deep:
                size = str(least[axis])
            if sizes.product is not None:
                size = str(max(sizes.product, least[axis]))
            lines.append(_block(text, extent, axis, least[axis], size))
        return choice_of(text, lines, test=test, warps=_wide("8", "4", width), stages="2")
    others = [extent[a] for a in roles.grid if a not in text.blocks]
    count = tiles_beside(variant.program, rows[0], streams)
    further = f" + {CHUNK * count}" if count else ""
    arguments = [
        extent[rows[0]],
        _sum(holds.accumulated, text.blocks) + further,
        *(_sum(tiles, text.blocks) for tiles in (holds.kept, holds.loaded)),
        width,
        str(limits.shared_memory),
        " * ".join(others) or "1",
        *(["edged=True"] if _edged(variant.program, rows[0]) else []),
        *(["tf32=True"] if _in_tf32(variant.program) else []),
        *(["narrow=described"] if holds.narrow and text.described is not None else []),
    ]
    # parts of the stream fill a device: rows fill tiles, and where their number does not vary parts end together
    cut = text.split is not None and tallest[rows[0]] >= GROUP
    if text.split is not None and cut:
        arguments.append(f"stream={extent[text.split.split.axis]}")
    lines.append("# rows, chunk, warps, stages: the first that registers and shared memory hold")
    lines.append(
        f"{text.blocks[rows[0]]}, chunk, num_warps, num_stages = launch.pick_chain({', '.join(arguments)})"
    )
    for axis in streams:
        if axis in multiplied:
            low = max(filled.get(axis, 0), least[axis])
            if low > least[axis]:
                lines.append(f"{text.blocks[axis]} = min(chunk, launch.power_of_2({extent[axis]}, {low}))")
            else:
                lines.append(_block(text, extent, axis, low, "chunk"))
        else:
            # no matrix unit: every element of rows times chunk times what is whole lives in registers
            beside = ", ".join([str(PER_STEP), text.blocks[rows[0]], *fixed])
            lines.append(_block(text, extent, axis, 1, f"launch.share({beside})"))
    parted = cut and tallest[rows[0]] <= TALLEST
    return choice_of(text, lines, test=test, warps="num_warps", stages="num_stages", parted=parted)


def _wide(narrow: str, wide: str, width: str) -> str:
    """A size for operands of less than 32 bits and one for others, as text that is decided where it can be."""
    return wide if width == "4" else f"{narrow} if {width} < 4 else {wide}"


def _across(variant: Variant) -> tuple[str, list[str], tuple[str, ...]] | None:
    """The rows, the stream and the whole columns of a program's only product."""
    products = list(variant.roles.products.values())
    if len(products) != 1:
        return None
    p = products[0]
    whole, rows = (p.columns, p.rows) if p.columns in variant.roles.tile else (p.rows, p.columns)
    return rows, [p.k], (whole,)


def _across_choice(
    variant: Variant,
    text: KernelText,
    extent: Mapping[str, str],
    least: Mapping[str, int],
    rows: str,
    lines: list[str],
    limits: Limits,
    test: str | None,
) -> Choice:
    """A product whose columns a program holds whole, and what folds them: as many rows as registers hold."""
    (whole,), k = variant.roles.tile, next(iter(variant.roles.products.values())).k
    outside = [s for s in variant.program.body if isinstance(s, Fetch) and {rows, whole} <= set(s.var.axes)]
    room = str(2 * ACCUMULATOR)
    if outside:
        # what is loaded beside the accumulator takes registers, more where addresses do too
        wide = text.described is not None
        room = (
            f"{2 * ACCUMULATOR} if described and {text.blocks[whole]} <= 256 else {ACCUMULATOR}"
            if wide
            else str(ACCUMULATOR)
        )
    others = [extent[a] for a in variant.roles.grid if a != rows]
    arguments = [
        extent[rows],
        text.blocks[whole],
        " * ".join(others) or "1",
        room,
        "width",
        str(limits.shared_memory),
    ]
    lines.append("# rows, warps, stages: what registers and shared memory hold beside whole columns")
    lines.append(f"{text.blocks[rows]}, num_warps, num_stages = launch.pick_rows({', '.join(arguments)})")
    lines.append(_block(text, extent, k, least[k], "64 if width < 4 else 32"))
    return choice_of(text, lines, test=test, warps="num_warps", stages="num_stages")


def _whole_choice(
    variant: Variant,
    text: KernelText,
    extent: Mapping[str, str],
    rows: str,
    lines: list[str],
    limits: Limits,
    *,
    last: bool,
) -> Choice:
    """Several products on whole axes, nothing streamed: rows from what registers and shared memory hold."""
    held, block = held_whole(variant.program, rows), text.blocks[rows]
    sums = [_sum(tiles, text.blocks) for tiles in (held.accumulated, held.kept, held.loaded)]
    arguments = [extent[rows], *sums, "width", str(limits.shared_memory)]
    lines.append(f"{block} = launch.whole_rows({', '.join(arguments)})")
    if last:
        lines.append(f"{block} = max({block}, 16)")
    return choice_of(
        text,
        lines,
        test=None if last else f"{block} > 0",
        warps=f"8 if {block} > 64 else 4",
        stages="1",
        words="a multiprocessor holds two such programs",
    )


def _room(program: TileProgram, rows: str, text: KernelText, fixed: Sequence[str]) -> tuple[int, str]:
    """How many elements of a block product's result registers hold, and what those of a row are."""
    summed, axes = beside_rows(program, rows)
    names = [text.blocks[a] for a in axes]
    if len(fixed) < 2 or not names or not set(names) <= set(fixed):
        return ACCUMULATOR, ", ".join(fixed)
    widest = f"max({', '.join(names)})" if len(names) > 1 else names[0]
    return ACCUMULATOR // 2 if summed else ACCUMULATOR, widest


def _edged(program: TileProgram, rows: str) -> bool:
    """Whether a stream's inner part depends on the block of rows."""
    for s in statements(program.body):
        if isinstance(s, Loop) and s.inner is not None:
            bounds = [v for v in (s.inner.start, s.inner.stop) if isinstance(v, Extent)]
            if any({f"{rows}.first", f"{rows}.last"} & v.value.free_indices() for v in bounds):
                return True
    return False


def _block(text: KernelText, extent: Mapping[str, str], axis: str, low: int, high: str) -> str:
    return f"{text.blocks[axis]} = launch.power_of_2({extent[axis]}, {low}, {high})"


def _sum(tiles: Sequence[tuple[str, ...]], blocks: Mapping[str, str]) -> str:
    """Elements of several block shapes together, as text."""
    return " + ".join(" * ".join(blocks[a] for a in axes) or "1" for axes in tiles) or "0"


def _tiles_text(tiles: tuple[tuple[int, ...], ...]) -> str:
    return f"({', '.join(str(t) for t in tiles)}{',' if len(tiles) == 1 else ''})"
