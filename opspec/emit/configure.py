"""The text that picks blocks, warps and stages for a launch.

What can be decided from the structure is decided here; what depends on the shape becomes a
few lines of Python that a reader can follow. Block products have a room of their own
(``product_choice``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opspec.emit.choice import SMALL, Choice, Sizes, choice_of
from opspec.emit.host import host_int
from opspec.emit.lengths import operand
from opspec.emit.product_choice import product_choice
from opspec.emit.row_choice import column_choice, held_rows, kept_rows
from opspec.emit.signature import KernelText
from opspec.schedule.axis_order import fast_axes
from opspec.schedule.directions import prefixes
from opspec.schedule.graph import Graph, Prefix
from opspec.schedule.packed import packed_axes
from opspec.schedule.plan import Variant
from opspec.schedule.resources import Limits
from opspec.schedule.tile import Collapse, Combine, Fetch, Locate, Loop, Write, statements

PER_THREAD = 16
WARPS = 8  # of a program that holds whole rows, as long as each thread holds 32 elements at most
ACROSS = 4096  # elements of a chunk that is scanned along an axis other than that of memory
WALKED = 1024  # the same in a stream, where one warp walks each column's steps
ROOM = 4  # tensors whose steps a thread holds at once
NARROW = 32  # and its elements along memory
EACH = 8  # elements of a thread of a program that holds two short axes, or moves many tensors
MOVED = 6  # tensors that are many
SOME = 8  # programs of as many rows that are better than many of one
MANY = 3  # values of a column that are worth more rows
COLUMNS = 64  # elements along memory of a block that fits an axis of no power of two
SWEPT_REGISTERS = 80  # of a thread where rows are swept again: three programs at once, whose rows L2 holds
JOINED = 1024  # elements of a chunk of what is joined
NEAR = 16  # of them at least side by side
TWO_AT_ONCE = 64  # of a thread of 16 warps of which a multiprocessor holds two: a row comes as another goes
BESIDE_LANES = 4  # elements of held blocks beside a lane; more of them stream instead


def configure(
    graph: Graph,
    variant: Variant,
    text: KernelText,
    names: Mapping[str, str],
    limits: Limits,
    sizes: Sizes,
    cases: Sequence[Mapping[str, int]],
    *,
    last: bool,
    joins: bool = False,
) -> Choice:
    """The configuration of one variant; ``cases``: the shapes of the workloads. ``joins``: it has little to read,
    parts of totals, whose number must compile nothing anew."""
    if variant.roles.products:
        return product_choice(variant, text, names, limits, sizes, cases, last=last)
    choice = _plain_choice(graph, variant, text, names, sizes, cases, last=last, joins=joins)
    # of a stream in lanes it is neighbours of one lane that share a byte
    places = {f"{a}.near" if f"{a}.near" in text.blocks else a for a in packed_axes(graph).values()}
    packed = {text.blocks[a] for a in places if a in text.blocks}
    return replace(choice, lines=tuple(_at_least_a_byte(line, packed) for line in choice.lines))


def _at_least_a_byte(line: str, packed: set[str]) -> str:
    """A block along elements of four bits holds two of them at least."""
    block, _, size = line.partition(" = ")
    return f"{block} = max({size}, 2)" if block in packed and not size.isdigit() else line


def _plain_choice(
    graph: Graph,
    variant: Variant,
    text: KernelText,
    names: Mapping[str, str],
    sizes: Sizes,
    cases: Sequence[Mapping[str, int]],
    *,
    last: bool,
    joins: bool,
) -> Choice:
    roles = variant.roles
    extent = {a.name: host_int(a.extent, names) for a in variant.program.axes}
    if any(a.rows for a in variant.program.axes):
        return held_rows(graph, variant, text, extent, sizes)
    if roles.kept is not None:
        return kept_rows(variant, roles.kept, text, extent, sizes)
    lines: list[str] = []
    done: list[str] = []
    test = None
    if joins:
        sizes = replace(sizes, chunk=min(sizes.chunk, JOINED), least=min(sizes.least, NEAR))
    if _short_columns(graph, variant):
        return column_choice(graph, variant, text, extent, sizes)
    both = _two_axes(variant, text, cases) if not last else None
    for axis in both or roles.tile:
        if axis in text.blocks:
            block = text.blocks[axis]
            if both is not None and done:  # one size, so that a length compiles few binaries
                lines.append(f"{block} = launch.share({max(sizes.resident // 2, 1)}, {done[0]})")
                done.append(block)
                continue
            least = _least(
                graph, variant, axis, cases, sizes, along=axis in fast_axes(graph) and both is None
            )
            low = f", {least}" if least > 1 else ""
            lines.append(f"{block} = launch.power_of_2({extent[axis]}{low})")
            done.append(block)
    held = bool(done) and not last
    registers: str | None = None
    inner = bool(roles.tile or roles.stream)
    budget = sizes.chunk if roles.stream else sizes.together if inner else sizes.pointwise
    across = any(p.along not in fast_axes(graph) for p in prefixes(graph))
    if across:  # a scan across memory goes from warp to warp: short and narrow chunks in few warps
        budget = min(budget, WALKED // _crowded(variant) if roles.stream else ACROSS)
    # one warp walks a column of a scan across memory; what the taps of a window share stays in registers
    taps = bool(roles.stream) and not any(a in text.blocks for a in roles.stream) and not roles.tile
    # and a row that is folded more than once in turn makes all warps of its program wait each time
    folds = sum(isinstance(s, Collapse | Locate) for s in variant.program.body)
    per_thread = PER_THREAD * (2 if taps or folds > 1 or (across and roles.stream) else 1)
    if taps:
        budget *= 2
    if both is not None or joins:  # a program has few elements: all its threads share them
        per_thread = min(per_thread, EACH)
    columns = not inner and _column_values(graph, variant) >= MANY
    if columns:  # what a column needs serves more rows of it
        budget, per_thread = 4 * budget, 4 * per_thread
    if not inner and _moved(variant) >= MOVED:
        per_thread = min(per_thread, EACH)
    fast = [a for a in fast_axes(graph) if a in roles.grid and a in text.blocks]
    for axis in fast:
        block = text.blocks[axis]
        cap = "64" if len(fast) == 2 else "128" if roles.stream else "1024"
        if roles.tile and len(fast) == 1 and not roles.stream:
            # down columns one block is held whole, and longer ones are streamed: a binary each
            cap = f"max({2 * NARROW if across else 128}, launch.share({', '.join([str(budget), *done])}))"
        if roles.stream and len(fast) == 1:
            # few columns a program where there are few columns, but whole sectors of memory
            beside = " * ".join(extent[a] for a in roles.grid if a != axis)
            count = f", {beside}" if beside else ""
            cap = str(NARROW) if across else cap
            lines.append(f"{block} = max(launch.rows({extent[axis]}, {cap}{count}), 8)")
        elif not inner:
            lines.append(f"{block} = {_bucket(variant, text, axis, extent, cases, sizes, int(cap))}")
        else:
            lines.append(f"{block} = launch.power_of_2({extent[axis]}, 1, {cap})")
        done.append(block)
    if held:
        limit = min(sizes.resident, ACROSS) if across else sizes.resident
        known = [variant.program.axis(a).extent.constant for a in roles.tile]
        fits = not fast and all(known) and math.prod(_power(n or 0) for n in known) <= limit
        most = str(limit)
        if any(isinstance(s, Fetch) and s.again is not None for s in variant.program.body):
            # one that its row does not fill takes as many exponentials as one that it does
            fills = f"{text.blocks[roles.tile[0]]} == {extent[roles.tile[0]]}"
            most = f"({2 * limit} if width <= 2 and {fills} else {limit})"
            registers = f"{TWO_AT_ONCE} if {' * '.join(done)} > {limit} else None"
        test = None if fits else f"{' * '.join(done)} <= {most}"
        if both is not None:
            test = f"({extent[both[1]]} <= {done[1]} and {test})"
    if roles.laned is not None:
        if held:
            test = f"{' * '.join(done)} <= {BESIDE_LANES}"
        return _laned_choice(variant, text, extent, lines, done, test, sizes)
    for axis in roles.stream:
        if axis in text.blocks:
            block = text.blocks[axis]
            most = f"launch.share({', '.join([str(budget), *done])})"
            lines.append(f"{block} = {most if joins else f'launch.power_of_2({extent[axis]}, 1, {most})'}")
            done.append(block)
    rows = [a for a in roles.grid if a in text.blocks and a not in fast]
    for axis in rows:
        block = text.blocks[axis]
        args = ", ".join([str(budget), *done])
        others = [
            f"triton.cdiv({extent[a]}, {text.blocks[a]})" if a in text.blocks else extent[a]
            for a in roles.grid
            if a != axis
        ]
        count = f", {' * '.join(others)}" if others else ""
        count += f", {'' if others else '1, '}{SOME}" if columns else ""
        lines.append(f"{block} = launch.rows({extent[axis]}, launch.share({args}){count})")
        done.append(block)
    elements = " * ".join(done) or "1"
    # fewer warps a row: more rows at once, whose last ones then leave fewer multiprocessors idle
    rowwise = bool(roles.tile) and not roles.stream and not across
    warps = f", {WARPS} if {elements} <= {WARPS * 1024} else {2 * WARPS}" if rowwise and folds != 1 else ""
    stages = "3" if roles.stream else "1"
    choice = choice_of(
        text, lines, test=test, warps=f"launch.warps({elements}, {per_thread}{warps})", stages=stages
    )
    return replace(choice, registers=registers)


def _two_axes(
    variant: Variant, text: KernelText, cases: Sequence[Mapping[str, int]]
) -> tuple[str, str] | None:
    """Both axes that a program holds whole, the one that workloads make longer last; None where it is other than two
    alone."""
    roles = variant.roles
    blocked = [a for a in roles.grid if a in text.blocks]
    if roles.stream or len(roles.tile) != 2 or set(roles.tile) - set(text.blocks) or blocked or not cases:
        return None

    def longest(axis: str) -> int:
        return max(variant.program.axis(axis).extent.evaluate(c) for c in cases)

    short, long = sorted(roles.tile, key=longest)
    return short, long


def _column_values(graph: Graph, variant: Variant) -> int:
    """How many values a map loads for each column, beside those of its rows."""
    fast = [a for a in fast_axes(graph) if a in variant.roles.grid]
    loads = [s for s in variant.program.body if isinstance(s, Fetch)]
    across = any(len(s.var.axes) > 1 for s in loads)
    return sum(s.var.axes == tuple(fast) for s in loads) if across and len(fast) == 1 else 0


def _moved(variant: Variant) -> int:
    """How many tensors a map reads and writes one element of at each place."""
    every = {a.name for a in variant.program.axes}
    at = [s.at for s in variant.program.body if isinstance(s, Fetch | Write)]
    return sum(every <= {n for i in places for n in i.free_indices()} for places in at)


def _short_columns(graph: Graph, variant: Variant) -> bool:
    """Whether a program folds a few rows, as many as the text says, of columns that lie side by side in memory."""
    roles = variant.roles
    if roles.stream or len(roles.tile) != 1:
        return False
    (rows,) = roles.tile
    fast = [a for a in fast_axes(graph) if a in roles.grid]
    count = variant.program.axis(rows).extent.constant
    stored = any(isinstance(s, Write) and rows in s.axes for s in variant.program.body)
    return (
        len(fast) == 1 and rows not in fast_axes(graph) and not stored and count is not None and count <= 64
    )


def _least(
    graph: Graph,
    variant: Variant,
    axis: str,
    cases: Sequence[Mapping[str, int]],
    sizes: Sizes,
    *,
    along: bool,
) -> int:
    """The smallest block of a whole axis: along memory a fixed one, else what every workload fills, so that
    lengths below it share a binary and those of the workloads keep theirs. Beside a scan, whose every step has the
    whole block, what the workloads fill also along memory."""
    walked = bool(cases) and any(
        isinstance(n, Prefix) and n.along in variant.roles.stream for n in graph.nodes
    )
    if along and not walked:
        return sizes.least
    whole = variant.program.axis(axis).extent
    smallest = min((whole.evaluate(c) for c in cases), default=1)
    return min(sizes.least, 1 << max(smallest - 1, 0).bit_length())


def _bucket(
    variant: Variant,
    text: KernelText,
    axis: str,
    extent: Mapping[str, str],
    cases: Sequence[Mapping[str, int]],
    sizes: Sizes,
    cap: int,
) -> str:
    """A block along memory of a kernel without reductions: one of few, so that a length that varies
    from call to call does not compile a binary for each; the workloads say which pay."""
    cap = min(cap, sizes.pointwise)
    whole = variant.program.axis(axis).extent
    if any(_idle(whole.evaluate(c), cap) for c in cases):
        return str(min(cap, COLUMNS))
    if len([a for a in variant.program.axes if a.name in text.blocks]) == 1:
        return str(cap)
    wanted = {min(1 << max(whole.evaluate(c) - 1, 0).bit_length(), cap) for c in cases} or {min(128, cap)}
    buckets = sorted(wanted | {cap})
    return f"launch.bucket({extent[axis]}, {', '.join(map(str, buckets))})" if len(buckets) > 1 else str(cap)


def _power(extent: int) -> int:
    """The block that holds a whole axis."""
    return 1 << max(extent - 1, 0).bit_length()


def _idle(extent: int, cap: int) -> bool:
    """Whether more than a quarter of a block that is a power of two lies behind an axis of so many elements."""
    block = min(_power(extent), cap)
    return extent > COLUMNS and 4 * extent < 3 * (extent + -extent % block)


def _laned_choice(
    variant: Variant,
    text: KernelText,
    extent: Mapping[str, str],
    lines: list[str],
    held: list[str],
    test: str | None,
    sizes: Sizes,
) -> Choice:
    """A stream in steps and lanes: 16 bytes a lane, and as many steps as keep a thread's loads in flight. Of rows
    of odd length, whose elements are loaded one by one, a thread has as many lanes with an element each.

    Blocks ``held`` beside it take their part of what a thread carries. Several sweeps want more warps a program and so fewer programs at once: their rows then stay in L2.
    """
    axis = variant.roles.laned or ""
    lanes, steps, near = (text.blocks[d] for d in (axis, f"{axis}.step", f"{axis}.near"))
    warps = stream_warps(variant, sizes)
    threads = min(32 * warps, sizes.chunk)
    deep = stream_steps(variant, sizes)
    part = ", ".join(held)
    most = f"{threads} * (16 // width) // {near}"
    if held:
        most = f"min({most}, launch.share({deep * threads} * (16 // width), {near}, {part}))"
    lines.append(f"{near} = 1 if {operand(extent[axis])} % {sizes.aligned} else 16 // width")
    lines.append(f"{lanes} = launch.power_of_2(triton.cdiv({extent[axis]}, {near}), 1, {most})")
    if len(variant.roles.stream) > 1 and not held:  # inside of others a chunk is no longer than the stream
        few = f"{operand(extent[axis])} // ({lanes} * {near})"
        lines.append(f"{steps} = launch.bucket({few}, {', '.join(map(str, sorted({min(deep, 2), deep})))})")
    else:
        lines.append(f"{steps} = {f'launch.share({deep}, {part})' if held else deep}")
    count = f"launch.warps({lanes} * {near}, 16 // width, {warps})"
    crowded = bool(held) and test is None
    if crowded:  # whatever is held is held here, and large blocks of it want their own threads
        count = f"launch.warps({' * '.join([*held, lanes, steps, near])}, {PER_THREAD}, {2 * WARPS})"
    choice = choice_of(text, lines, test=test, warps=count, stages="1")
    swept = _sweeps(variant) > 1 and warps == WARPS and not crowded
    return replace(choice, registers=SWEPT_REGISTERS) if swept else choice


def stream_warps(variant: Variant, sizes: Sizes) -> int:
    """Warps of a program that streams along memory."""
    if variant.roles.laned is None:
        return max(sizes.chunk // (32 * PER_THREAD), 1)
    return min(8 if _sweeps(variant) > 1 else 4, max(sizes.chunk // 32, 1))


def stream_steps(variant: Variant, sizes: Sizes) -> int:
    """Steps of a chunk of a stream along memory: few where it is walked once, so that many programs are at work, and
    as many as keep a thread's loads in flight where few programs leave their rows in L2."""
    steps = 8 // _folded_beside(variant) if _sweeps(variant) > 1 else 2
    return min(steps, max(sizes.chunk // 8, 1))


def _sweeps(variant: Variant) -> int:
    return max(s.sweeps for s in statements(variant.program.body) if isinstance(s, Loop))


def _crowded(variant: Variant) -> int:
    """By how much a chunk of a scan across memory gets shorter: a thread holds its steps of every tensor that the
    loop loads, and has registers for ``ROOM`` of these."""
    loops = [s for s in statements(variant.program.body) if isinstance(s, Loop)]
    most = max(
        (sum(isinstance(s, Fetch) and len(s.var.axes) > 1 for s in lp.body) for lp in loops), default=0
    )
    return int(1 << (max(most - 1, 0) // ROOM).bit_length())


def _folded_beside(variant: Variant) -> int:
    """How many tensors one loop reads side by side in what it folds: 1, 2, 4 or 8."""
    loops = [s for s in statements(variant.program.body) if isinstance(s, Loop)]
    counts = [
        sum(isinstance(s, Fetch) and len(s.var.axes) > 1 for s in loop.body)
        for loop in loops
        if any(isinstance(s, Combine) for s in loop.body)
    ]
    return int(1 << min(max([1, *counts]).bit_length() - 1, 3))


__all__ = ["SMALL", "Choice", "Sizes", "configure", "stream_steps", "stream_warps"]
