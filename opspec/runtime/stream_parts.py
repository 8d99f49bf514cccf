"""Into how many parts a stream is cut, and how many steps of a product go together."""

from __future__ import annotations

import triton

from opspec.runtime.blocks import fills, resident
from opspec.runtime.tiles import JOIN, RAGGED


def split(
    extent: int,
    chunk: int,
    programs: int,
    steps: int = 4,
    multiprocessors: int = 132,
    warps: int = 0,
    ragged: bool = False,
) -> tuple[int, int]:
    """Parts of a stream of ``extent`` in chunks, and the indices of one, where ``programs`` leave
    multiprocessors idle; (1, 0) where they don't. A part has at least so many ``steps``.

    ``warps`` of a program: of more than four a multiprocessor holds one, so that parts end together where
    they fill whole rounds, and what joins them counts against many. ``ragged``: where a stream ends is known from
    data alone. Then parts are short, so that those of the longest streams end with the others; one behind its end
    costs little.
    """
    whole = triton.cdiv(extent, chunk)
    parts = min((RAGGED if ragged else 2) * multiprocessors // max(programs, 1), whole // steps)
    if (programs >= multiprocessors and not ragged) or parts < 2:
        return 1, 0
    if warps > 4:
        if fills(programs, multiprocessors):
            return 1, 0

        def cost(p: int) -> float:
            return (
                int(triton.cdiv(programs * p, multiprocessors) * triton.cdiv(whole, p)) + JOIN * programs * p
            )

        parts = min(range(1, parts + 1), key=cost)
        if parts < 2:
            return 1, 0
    span = triton.cdiv(whole, parts) * chunk
    return triton.cdiv(extent, span), span


def span(extent: int, chunk: int, parts: int) -> int:
    """The indices of one of ``parts`` of a stream of ``extent`` in chunks, where another says how many; a multiple of
    16, so that one binary serves all."""
    return int(triton.cdiv(triton.cdiv(extent, parts), max(chunk, 16))) * max(chunk, 16)


def split_all(programs: int, *streams: tuple[int, int], steps: int = 4) -> tuple[int, int]:
    """Parts of several streams, each of an extent and in chunks, as many as the longest is worth; and the indices of
    one of the first stream."""
    parts = max(split(extent, chunk, programs, steps)[0] for extent, chunk in streams)
    return (parts, span(*streams[0], parts)) if parts > 1 else (1, 0)


def spread(
    extent: int, chunk: int, programs: int, warps: int, together: int = 16, multiprocessors: int = 132
) -> tuple[int, int]:
    """Parts of a stream whose steps are block products, and the indices of one, for ``programs`` beside it.

    So many that the programs end together: each step is as heavy as a program of a plain product. A device
    holds one program of more than four ``warps`` at once, or two; ``together`` of them share a part.
    """
    whole = triton.cdiv(extent, chunk)
    held = resident(programs * whole, warps, multiprocessors)
    enough = max(held // max(min(programs, together), 1), 1)
    fewest = enough if 2 * enough <= whole else 1

    def steps(parts: int) -> int:
        return triton.cdiv(programs * parts, held) * triton.cdiv(whole, parts) if held else 0

    parts = min(range(fewest, max(min(2 * enough, whole), fewest) + 1), key=steps)
    if parts < 2:
        return 1, 0
    span = triton.cdiv(whole, parts) * chunk
    return triton.cdiv(extent, span), span


TURN = 128  # of a step, of which registers hold two that are unpacked
GROUP_ROWS = 64  # that a group of four warps multiplies at once


def turns(described: bool, depth: int, block: int, rows: int, columns: int, parts: int) -> int:
    """How many steps of a sum of ``depth`` a program takes at once, ``block`` deep each: two where its tile is one of a
    group of four warps with up to 64 columns, whose steps wait for one another, and where they end together."""
    fits = described and parts == 1 and rows == GROUP_ROWS and columns <= GROUP_ROWS and block <= TURN
    return 2 if fits and depth % (2 * block) == 0 else 1


def turn_stages(steps: int, stages: int, columns: int) -> int:
    """Stages of a pipeline that brings so many steps at once: two programs share a multiprocessor."""
    return stages if steps == 1 else 3 if columns > GROUP_ROWS // 2 else 4
