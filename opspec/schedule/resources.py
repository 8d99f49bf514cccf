"""What a configuration needs of a multiprocessor, predicted before anything is compiled.

Shared memory of a pipelined block product is ``stages`` copies of both operand tiles. With
tensor-memory descriptors the epilogue's staging tile and the barriers come on top; with pointer
loads they don't. Accumulators live in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opspec.ir.dtypes import I4, DType, choices
from opspec.ir.values import Read, Unary, Value, walk
from opspec.schedule.access import plain
from opspec.schedule.tile import (
    Combine,
    Fetch,
    Let,
    Loop,
    Multiply,
    Statement,
    TileProgram,
    Write,
    statements,
)

REGISTERS_PER_THREAD = 255
BARRIER_BYTES = 8
OVERHEAD = 64  # registers per thread for addresses, masks and operands in flight
OVERHEAD_DESCRIBED = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one target: shared memory per block in bytes, 32-bit registers per multiprocessor, and how many of these."""

    shared_memory: int
    registers: int = 65536
    multiprocessors: int = 132


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTile:
    """A tile of a block product: rows × columns × depth, with warps and pipeline stages."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int

    def shared_memory(
        self, bits: int, *, descriptors: bool = False, sharing: int = 1, result: int = 16
    ) -> int:
        """Bytes of shared memory with operands of ``bits`` bits.

        ``sharing``: products that run side by side on one row operand, each with columns of its own.

        ``descriptors``: loads through tensor-memory descriptors, which stage the epilogue's tile
        of ``result`` bits an element and need barriers.
        """
        operands = self.stages * (self.rows + sharing * self.columns) * self.depth * bits // 8
        if not descriptors:
            return operands
        return operands + self.rows * self.columns * result // 8 + (self.stages + 1) * BARRIER_BYTES

    def accumulator_registers(self) -> int:
        """32-bit registers per thread that the f32 accumulator takes."""
        return self.rows * self.columns // (32 * self.warps)

    def fits(
        self,
        limits: Limits,
        bits: int,
        *,
        descriptors: bool = False,
        epilogue: int = 0,
        sharing: int = 1,
        result: int = 16,
        apart: tuple[int, int] = (0, 0),
        columns: int = 0,
    ) -> bool:
        """Whether a multiprocessor can hold one such block; ``epilogue``: further values per element.

        ``apart``: how many tiles of rows and of columns a step loads element by element, each with an address;
        ``columns``: how many values of 32 bits a column wait for the end of the sum, four threads for each.
        """
        # with descriptors neither addresses nor masks take registers, and an epilogue goes piece by piece
        held = sharing if descriptors else sharing + epilogue
        overhead = OVERHEAD_DESCRIBED if descriptors and not columns else OVERHEAD
        elements = (apart[0] * self.rows + apart[1] * self.columns) * self.depth
        overhead = max(overhead, 2 * elements // (32 * self.warps))
        registers = self.accumulator_registers() * held + overhead + columns * self.columns // 4
        return (
            self.shared_memory(bits, descriptors=descriptors, sharing=sharing, result=result)
            <= limits.shared_memory
            and registers <= REGISTERS_PER_THREAD
            and registers * 32 * self.warps <= limits.registers
        )


# Wide tiles first: they read each operand least often.
SHAPES: dict[str, tuple[tuple[int, int, int, int, int], ...]] = {
    "16": (
        (128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 64, 64, 4, 3), (128, 64, 64, 8, 3), (64, 128, 64, 4, 4),
        (64, 64, 128, 4, 3), (64, 64, 64, 4, 4), (32, 64, 128, 4, 4), (32, 64, 64, 4, 4), (16, 128, 64, 4, 4),
        (16, 64, 128, 4, 4), (16, 32, 128, 2, 4), (16, 16, 64, 2, 4),
    ),
    "8": (
        (256, 128, 128, 8, 3), (128, 128, 128, 4, 3), (128, 128, 128, 8, 3), (128, 64, 128, 4, 3), (64, 128, 128, 4, 4), (64, 64, 128, 4, 4), (32, 64, 128, 4, 4),
        (16, 128, 128, 4, 4), (16, 64, 128, 4, 4), (16, 32, 128, 2, 4), (16, 16, 128, 2, 4),
    ),
    "mixed": (
        (128, 128, 64, 8, 3), (64, 128, 128, 4, 3), (64, 64, 128, 4, 3), (32, 64, 128, 4, 4), (16, 32, 128, 2, 4),
        (16, 16, 128, 2, 4),
    ),
    # rows of bytes, which are widened in registers, by columns of 16 bits
    "bytes": (
        (64, 256, 64, 4, 4), (64, 128, 64, 4, 4), (64, 64, 128, 4, 5), (64, 32, 128, 4, 4),
        (64, 16, 256, 4, 4), (32, 32, 128, 4, 4), (16, 16, 128, 2, 4),
    ),
    "computed": (
        (128, 128, 64, 8, 3), (64, 64, 64, 4, 3), (32, 64, 64, 4, 3), (16, 32, 64, 4, 4), (16, 16, 64, 4, 4),
    ),
    "apart": (
        (128, 128, 64, 8, 4), (128, 128, 32, 8, 4), (128, 64, 32, 8, 3), (64, 64, 32, 4, 3), (32, 64, 32, 4, 3),
        (32, 32, 32, 4, 3), (16, 32, 32, 2, 3), (16, 16, 32, 2, 3),
    ),
    "32": (
        (64, 64, 16, 4, 2), (64, 32, 16, 4, 2), (32, 32, 32, 4, 2), (16, 32, 32, 2, 2), (16, 16, 32, 2, 2),
    ),
}  # fmt: skip
BITS = {"16": 16, "8": 8, "mixed": 16, "bytes": 16, "computed": 16, "apart": 16, "32": 32}


def candidates(kind: str) -> Iterator[ProductTile]:
    """Tiles worth offering for operands of a kind (16, 8 or 32 bits, 16 beside 8, or computed where they are used), fewer stages as a fallback."""
    for rows, columns, depth, warps, stages in SHAPES[kind]:
        for s in range(stages, 1, -1):
            yield ProductTile(rows=rows, columns=columns, depth=depth, warps=warps, stages=s)


def operand_kind(program: TileProgram) -> str:
    """What the operands of a program's block products are stored in, where they are not f32."""
    bits = operand_bits(program)
    if 0 in bits:
        return "bytes" if _rows_of_bytes(program) else "computed"
    narrow = {b for b in bits if b <= 8}
    if not narrow and any(loaded_apart(program)):
        return "apart"
    if narrow and bits - narrow:
        return "bytes" if operand_bits(program, rows=True) <= narrow else "mixed"
    return "8" if narrow else "16"


def _rows_of_bytes(program: TileProgram) -> bool:
    """Whether the rows of every product are computed from elements of at most 8 bits, or values beside them."""
    stored = {t.name: choices(t.dtype) for t in program.tensors}
    body = tuple(statements(program.body))
    fetched = {s.var.name: s for s in body if isinstance(s, Fetch)}
    lets = {s.var.name: s for s in body if isinstance(s, Let)}

    def bits(value: Value, k: str) -> set[int]:
        found: set[int] = set()
        names, seen = [v.name for v in walk(value) if isinstance(v, Read)], set[str]()
        while names:
            name = names.pop()
            if name in lets and name not in seen:
                names += [v.name for v in walk(lets[name].value) if isinstance(v, Read)]
            elif name in fetched and fetched[name].at[-1].index == k:
                found |= {d.bits for d in stored[fetched[name].tensor]}
            seen.add(name)
        return found

    rows = [bits(s.a.value, s.a.axes[1]) for s in body if isinstance(s, Multiply)]
    return bool(rows) and all(found and max(found) <= 8 for found in rows)


def operand_bits(program: TileProgram, *, rows: bool = False) -> set[int]:
    """Bits of an element of each operand of a block product, or of those of ``rows`` alone; 0 for one that is
    computed."""
    tensors = {t.name: t for t in program.tensors}
    fetched = {s.var.name: s for s in statements(program.body) if isinstance(s, Fetch) and s.raw}
    bits: set[int] = set()
    for s in statements(program.body):
        if isinstance(s, Multiply):
            for o in (s.a,) if rows else (s.a, s.b):
                value = plain(o.value)
                fetch = fetched.get(value.name) if isinstance(value, Read) else None
                stored = () if fetch is None else choices(tensors[fetch.tensor].dtype)
                bits |= {d.bits for d in stored} or {0}
    return bits


def loaded_apart(program: TileProgram) -> tuple[int, int]:
    """How many operands with rows and with columns a step loads whose neighbours in memory are no neighbours in the
    tile: ``a[m, k, 0]``.
    """
    fetched = {s.var.name: s for s in statements(program.body) if isinstance(s, Fetch) and s.raw}
    found: dict[str, int] = {}
    for s in statements(program.body):
        if isinstance(s, Multiply):
            for side, o in enumerate((s.a, s.b)):
                fetch = fetched.get(o.value.name) if isinstance(o.value, Read) else None
                if fetch is not None and not fetch.at[-1].free_indices() & set(fetch.var.axes):
                    found[fetch.var.name] = side
    return sum(v == 0 for v in found.values()), sum(v == 1 for v in found.values())


def loaded_packed(program: TileProgram) -> tuple[int, int]:
    """How many operands with rows and with columns hold two elements in a byte, which a step loads one by one."""
    packed = {t.name for t in program.tensors if t.dtype == I4}
    names = {s.var.name for s in statements(program.body) if isinstance(s, Fetch) and s.tensor in packed}
    sides = [
        (plain(s.a.value), plain(s.b.value)) for s in statements(program.body) if isinstance(s, Multiply)
    ]
    rows, columns = (
        {v.name for v in side if isinstance(v, Read)} & names for side in zip(*sides, strict=True)
    )
    return len(rows), len(columns)


def epilogue_registers(program: TileProgram) -> int:
    """Values per accumulator element that are alive at once behind the last stream, beside the accumulator.

    None if the accumulator is stored as it is; one where each element passes through a function.
    """
    after: list[Statement] = []
    for s in program.body:
        after = [] if isinstance(s, Loop) else [*after, s]
    if any(isinstance(s, Loop) and s.segments is not None for s in statements(program.body)):
        return 1  # the ends of segments stay at hand
    lets = [s for s in after if isinstance(s, Let) and len(s.var.axes) > 1]
    return int(any(isinstance(v, Unary) and v.op != "neg" for s in lets for v in walk(s.value)))


def waiting_columns(program: TileProgram, columns: str) -> int:
    """Values a column that are loaded before the first stream, of 32 bits whatever type is chosen."""
    tensors = {t.name: t.dtype for t in program.tensors}
    first = next((k for k, s in enumerate(program.body) if isinstance(s, Loop)), 0)
    loads = [s for s in program.body[:first] if isinstance(s, Fetch) and s.var.axes == (columns,)]
    return sum(min(d.bits for d in choices(tensors[s.tensor])) == 32 for s in loads)


def result_bits(program: TileProgram) -> int:
    """Bits of the widest result where operands have at most 16."""
    stored = [
        t.dtype
        for t in program.tensors
        if any(isinstance(s, Write) and s.tensor == t.name for s in statements(program.body))
    ]
    return max([16, *(d.bits for d in stored if isinstance(d, DType))])


def side_by_side(program: TileProgram) -> int:
    """How many accumulators of block products, or of sums over such products, one loop holds."""
    found = [1]
    for loop in statements(program.body):
        if isinstance(loop, Loop):
            products = [s for s in statements(loop.body) if isinstance(s, Multiply)]
            shapes = {s.var.axes for s in products}
            sums = sum(isinstance(s, Combine) and s.var.axes in shapes for s in loop.body)
            own = [s for s in products if s in loop.body]
            found.append(sum(s.accumulate for s in own) if not sums else len(products) + sums)
    return max(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Block shapes that a chain of products holds, without its rows or its stream.

    ``accumulated``: of carried accumulators, per row. ``kept``: of operands loaded before the stream,
    per row. ``loaded``: of operands loaded in the stream, per index of it; ``narrow``: all of these in bytes.
    """

    accumulated: tuple[tuple[str, ...], ...]
    kept: tuple[tuple[str, ...], ...]
    loaded: tuple[tuple[str, ...], ...]
    narrow: bool

    @property
    def axes(self) -> frozenset[str]:
        """Every axis of these shapes."""
        return frozenset(
            a for shapes in (self.accumulated, self.kept, self.loaded) for s in shapes for a in s
        )


def held_elements(program: TileProgram, rows: str, streams: frozenset[str]) -> Held:
    """What the products of a streamed program hold beside a tile of ``rows`` and a chunk of ``streams``."""
    accumulated: list[tuple[str, ...]] = []
    kept: list[tuple[str, ...]] = []
    loaded: list[tuple[str, ...]] = []
    wide: set[str] = set()
    stored = {t.name: choices(t.dtype) for t in program.tensors}
    inside = {
        id(s) for loop in statements(program.body) if isinstance(loop, Loop) for s in statements(loop.body)
    }
    for s in statements(program.body):
        if isinstance(s, Multiply) and s.accumulate and rows in s.var.axes:
            accumulated.append(tuple(a for a in s.var.axes if a != rows))
        elif isinstance(s, Fetch) and s.raw and id(s) in inside and streams & set(s.var.axes):
            loaded.append(tuple(a for a in s.var.axes if a not in streams))
            wide |= {s.tensor for d in stored[s.tensor] if d.bits > 8}
        elif isinstance(s, Fetch) and s.raw and rows in s.var.axes and id(s) not in inside:
            kept.append(tuple(a for a in s.var.axes if a != rows))
    return Held(
        accumulated=tuple(accumulated),
        kept=tuple(kept),
        loaded=tuple(loaded),
        narrow=bool(loaded) and not wide,
    )


def offered_tiles(
    limits: Limits,
    kind: str,
    epilogue: int = 0,
    sharing: int = 1,
    *,
    descriptors: bool = False,
    result: int = 16,
    apart: tuple[int, int] = (0, 0),
    columns: int = 0,
) -> tuple[tuple[int, int, int, int, int], ...]:
    """For each shape the deepest pipeline that fits; shapes that don't fit are dropped."""
    out: dict[tuple[int, int, int], tuple[int, int, int, int, int]] = {}
    for tile in candidates(kind):
        key = (tile.rows, tile.columns, tile.depth)
        if sharing > 1 and tile.rows >= 128 and tile.warps < 8:
            continue  # several accumulators want more threads
        if kind == "8" and not descriptors and tile.accumulator_registers() > 64:
            continue  # a sum of f8 products has an accumulator beside that of the unit, and addresses
        if key not in out and tile.fits(
            limits,
            BITS[kind],
            descriptors=descriptors,
            epilogue=epilogue,
            sharing=sharing,
            result=result,
            apart=apart if kind in ("apart", "8") else (0, 0),
            columns=columns,
        ):
            out[key] = (tile.rows, tile.columns, tile.depth, tile.warps, tile.stages)
    return tuple(out.values())


# Of a kernel whose warps have roles: registers of a thread that multiplies, and those that no accumulator takes.
REGISTERS_MULTIPLYING, OVERHEAD_MULTIPLYING = 240, 40
LEAST_SLOTS = 3


def warp_specialised_tiles(
    limits: Limits,
    bits: int,
    *,
    row_tiles: int,
    column_tiles: int,
    sums: int,
    folded: bool,
    vectors: int,
    results: int,
    result: int,
) -> tuple[tuple[int, int, int, int], ...]:
    """Tiles (rows, columns, depth, slots) of a product whose warps have roles, those first that read least.

    Two groups of four warps have half the rows each, in waves of 64. ``row_tiles``, ``column_tiles``: how many
    operands a step loads along rows and columns, of so many ``bits``; ``sums``: accumulators beside each other;
    ``folded``: whether each step's product has registers of its own, beside ``vectors`` along columns; ``results``: how many a tile has, of ``result``
    bits an element, 64 rows of each group on their way to memory.
    """
    depth = 1024 // bits  # the 128 bytes along which shared memory is swizzled
    found = []
    for rows, columns in ((128, 256), (256, 128), (128, 128)):
        wave = 64 * columns // 128
        registers = (rows // 128 * sums + folded) * wave + vectors * columns // 4 + OVERHEAD_MULTIPLYING
        step = (row_tiles * rows + column_tiles * columns) * depth * bits // 8
        leaving = results * 2 * 64 * columns * result // 8
        slots = (limits.shared_memory - leaving - BARRIER_BYTES) // (step + 2 * BARRIER_BYTES)
        if registers <= REGISTERS_MULTIPLYING and slots >= LEAST_SLOTS:
            found.append((rows, columns, depth, min(slots, 8)))
    return tuple(found)
