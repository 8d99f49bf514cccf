"""What a generated launcher needs: checks with clear errors, results, devices, block sizes.

Everything here runs on the host before a launch. Errors name the op's own tensors and dims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, ClassVar, NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from opspec.runtime.tuned import Tuning

DTYPES = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i8": torch.int8,
    "i4": torch.uint8,  # two a byte along the last axis, the low nibble first
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
}
UNTUNED: Tuning = {}
NAMES = {v: k for k, v in DTYPES.items()}
LAST_32 = 2**31 - 1


class LaunchError(ValueError):
    """An argument that the op can't take; the message names it, what it is and what it should be."""


class Result(NamedTuple):
    """What an op returns: its name in the spec, its shape and its dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


def rank(name: str, tensor: torch.Tensor, expected: int) -> torch.Size:
    """The shape of ``tensor``, which must have ``expected`` axes."""
    if tensor.dim() != expected:
        raise LaunchError(f"`{name}` has {tensor.dim()} axes {tuple(tensor.shape)}, expected {expected}")
    return tensor.shape


def dtype_of(name: str, tensor: torch.Tensor, allowed: Sequence[str]) -> torch.dtype:
    """The dtype of ``tensor``, which must be one of ``allowed`` (names as in the spec)."""
    if NAMES.get(tensor.dtype) not in allowed:
        raise LaunchError(f"`{name}` is {tensor.dtype}, expected {' or '.join(allowed)}")
    return tensor.dtype


def check(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    """Require shape, dtype and device of a tensor."""
    if tuple(tensor.shape) != shape:
        raise LaunchError(f"`{name}` has shape {tuple(tensor.shape)}, expected {shape}")
    if tensor.dtype != dtype and not (dtype == torch.uint8 and tensor.dtype == torch.int8):
        raise LaunchError(f"`{name}` is {tensor.dtype}, expected {dtype}")
    if tensor.device != device:
        raise LaunchError(f"`{name}` is on {tensor.device}, expected {device}")


def require(holds: bool, condition: str, **dims: int) -> None:
    """Require a condition on dims; the error shows their values."""
    if not holds:
        values = ", ".join(f"{k} = {v}" for k, v in dims.items())
        raise LaunchError(f"the op requires {condition}, but {values}")


def solve(name: str, axis: int, extent: int, factor: int, offset: int) -> int:
    """The dim ``d`` with ``factor * d + offset == extent`` for one axis of a tensor."""
    if (extent - offset) % factor or extent < offset:
        raise LaunchError(f"axis {axis} of `{name}` is {extent}, which is not {factor} * d + {offset}")
    return (extent - offset) // factor


def receive(
    results: Sequence[Result], given: Sequence[torch.Tensor] | None, device: torch.device
) -> tuple[torch.Tensor, ...]:
    """The tensors that receive the results: the caller's, checked, or new contiguous ones."""
    if given is None:
        return tuple(torch.empty(r.shape, dtype=r.dtype, device=device) for r in results)
    if len(given) != len(results):
        raise LaunchError(f"`out` has {len(given)} tensors, expected {len(results)}")
    for result, tensor in zip(results, given, strict=True):
        check(result.name, tensor, result.shape, result.dtype, device)
        if any(s == 0 and e > 1 for s, e in zip(tensor.stride(), tensor.shape, strict=True)):
            raise LaunchError(f"`{result.name}` has stride 0 along an axis, so its elements share memory")
    return tuple(given)


def index_type(*tensors: torch.Tensor) -> Any:
    """``tl.int32`` where every element offset fits 31 bits, else ``tl.int64``."""
    for tensor in tensors:
        if tensor.numel() <= LAST_32 and tensor.is_contiguous():
            continue
        last = sum((e - 1) * abs(s) for e, s in zip(tensor.shape, tensor.stride(), strict=True) if e > 1)
        if last > LAST_32:
            return tl.int64
    return tl.int32


@contextmanager
def _device(index: int) -> Iterator[None]:
    previous = torch.cuda.current_device()
    torch.cuda.set_device(index)
    try:
        yield
    finally:
        torch.cuda.set_device(previous)


def on(device: torch.device) -> AbstractContextManager[None]:
    """Make ``device`` current for a launch; free where it already is."""
    if device.type != "cuda" or device.index is None or device.index == torch.cuda.current_device():
        return nullcontext()
    return _device(device.index)


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


def aligned(*tensors: torch.Tensor) -> bool:
    """Whether rows of all tensors can be read 16 bytes at a time: unit stride, the others multiples of 16."""
    for tensor in tensors:
        if tensor.data_ptr() % 16:
            return False
        if any(s != 1 and s % 16 for s, e in zip(tensor.stride(), tensor.shape, strict=True) if e > 1):
            return False
    return True


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


def without_edges(options: dict[str, Any], *kept: str) -> dict[str, Any]:
    """Launch options for a part of a stream, whose end the host doesn't know to be one of whole tiles; ``kept``: what
    says so of streams that every part walks whole."""
    return {name: value for name, value in options.items() if not name.startswith("EDGE_") or name in kept}


Moved = tuple[int | None, ...]  # of each axis the extent of a tile; None: a single index


class Units(tuple[int | None, ...]):
    """The tile of a tensor of which several elements move as one integer of type ``moved``: its last extent counts
    these."""

    __slots__ = ()
    moved: ClassVar[torch.dtype]


class Pairs(Units):
    """Of a tensor of bytes: units of two."""

    __slots__ = ()
    moved = torch.int16


class Words(Units):
    """Of a tensor of packed elements: words of eight."""

    __slots__ = ()
    moved = torch.int32


def describable(
    *tensors: torch.Tensor,
    pairs: Sequence[torch.Tensor] = (),
    words: Sequence[torch.Tensor] = (),
    beside: Sequence[torch.Tensor] = (),
) -> bool:
    """Whether tiles of all tensors can be moved by tensor-memory descriptors; those of ``pairs`` in units
    of two elements and those of ``words`` in units of four bytes, of which the last axis then has whole ones.

    That needs an NVIDIA device of capability 9.0 or more (Triton's interpreter takes them too), unit
    stride along the last axis, 16-byte alignment along the others, and offsets that fit 31 bits: of the tensors
    ``beside`` them too, since the indices of such a kernel have 32.
    """
    if not movable(*tensors):
        return False
    if index_type(*tensors, *beside) is not tl.int32:
        return False
    for kind, own in ((Pairs, pairs), (Words, words)):
        if any(t.shape[-1] * t.element_size() % kind.moved.itemsize for t in own):
            return False
    return has_tensor_memory(tensors[0].device)


def movable(*tensors: torch.Tensor) -> bool:
    """Whether all tensors have elements, unit stride along the last axis and 16-byte alignment along the others."""
    for tensor in tensors:
        size = tensor.element_size()
        if tensor.numel() == 0 or tensor.data_ptr() % 16 or tensor.stride(-1) != 1:
            return False
        if any(s <= 0 or s * size % 16 for s in tensor.stride()[:-1]):
            return False
    return True


@cache
def capability(device: torch.device) -> tuple[int, int]:
    """The capability of an NVIDIA device; (0, 0) of any other."""
    if device.type != "cuda" or torch.version.cuda is None:
        return 0, 0
    major, minor = torch.cuda.get_device_capability(device)
    return major, minor


@cache
def has_tensor_memory(device: torch.device) -> bool:
    """Whether a device moves tiles by tensor-memory descriptors, as Triton's interpreter does."""
    return device.type == "cpu" or capability(device) >= (9, 0)


@cache
def can_overlap(device: torch.device) -> bool:
    """Whether a kernel on a device may start before the one that it waits for has ended: NVIDIA's from 9.0 on."""
    return not triton.knobs.runtime.interpret and capability(device) >= (9, 0)


def leading(tile: Moved) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The order of a descriptor's axes, and what its tile then is: single indices come first.

    Only behind such does Triton drop them from a load; else a tile that does not change goes through registers
    on its way to a product.
    """
    order = tuple(sorted(range(len(tile)), key=lambda k: tile[k] is not None))
    return order, tuple(tile[k] or 1 for k in order)


def arranged(tensor: torch.Tensor, tile: Moved) -> tuple[torch.Tensor, tuple[int, ...]]:
    """A tensor as its descriptor sees it, and the tile of that."""
    order, block = leading(tile)
    return (tensor.view(tile.moved) if isinstance(tile, Units) else tensor).permute(order), block


def _descriptor(tensor: torch.Tensor, tile: Moved) -> TensorDescriptor:
    moved, block = arranged(tensor, tile)
    made = TensorDescriptor(moved, list(moved.shape), list(moved.stride()), list(block))
    made.source = tensor  # what a call knows it by
    return made


def describe(
    tensors: Sequence[torch.Tensor],
    tiles: Sequence[Moved | None],
    make: Callable[[torch.Tensor, Moved], Any] = _descriptor,
) -> tuple[Any, ...]:
    """Each tensor as a descriptor of its tile, which ``make`` makes, or as it is where it has none."""
    return tuple(t if tile is None else make(t, tile) for t, tile in zip(tensors, tiles, strict=True))


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


Tile = tuple[int, int, int, int, int]


def fills(programs: int, multiprocessors: int = 132) -> bool:
    """Whether so many programs leave at most one of 16 multiprocessors idle: a power of two just below their
    number is worth its larger tiles."""
    return 16 * programs >= 15 * multiprocessors


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


TURN = 128  # of a step, of which registers hold two that are unpacked
GROUP_ROWS = 64  # that a group of four warps multiplies at once
# Of a product with one column, where each warp takes a part of a step's sum: how many parts, and the tile, whose depth
# is that of a part; of rows in bytes, and of those in words of eight elements.
PARTS = 4
ONE_COLUMN = (64, 1, 64, PARTS, 4)
ONE_COLUMN_PACKED = (16, 1, 128, PARTS, 3)


def turns(described: bool, depth: int, block: int, rows: int, columns: int, parts: int) -> int:
    """How many steps of a sum of ``depth`` a program takes at once, ``block`` deep each: two where its tile is one of a
    group of four warps with up to 64 columns, whose steps wait for one another, and where they end together."""
    fits = described and parts == 1 and rows == GROUP_ROWS and columns <= GROUP_ROWS and block <= TURN
    return 2 if fits and depth % (2 * block) == 0 else 1


def turn_stages(steps: int, stages: int, columns: int) -> int:
    """Stages of a pipeline that brings so many steps at once: two programs share a multiprocessor."""
    return stages if steps == 1 else 3 if columns > GROUP_ROWS // 2 else 4


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


def moment(lengths: torch.Tensor, power: int) -> int:
    """The sum of a power of lengths. Looks at data, so it is for counting and never for a launch."""
    if lengths.device.type == "meta" or type(lengths) not in (torch.Tensor, torch.nn.Parameter):
        raise LaunchError("the operations depend on lengths, and these tensors hold no data")
    return int((lengths.to(torch.int64) ** power).sum())


def uncounted(symbol: str) -> int:
    """Refuse to count operations that depend on more than sums of powers of lengths."""
    raise LaunchError(f"the operations depend on {symbol}, which is not counted from tensors")


def chosen(tuned: Tuning, variant: str) -> bool:
    """Whether a variant may be taken: any, unless a tuning names one."""
    return not tuned or variant in tuned


def over(options: dict[str, Any], tuned: Tuning, variant: str) -> dict[str, Any]:
    """Launch options of a variant with those of its tuning over them; names that it doesn't have are left out."""
    for name, value in tuned.get(variant, {}).items():
        if name in options:
            options[name] = value
    return options


def size_of(dtype: str) -> float:
    """Bytes per element of a storage type, by its name in the spec (``i4`` is half a byte)."""
    return 0.5 if dtype == "i4" else DTYPES[dtype].itemsize
