"""Tiles of products in a chain, such as attention: what fits registers and shared memory."""

from __future__ import annotations

import triton

from opspec.runtime.blocks import bucket, fills, power_of_2, share
from opspec.runtime.stream_parts import split
from opspec.runtime.tiles import ROWS

# Rows, chunk, warps and stages of a chain of products, the best first; f32 operands take half a chunk.
WIDE = ((128, 64, 4, 2), (128, 64, 8, 2))
NARROW = ((64, 64, 4, 3), (64, 64, 4, 2), (64, 64, 8, 2), (64, 32, 8, 2))
FLAT = ((32, 64, 4, 3), (32, 32, 4, 2), (16, 128, 4, 2), (16, 64, 4, 2), (16, 32, 4, 2), (16, 16, 4, 2))
CHAINS = (*WIDE, *NARROW, *FLAT)
# where each tile of rows meets an edge of its own, less of a smaller tile is masked
EDGED = (*NARROW[:2], *WIDE, *NARROW[2:], *FLAT)
# and small tiles leave room for several programs, one of which multiplies while another takes exponentials
NARROW_ROWS = 64
# f32 is multiplied by the vector units, whose threads hold rows and columns of all of the depth
IN_F32 = ((32, 32, 8, 2), (16, 16, 4, 2))
CHAIN_REGISTERS = 216
WHOLE_REGISTERS = 192  # of products that are not all alive at once
WHOLE_IN_REGISTERS = 1024  # operand elements in f32, which no matrix unit reads from shared memory
Chain = tuple[int, int, int, int]


def pick_chain(
    rows: int,
    accumulated: int,
    kept: int,
    loaded: int,
    width: int,
    shared: int,
    others: int = 1,
    edged: bool = False,
    narrow: bool = False,
    stream: int = 0,
    tf32: bool = False,
) -> Chain:
    """Rows, chunk, warps and stages for a stream of block products.

    ``accumulated``: f32 elements per row that are carried; ``kept``: operand elements per row;
    ``loaded``: operand elements per index of the stream, of ``width`` bytes; ``shared``: bytes of
    shared memory; ``others``: programs along the other axes; ``edged``: whether where the stream ends
    depends on the row; ``narrow``: whether all that is loaded is bytes, and moved through descriptors. The first that fits and fills the device; if none fills it, the one with the
    most programs that still fits. A ``stream`` of so many indices that can be cut keeps to few choices.
    Operands of 4 bytes go on a matrix unit with ``tf32`` only.
    """
    if width == 4 and not tf32:
        tall, low = IN_F32
        fits = width * (tall[0] * kept + tall[3] * tall[1] * loaded) <= shared
        return tall if fits and rows > low[0] else low
    fitting: list[Chain] = []
    for block, chunk, warps, stages in EDGED if edged or accumulated <= NARROW_ROWS else CHAINS:
        choice = (block, chunk, warps, stages)
        if width == 4:
            choice = (block, max(chunk // 2, 16), warps, 2)
        elif narrow and block == 16 and chunk == 128:
            choice = (block, 2 * chunk, warps, stages)  # as many bytes
        halves = loaded // 2 if narrow else loaded
        if _holds(choice, accumulated, kept, halves, width, shared):
            fitting.append(choice)
    few = _few_rows(fitting, rows, others, stream) if stream else None
    if few is not None:
        return few
    best = None
    for choice in fitting:
        if choice[0] > power_of_2(rows, 16):
            continue
        best = best or choice
        if fills(triton.cdiv(rows, choice[0]) * others):
            return choice
        if choice[0] < best[0]:
            best = choice
    return best or CHAINS[-1]


def _few_rows(fitting: list[Chain], rows: int, others: int, stream: int) -> Chain | None:
    """One choice for up to 64 rows and one above, whose parts fill a device; None where nothing does, or
    where 16 rows are enough."""
    most = bucket(rows, *ROWS)
    tall = [c for c in fitting if ROWS[0] < c[0] <= most and c[0] in ROWS]
    if not tall:
        return None

    def programs(choice: Chain) -> int:
        return int(triton.cdiv(rows, choice[0])) * others

    choice = next((c for c in tall if fills(2 * programs(c))), min(tall, key=lambda c: c[0]))
    parts, _ = split(stream, choice[1], programs(choice))
    return choice if fills(programs(choice) * parts) else None


def pick_rows(
    rows: int, columns: int, others: int, room: int, width: int, shared: int
) -> tuple[int, int, int]:
    """Rows, warps and stages of a product whose ``columns`` one program holds: as many rows as fit ``room``
    elements of an accumulator, fewer where that leaves a quarter of a device idle.

    ``others``: programs along the other axes; operands have ``width`` bytes and go 64 deep.
    """
    if width == 4:
        return max(16, min(128, share(4096, columns), power_of_2(rows, 16))), 4, 2
    block = max(16, min(128, share(room, columns), power_of_2(rows, 16)))
    while block > 16 and triton.cdiv(rows, block) * others < 99:
        block //= 2
    stages = shared // ((block + columns) * 64 * width)
    return block, 8 if block * columns > 8192 else 4, max(2, min(4, stages))


def whole_rows(rows: int, accumulated: int, kept: int, loaded: int, width: int, shared: int) -> int:
    """Rows for a program of block products that streams nothing, or 0 where no multiprocessor holds two.

    ``accumulated``: f32 elements per row of all products; ``kept``: operand elements per row; ``loaded``:
    those that all rows share, of ``width`` bytes; ``shared``: bytes of shared memory.
    """
    most = shared // (2 * width) if width < 4 else WHOLE_IN_REGISTERS
    for block, warps in ((128, 8), (64, 4), (32, 4), (16, 4)):
        if block > power_of_2(rows, 16) or block * accumulated > WHOLE_REGISTERS * 32 * warps:
            continue
        if block * kept + loaded <= most:
            return block
    return 0


def _holds(
    choice: tuple[int, int, int, int], accumulated: int, kept: int, loaded: int, width: int, shared: int
) -> bool:
    block, chunk, warps, stages = choice
    registers = block * (accumulated + chunk) / (32 * warps)
    if chunk * loaded > 256 * 32 * warps:
        return False  # what a thread loads in a step
    return registers <= CHAIN_REGISTERS and width * (block * kept + stages * chunk * loaded) <= shared
