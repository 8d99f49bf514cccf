"""Blocks of a kernel whose threads take several rows one by one: windows of a few taps and scans in registers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from opspec.emit.choice import Choice, Sizes, choice_of
from opspec.emit.signature import KernelText
from opspec.ir.bounds import prove
from opspec.ir.facts import facts_of
from opspec.schedule.axis_order import fast_axes
from opspec.schedule.graph import Graph
from opspec.schedule.plan import Variant
from opspec.schedule.roles import KEPT, LONG, SHORT
from opspec.schedule.tile import Fetch, statements

TOGETHER = 512  # elements of one row of all threads: 16 bytes each of two warps
HELD = 32  # rows by taps of a thread: more of them load less twice, and fewer leave room for other warps
DEEP = 8  # rows of a thread at most
PARTED = 512  # elements of one step of all threads of a scan
SECTOR = 8  # of them along memory at least
COLUMNS = 64  # and at most
STEPS = 32  # steps by inputs of a thread, of 16 bits
BESIDE = 2  # columns of a thread
REGISTERS = 128  # of it, so that a multiprocessor has two programs of eight warps
ACROSS = 8  # elements of a thread in a row
FOLDING = "96 if width < 4 else 255"  # of one that folds a part of large columns: as many warps as L1 feeds
WALKED_ACROSS = 4  # of one that has the next rows on their way too
WALKED = 4  # steps of a walk over rows
KEEPING = (
    "64 if width < 4 else 128"  # registers of a thread that keeps rows: two programs a multiprocessor, or one
)


def held_rows(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """What windows or scans in registers take."""
    if any(a.rows and a.role == "stream" for a in variant.program.axes):
        return _steps(graph, variant, text, extent, sizes)
    return _windows(graph, variant, text, extent, sizes)


def column_choice(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """Columns of a few rows: those of one warp, which needs no other to fold them."""
    (rows,) = variant.roles.tile
    (columns,) = _fast(graph, variant, text)
    lines = [
        f"{text.blocks[rows]} = launch.power_of_2({extent[rows]})",
        f"{text.blocks[columns]} = {min(COLUMNS, sizes.chunk)}",  # one size, so that a width compiles few binaries
    ]
    return choice_of(text, lines, warps="1", stages="1")


def kept_rows(
    variant: Variant, axis: str, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """Rows that a program keeps: two lengths of them, 16 bytes a thread of each, as long as registers hold all."""
    (row,) = variant.roles.tile
    block = text.blocks[row]
    lengths = dict.fromkeys(min(n, sizes.chunk) for n in (SHORT, LONG))
    size = f"launch.bucket({extent[row]}, {', '.join(map(str, lengths))})"
    choice = choice_of(
        text,
        [f"{block} = {size}"],
        test=f"({extent[axis]} <= {KEPT} and {extent[row]} <= {block})",
        warps=f"launch.warps({block}, {ACROSS})",
        stages="1",
    )
    return replace(choice, registers=KEEPING)


def _steps(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """A scan: a few columns a program, of each so many parts that four warps have two columns a thread, and of
    a part so many steps as registers hold of what is read."""
    (axis,) = variant.roles.stream
    together = min(PARTED, sizes.chunk)
    blocks = _Blocks(text, together)
    for name in _fast(graph, variant, text):
        blocks.cover(name, extent[name], min(SECTOR, together), min(COLUMNS, together))
    blocks.share([axis, *variant.roles.grid])
    loads = sum(isinstance(s, Fetch) for s in statements(variant.program.body))
    deep = min(STEPS // (1 << max(loads - 1, 0).bit_length()), max(sizes.chunk // 8, 1), STEPS // 2)
    size = f"{2 * deep} // max(width, 2)" if deep > 1 else "1"
    lines = [*blocks.lines, f"{text.blocks[f'{axis}.step']} = {size}"]
    return replace(choice_of(text, lines, warps=blocks.warps(BESIDE), stages="1"), registers=REGISTERS)


def _windows(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """A tile of one row where a row is long, and as many rows behind each other as taps leave registers for; a few
    times as many where a thread walks over them, as long as there are programs enough."""
    together = min(TOGETHER, sizes.pointwise)
    blocks = _Blocks(text, together)
    for name in _fast(graph, variant, text):
        blocks.cover(name, extent[name], 1, together)
    blocks.share(variant.roles.grid)
    taps = ", ".join(
        extent[a.name] if prove(a.extent - 1, facts_of(graph.block.op)) else f"max({extent[a.name]}, 1)"
        for a in variant.program.axes
        if a.role == "stream"
    )
    held = next(a.name for a in variant.program.axes if a.rows)
    rows, once = text.blocks[f"{held}.step"], text.blocks.get(f"{held}.once")
    most = f"min(launch.share({HELD}, {taps}), {DEEP})"
    if once is None:
        return choice_of(text, [*blocks.lines, f"{rows} = {most}"], warps=blocks.warps(ACROSS), stages="1")
    others = " * ".join(extent[a] for a in variant.roles.grid if a not in text.blocks) or "1"
    fast = [f"triton.cdiv({extent[a]}, {text.blocks[a]})" for a in _fast(graph, variant, text)]
    beside = " * ".join([others, *fast])
    count = f"launch.rows(triton.cdiv({extent[held]}, {once}), {WALKED}, {beside}, 1056)"
    lines = [*blocks.lines, f"{once} = {most}", f"{rows} = {once} * {count}"]
    return choice_of(text, lines, warps=blocks.warps(WALKED_ACROSS), stages="1")


def _fast(graph: Graph, variant: Variant, text: KernelText) -> list[str]:
    """The axes of programs that run along memory."""
    return [a for a in fast_axes(graph) if a in variant.roles.grid and a in text.blocks]


class _Blocks:
    """Blocks that are chosen one after the other, ``together`` elements in all at most."""

    def __init__(self, text: KernelText, together: int) -> None:
        self.text, self.together = text, together
        self.lines: list[str] = []
        self.done: list[str] = []

    def cover(self, axis: str, extent: str, least: int, most: int) -> None:
        """A block along memory, as long as its axis: the first up to ``most``, others up to what is left."""
        limit = self._left() if self.done else str(most)
        self._take(axis, f"launch.power_of_2({extent}, {least}, {limit})")

    def share(self, axes: Iterable[str]) -> None:
        """The other blocks of these axes, each of what is left."""
        for axis in axes:
            if axis in self.text.blocks and self.text.blocks[axis] not in self.done:
                self._take(axis, self._left())

    def warps(self, each: int) -> str:
        """So many warps that a thread has ``each`` elements."""
        return f"launch.warps({' * '.join(self.done)}, {each})"

    def _take(self, axis: str, size: str) -> None:
        self.lines.append(f"{self.text.blocks[axis]} = {size}")
        self.done.append(self.text.blocks[axis])

    def _left(self) -> str:
        return f"launch.share({', '.join([str(self.together), *self.done])})"
