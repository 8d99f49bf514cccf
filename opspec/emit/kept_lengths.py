"""Rows that a program keeps in registers, of any length in few binaries: their tiles and the stream beyond in one kernel."""

from __future__ import annotations

from collections.abc import Mapping

from opspec.emit.choice import Sizes
from opspec.emit.host import host_int
from opspec.emit.lengths import PLAIN, Class, Lengths, Stream, operand, power
from opspec.emit.row_choice import ACROSS, KEEPING
from opspec.emit.signature import KernelText
from opspec.schedule.packed import packed_axes
from opspec.schedule.plan import Plan
from opspec.schedule.roles import KEPT, LONG, SHORT

LANES = 32  # lanes of a warp


def kept_of_any_length(
    plan: Plan, texts: tuple[KernelText, ...], names: Mapping[str, str], sizes: Sizes, stream: Stream
) -> Lengths | None:
    """The classes of a kernel that keeps a few rows of one of two lengths, the first of ``texts``, or streams, the last.

    None for any other kernel.
    """
    kept, streamed = plan.variants[0], plan.variants[-1]
    rows = kept.roles.kept
    if rows is None or len(plan.variants) < 2:
        return None
    (axis,) = kept.roles.tile
    if streamed.roles.stream != (rows, axis) or streamed.roles.laned != axis:
        return None
    few, extent = (kept.program.axis(a).extent for a in (rows, axis))
    text = host_int(extent, names)
    if not extent.dims() or not PLAIN.fullmatch(text):
        return None
    short, long = (min(n, sizes.chunk) for n in (SHORT, LONG))
    return Lengths(
        extent=text,
        tile=texts[0].blocks[axis],
        block=texts[-1].blocks[axis],
        rows=None,
        rows_beyond=None,
        step=texts[-1].blocks[f"{axis}.step"],
        near=texts[-1].blocks[f"{axis}.near"],
        fewest=2 if axis in packed_axes(plan.graph).values() else 1,
        chunk=max(sizes.chunk // (4 * LANES), 1),
        least=sizes.least,
        stages=stream.stages,
        streamed=texts[-1].name,
        aligned=sizes.aligned,
        own=(),
        exact=(),
        classes=_classes(operand(text), short, long, sizes, stream),
        admits=f"{host_int(few, names)} <= {KEPT}",
        each=max(power(long) - power(short), 1),
        counts=tuple((c, host_int(e, names)) for c, e in texts[0].counts.items()),
    )


def _classes(extent: str, short: int, long: int, sizes: Sizes, stream: Stream) -> tuple[Class, ...]:
    """Rows of odd length; those of the longer tile, which may fill it; and those of the shorter one or beyond both."""
    first, last = power(short), power(long)
    low = short if first < last else 0
    warps = max(min(long // (ACROSS * LANES), 16), 1)
    odd, between = f"{extent} % {sizes.aligned}", f"{low} < {extent} <= {long}"
    beyond = first + (first < last)
    return (
        Class(test=odd, first=first, last=last + 1, together=1, warps=warps, steps=1, odd=True),
        Class(
            test=between,
            first=last,
            last=last + 1,
            together=1,
            warps=warps,
            steps=0,
            full=True,
            registers=KEEPING,
        ),
        Class(
            test=None,
            first=first,
            last=beyond,
            together=1,
            warps=stream.warps,
            steps=stream.steps,
            registers=stream.registers,
        ),
    )


__all__ = ["kept_of_any_length"]
