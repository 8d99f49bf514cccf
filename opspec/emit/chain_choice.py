"""Blocks of products in a chain, such as attention: rows, a chunk of the stream, warps and stages as lines of a launcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opspec.emit.choice import Choice, Sizes, choice_of
from opspec.emit.choice_text import block_text, in_f32, in_tf32, sum_text
from opspec.emit.signature import KernelText
from opspec.ir.values import Extent
from opspec.schedule.plan import Variant
from opspec.schedule.resources import (
    Limits,
    held_elements,
)
from opspec.schedule.shapes import beside_rows, never_together, three_deep, tiles_beside
from opspec.schedule.tile import Fetch, Loop, TileProgram, statements
from opspec.schedule.whole import held_whole

PER_STEP = 16384  # elements of a step beside a product that no matrix unit runs
CHUNK = 64  # elements per row of a further value over rows and a chunk, alive beside the scores
TALLEST = 128  # rows of a tile: where no workload has more, their number is no length that varies
GROUP = 64  # rows that a group of four warps multiplies at once
ACCUMULATOR = 16384  # elements of a product's accumulator, beside which its epilogue fits


def chain_choice(
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
    roles, width = variant.roles, "4" if in_f32(variant) else "width"
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
            lines.append(block_text(text, extent, axis, least[axis], size))
        return choice_of(text, lines, test=test, warps=_wide("8", "4", width), stages="2")
    others = [extent[a] for a in roles.grid if a not in text.blocks]
    count = tiles_beside(variant.program, rows[0], streams)
    further = f" + {CHUNK * count}" if count else ""
    arguments = [
        extent[rows[0]],
        sum_text(holds.accumulated, text.blocks) + further,
        *(sum_text(tiles, text.blocks) for tiles in (holds.kept, holds.loaded)),
        width,
        str(limits.shared_memory),
        " * ".join(others) or "1",
        *(["edged=True"] if _edged(variant.program, rows[0]) else []),
        *(["tf32=True"] if in_tf32(variant.program) else []),
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
                lines.append(block_text(text, extent, axis, low, "chunk"))
        else:
            # no matrix unit: every element of rows times chunk times what is whole lives in registers
            beside = ", ".join([str(PER_STEP), text.blocks[rows[0]], *fixed])
            lines.append(block_text(text, extent, axis, 1, f"launch.share({beside})"))
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
    lines.append(block_text(text, extent, k, least[k], "64 if width < 4 else 32"))
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
    sums = [sum_text(tiles, text.blocks) for tiles in (held.accumulated, held.kept, held.loaded)]
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
