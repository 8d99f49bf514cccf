"""Tiles of block products: the one whose programs end first."""

from __future__ import annotations

from collections.abc import Iterable

import triton

from opspec.runtime.blocks import bucket, fills, power_of_2

Tile = tuple[int, int, int, int, int]
# Rows of a product's tiles: few, as many as a group of four warps multiplies at once, and two of these.
ROWS = (16, 64, 128)
DEEP = 2048  # of a sum, from where parts cost less than small tiles
FULL = 4096  # and from where an eighth of a device is enough to cut
RAGGED = 8  # programs a multiprocessor gets where some end early
JOIN = 1 / 12  # steps of a program that joining a part of a tile costs a device


def pick_tile(
    tiles: Iterable[Tile], rows: int, columns: int, batch: int = 1, programs: int = 132, depth: int = 0
) -> Tile:
    """The first tile (rows, columns, k, warps, stages) that all but fills ``programs``, else the last.

    A tile with more rows or columns than the next power of two of the problem is passed over; a few rows
    take the tile of 64, which reads no more. A sum of ``depth`` that can be cut keeps to few tiles, so that
    a number of rows that varies from call to call compiles few binaries: parts of it fill a device.
    """
    offered = tuple(tiles)
    large = offered[0][0] >= ROWS[-1]
    if large and depth >= DEEP:
        return _few_tiles(offered, rows, columns, batch, programs, depth)
    most = bucket(rows, *ROWS) if large and rows <= ROWS[-1] else power_of_2(rows, 16)
    for tile in offered:
        if tile[0] > most or tile[1] > power_of_2(columns, 16):
            continue
        if fills(triton.cdiv(rows, tile[0]) * triton.cdiv(columns, tile[1]) * batch, programs):
            return tile
    return offered[-1]


def less_padded(tiles: Iterable[Tile], columns: int) -> tuple[Tile, ...]:
    """The tiles without such first ones that pad ``columns`` by a sixteenth more than those behind them, which are as
    tall and narrower."""
    offered = tuple(tiles)

    def padded(tile: Tile) -> int:
        return int(triton.cdiv(columns, tile[1])) * tile[1]

    while len(offered) > 1 and offered[1][0] == offered[0][0] and offered[1][1] < offered[0][1]:
        if 16 * padded(offered[0]) <= 17 * padded(offered[1]):
            break
        offered = offered[1:]
    return offered


# Of a product with one column, where each warp takes a part of a step's sum: how many parts, and the tile, whose depth
# is that of a part; of rows in bytes, and of those in words of eight elements.
PARTS = 4
ONE_COLUMN = (64, 1, 64, PARTS, 4)
ONE_COLUMN_PACKED = (16, 1, 128, PARTS, 3)


def _few_tiles(
    offered: tuple[Tile, ...], rows: int, columns: int, batch: int, programs: int, depth: int
) -> Tile:
    """One tile for few rows, one for up to 64, and one above, the widest that parts of the sum spread over a
    device."""
    most = bucket(rows, *ROWS) if rows <= ROWS[-1] else power_of_2(rows)
    fitting = [t for t in offered if t[0] <= most and t[1] <= power_of_2(columns, 16)]
    least = min(max(t[0] for t in fitting), ROWS[-1])
    tallest = [t for t in fitting if t[0] >= least]

    def count(tile: Tile) -> int:
        return int(triton.cdiv(rows, tile[0]) * triton.cdiv(columns, tile[1]) * batch)

    if tallest[0][0] < ROWS[-1]:
        return next((t for t in tallest if fills(count(t), programs)), max(tallest, key=count))
    wide = [t for t in tallest if t[1] >= ROWS[-1]] or tallest[:1]
    enough = (t for t in wide if fills(count(t), programs) or _cuts(count(t), depth, programs))
    return next(enough, wide[-1])


def _cuts(tiles: int, depth: int, programs: int) -> bool:
    """Whether so many tiles are worth cutting into parts: an eighth of a device, more where the sum is short."""
    return fills(8 * tiles * min(depth, FULL) // FULL, programs)
