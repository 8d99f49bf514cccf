"""Block sizes, numbers of programs and options, from extents. Everything here is arithmetic on the host."""

from __future__ import annotations

from typing import Any

import triton

from opspec.runtime.tuned import Tuning

UNTUNED: Tuning = {}


def power_of_2(extent: int, low: int = 1, high: int = 1 << 30) -> int:
    """The smallest power of two that is at least ``extent``, within ``[low, high]``."""
    return max(low, min(high, 1 << max(extent - 1, 0).bit_length()))


def share(budget: int, *blocks: int) -> int:
    """The largest power of two that multiplies ``blocks`` to at most ``budget``; at least 1."""
    for block in blocks:
        budget //= block
    return 1 << max(budget, 1).bit_length() - 1


def rows(extent: int, most: int, others: int = 1, programs: int = 264) -> int:
    """Rows for one program: ``most``, or one where that would leave fewer than ``programs``.

    ``others``: programs along the other axes. Two values and no more, so that a length that
    varies from call to call does not compile a binary for each.
    """
    return most if extent * others >= most * programs else 1


def bucket(extent: int, *sizes: int) -> int:
    """The first of ``sizes`` that holds ``extent``, else the last."""
    return next((s for s in sizes if s >= extent), sizes[-1])


def dividing(block: int, whole: int, least: int = 64) -> int:
    """A block along an index whose places are grouped by ``whole``: the largest power of two up to ``block`` that
    divides it, so that a tile lies in one group; ``block`` where that is less than ``least``."""
    fits = min(block, whole & -whole) if whole > 0 else block
    return fits if fits >= least else block


def grouping(block: int, whole: int) -> int:
    """How a block lies in groups of ``whole`` places: 0 in a part of one, 1 in several or across, 2 as one."""
    return 2 if block == whole else int(whole % block != 0)


def warps(elements: int, per_thread: int, most: int = 16) -> int:
    """Warps that leave each thread about ``per_thread`` elements of a block."""
    return power_of_2(elements // (32 * per_thread), 1, most)


def fills(programs: int, multiprocessors: int = 132) -> bool:
    """Whether so many programs leave at most one of 16 multiprocessors idle: a power of two just below their
    number is worth its larger tiles."""
    return 16 * programs >= 15 * multiprocessors


def resident(programs: int, warps: int, multiprocessors: int = 132) -> int:
    """Programs that walk over the tiles of a product: as many as a device holds, and no more than tiles."""
    return min(programs, multiprocessors * (1 if warps > 4 else 2))


def walks(rows: int, extent: int, warps: int, multiprocessors: int = 132) -> int:
    """Programs for so many blocks of ``rows``, each of which walks over a part of an axis of ``extent``: as many as
    end together on a device that holds one of more than four ``warps`` at once, or two."""
    held = multiprocessors * (1 if warps > 4 else 2)

    def steps(beside: int) -> int:
        # to begin costs a program about a step
        return int(triton.cdiv(rows * beside, held) * (triton.cdiv(extent, beside) + 1))

    most = max(min(extent, 8 * held // max(rows, 1)), 1)
    return rows * min(range(1, most + 1), key=steps)


def without_edges(options: dict[str, Any], *kept: str) -> dict[str, Any]:
    """Launch options for a part of a stream, whose end the host doesn't know to be one of whole tiles; ``kept``: what
    says so of streams that every part walks whole."""
    return {name: value for name, value in options.items() if not name.startswith("EDGE_") or name in kept}


def chosen(tuned: Tuning, variant: str) -> bool:
    """Whether a variant may be taken: any, unless a tuning names one."""
    return not tuned or variant in tuned


def over(options: dict[str, Any], tuned: Tuning, variant: str) -> dict[str, Any]:
    """Launch options of a variant with those of its tuning over them; names that it doesn't have are left out."""
    for name, value in tuned.get(variant, {}).items():
        if name in options:
            options[name] = value
    return options
