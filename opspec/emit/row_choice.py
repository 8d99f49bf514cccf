"""Blocks of a kernel whose threads take several rows one by one: windows of a few taps and scans in registers."""

from __future__ import annotations

from collections.abc import Mapping

from opspec.emit.choice import Choice, Sizes, choice_of
from opspec.emit.signature import KernelText
from opspec.ir.bounds import prove
from opspec.ir.facts import facts_of
from opspec.schedule.graph import Graph
from opspec.schedule.plan import Variant
from opspec.schedule.roles import fast_axes
from opspec.schedule.tile import Unroll, statements

TOGETHER = 512  # elements of one row of all threads: 16 bytes each of two warps
HELD = 32  # rows by taps of a thread: more of them load less twice, and fewer leave room for other warps
DEEP = 8  # rows of a thread at most
PARTED = 256  # elements of one step of all threads of a scan
SECTOR = 8  # of them along memory at least
COLUMNS = 64  # and at most
STEPS = 64  # steps by inputs of a thread
BESIDE = 2  # columns of a thread
ACROSS = 8  # elements of a thread in a row


def held_rows(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """What windows or scans in registers take."""
    if any(a.rows and a.role == "stream" for a in variant.program.axes):
        return _steps(graph, variant, text, extent, sizes)
    return _windows(graph, variant, text, extent, sizes)


def _steps(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """A scan: a few columns a program, of each so many parts that four warps have two columns a thread, and of
    a part so many steps as registers hold of what is read."""
    together = min(PARTED, sizes.chunk)
    lines: list[str] = []
    done: list[str] = []
    for axis in (a for a in fast_axes(graph) if a in variant.roles.grid and a in text.blocks):
        most = f"launch.share({', '.join([str(together), *done])})" if done else min(COLUMNS, together)
        lines.append(
            f"{text.blocks[axis]} = launch.power_of_2({extent[axis]}, {min(SECTOR, together)}, {most})"
        )
        done.append(text.blocks[axis])
    (axis,) = variant.roles.stream
    others = [a for a in variant.roles.grid if a in text.blocks and text.blocks[a] not in done]
    for name in (axis, *others):
        lines.append(f"{text.blocks[name]} = launch.share({', '.join([str(together), *done])})")
        done.append(text.blocks[name])
    kept = [len(s.kept) for s in statements(variant.program.body) if isinstance(s, Unroll)]
    deep = min(STEPS // (1 << max(max(kept) - 1, 0).bit_length()), max(sizes.chunk // 8, 1), STEPS // 2)
    lines.append(f"{text.blocks[f'{axis}.step']} = {max(deep, 1)}")
    return choice_of(text, lines, warps=f"launch.warps({' * '.join(done)}, {BESIDE})", stages="1")


def _windows(
    graph: Graph, variant: Variant, text: KernelText, extent: Mapping[str, str], sizes: Sizes
) -> Choice:
    """A tile of one row where a row is long, and as many rows behind each other as taps leave registers for."""
    together = min(TOGETHER, sizes.pointwise)
    lines: list[str] = []
    done: list[str] = []
    held = next(a.name for a in variant.program.axes if a.rows)
    fast = [a for a in fast_axes(graph) if a in variant.roles.grid and a in text.blocks]
    rest = [a for a in variant.roles.grid if a in text.blocks and a not in fast]
    for axis in fast:
        most = f"launch.share({', '.join([str(together), *done])})"
        lines.append(
            f"{text.blocks[axis]} = launch.power_of_2({extent[axis]}, 1, {most if done else together})"
        )
        done.append(text.blocks[axis])
    for axis in rest:
        lines.append(f"{text.blocks[axis]} = launch.share({', '.join([str(together), *done])})")
        done.append(text.blocks[axis])
    taps = ", ".join(
        extent[a.name] if prove(a.extent - 1, facts_of(graph.block.op)) else f"max({extent[a.name]}, 1)"
        for a in variant.program.axes
        if a.role == "stream"
    )
    rows = text.blocks[f"{held}.step"]
    lines.append(f"{rows} = min(launch.share({HELD}, {taps}), {DEEP})")
    return choice_of(text, lines, warps=f"launch.warps({' * '.join(done)}, {ACROSS})", stages="1")
