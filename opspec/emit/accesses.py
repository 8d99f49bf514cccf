"""Accesses of a kernel as text: addresses, masks and policies, or whole tiles through descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opspec.emit.describe import Pairs, Tile, Units, Words, paired_axes
from opspec.emit.expressions import ATOM, TL, Expressions, literal, wrap
from opspec.emit.names import escape
from opspec.emit.narrow import Narrow
from opspec.emit.odd_rows import fetch_row, mask_row, odd_row
from opspec.emit.parts import narrow_rows
from opspec.emit.signature import (
    Overlap,
    block_names,
    count_name,
    descriptor,
    identifiers,
    pointer,
    stride,
)
from opspec.ir.dtypes import F8E5M2, F32, I4, DType, DTypeParam, Storage, compute_dtype
from opspec.ir.integers import FloorDiv, Int, index
from opspec.ir.program import Tensor
from opspec.ir.values import Compare, Extent, Literal, Read, Value, free_indices, walk
from opspec.schedule.begun import begun_products
from opspec.schedule.exact import holds, number
from opspec.schedule.nested import nested_product
from opspec.schedule.resources import operand_bits, operand_kind, side_by_side
from opspec.schedule.tile import (
    AxisPlan,
    Fetch,
    Loop,
    Multiply,
    Scan,
    TileProgram,
    Unroll,
    Write,
    inside,
    statements,
)
from opspec.schedule.walked import walked_axis


class Accesses:
    """State of a kernel that is printed, and its loads and stores."""

    def __init__(
        self,
        program: TileProgram,
        name: str,
        tiles: Mapping[str, Tile],
        halves: Narrow,
        *,
        backwards: bool = False,
        overlap: Overlap = Overlap(),  # noqa: B008 - frozen
        full: bool = False,
        large: bool = False,
    ) -> None:
        self.program, self.name, self.tiles = program, name, tiles
        self.backwards, self.overlap = backwards, overlap
        self.full, self.large = full, large and not tiles
        # rows of odd length, which begin at any address
        self.odd_row = None if tiles else odd_row(program)
        # what holds for every element of a tile that is full
        self.ends = frozenset(inside(a.name, a.extent) for a in program.axes if a.blocked and full)
        self.placed = {a for tile in tiles.values() for a in tile}
        self.paired = paired_axes(tiles)
        self.narrow = halves
        # the sum that may go in parts, one for each warp
        self.parted = narrow_rows(program, self.narrow, tiles)
        words = [t[-1] for t in tiles.values() if isinstance(t, Words)]
        self.packed_axis = words[0] if words and words[0] is not None else ""
        self.in_parts = "PARTS" if self.parted else "1"
        self.fetched = {s.var.name: s for s in statements(program.body) if isinstance(s, Fetch)}
        self.factors: dict[str, Value] = {}  # of rows in 16 bits, what multiplies the result of their product
        self.blocks = block_names(program.axes)
        self.names = identifiers(program.op) | {a.name: escape(a.name) for a in program.axes}
        self.names |= {n: escape(n) for n in program.sizes}
        self.x = Expressions(
            dims={a.name: a.dims for a in program.axes} | {f"{a.name}.place": a.dims for a in program.axes},
            names=self.names,
            axes={v.name: v.axes for v in program.vars},
            data=dict(program.data),
            element=self.element,
            quotient=self.quotient,
        )
        self.counts: dict[str, Int] = {}
        for s in program.body:
            if isinstance(s, Unroll) and s.index in {a.name for a in program.axes}:
                count = count_name(program.axis(s.index), "ROWS")
                self.names[f"{s.index}.count"] = count
                self.counts[count] = program.axis(s.index).extent
        for axis in program.axes:
            if axis.rows:
                self.held_rows(axis)
        self.started: dict[str, str] = {}
        self.raw: dict[str, Storage] = {}
        # values that stay in registers as they were loaded, and under which name each loop has them
        self.kept = {n: k for s in program.body if isinstance(s, Unroll) and s.raw for n, k in s.kept}
        self.stored: dict[str, str] = {}
        self.units: dict[str, tuple[str, DType]] = {}
        self.scopes: list[dict[str, str]] = [{}]
        self.masks = 0
        self.lines: list[str] = []
        self.level = 1
        self.sweep: tuple[str, int, int] | None = None
        self.open: tuple[str, ...] = ()
        self.step: Loop | None = None  # the innermost loop that is open
        self.whole_rows: dict[str, str] = {}  # of which tensors rows of a window wait as they are stored
        self.as_stored = False  # whether loads stay in the type that they are stored in
        self.implied: tuple[Value, ...] = ()
        self.edges: dict[str, tuple[Int, str]] = {}
        self.edge = ""
        self.checked: frozenset[str] = frozenset()  # sums that are looked at behind their loop
        self.part: bool | None = None  # inside a branch for tiles at an edge (True), or for the others
        products = [s for s in statements(program.body) if isinstance(s, Multiply)]
        tiled = [a for a in program.axes if a.role == "grid" and a.blocked]
        self.grouped = bool(products) and len(tiled) == 2
        self.nested = nested_product(program)
        self.shared = _shared_places(program) if self.grouped else frozenset()
        # with descriptors a program goes from tile to tile, and loads for the next while it stores one
        walked = self.grouped and bool(tiles) and not program.sizes
        walked = walked and side_by_side(program) == 1 and operand_kind(program) == "16"
        # a sum that begins at a tile would wait for its products in a loop over tiles
        walked = walked and not begun_products(program)
        # where all of a program lies in segments of its rows, its tiles begin where these do
        self.fitted = fitted_segments(program) if walked else None
        self.walked = walked_axis(program) if tiles and not backwards else None
        self.persistent = walked and (self.fitted is not None or _single(program))

    def held_rows(self, axis: AxisPlan) -> None:
        """Names of what says which row of an axis a thread takes, and of how many taps meet there."""
        name = self.names[axis.name]
        self.names[f"{axis.name}.step"] = self.blocks[f"{axis.name}.step"]
        for part, label in (("place", "first"), ("row", "row"), ("at", "at")):
            self.names[f"{axis.name}.{part}"] = self.fresh(f"{name}_{label}")
        for tap in self.program.axes:
            if tap.role == "stream" and not tap.rows and tap.extent.constant is None:
                self.names[f"{tap.name}.count"] = count_name(tap)
                self.counts[count_name(tap)] = tap.extent

    def put(self, text: str) -> None:
        """Add a line at the level of the loop that is open."""
        self.lines.append("    " * self.level + text)

    def fresh(self, name: str) -> str:
        """The name, with underscores behind it as long as a variable or something of the op has it."""
        while name in self.x.axes or name in self.names.values():
            name += "_"
        return name

    def outside(self, masks: tuple[Value, ...]) -> tuple[Value, ...]:
        """Those of the masks that the place of a tile inside the domain does not imply."""
        return tuple(m for m in masks if m not in self.implied)

    def quotient(self, axis: str, divisor: Int) -> str | None:
        """``axis // divisor`` of a tile's places, one number a tile where the host finds that tiles fit.

        Of the open stream, or of a tile of a product's rows or columns.
        """
        first = self.started.get(axis)
        if axis in self.shared:
            first = self.names.get(f"{axis}.first")
        if first is None and self.large and divisor.constant is None and axis in self.blocks:
            near = self.names.get(f"{axis}.first")
            if near is not None and not divisor.free_indices() and not divisor.tensors():
                return self.x.call("quotients_near", near, self.names[axis], self.x.integer(divisor, ())[0])[
                    0
                ]
        if first is None or divisor.free_indices() or divisor.tensors():
            return None
        if divisor.constant is not None and not (self.narrow.packed and axis in self.started):
            return None
        block, text = self.blocks[axis], self.x.integer(divisor, ())[0]
        # steps of few instructions don't wait for a division where tile and group are one
        kind, call = ("SPANS", "quotients_spanned") if self.narrow.packed else ("PARTIAL", "quotients")
        known = [
            flag for flag, own in self.edges.items() if own == (divisor, block) and flag.startswith(kind)
        ]
        count = sum(flag.startswith(kind) for flag in self.edges)
        flag = known[0] if known else block.replace("BLOCK", kind, 1) + (f"_{count + 1}" if count else "")
        self.edges[flag] = divisor, block
        parts = [] if kind == "PARTIAL" else [self.in_parts]
        return self.x.call(call, first, self.names[axis], text, flag, *parts)[0]

    def element(self, dtype: DTypeParam) -> str:
        """The element type that a dtype parameter has in this launch."""
        tensor = next(t for t in self.program.tensors if t.dtype == dtype)
        if tensor.name in self.tiles:
            return f"{descriptor(tensor.name)}.dtype"
        return f"{pointer(tensor.name)}.dtype.element_ty"

    def base(self, tensor: str) -> str:
        """The parameter through which a tensor comes."""
        return descriptor(tensor) if tensor in self.tiles else pointer(tensor)

    def corner(self, tensor: str, at: tuple[Int, ...]) -> str:
        """Where a tile begins, an index for each axis of its tensor; single indices come first, as in its descriptor."""
        out = []
        for i, axis in zip(at, self.tiles[tensor], strict=True):
            if axis is None:
                out.append(self.x.integer(i, ())[0])
                continue
            if i.index != axis:
                out.append(self.x.integer(i - index(axis), ())[0])
                continue
            out.append(self.first_of(axis))
        tile = self.tiles[tensor]
        if isinstance(tile, Units) and out[-1] != "0":
            out[-1] = f"{out[-1]} // {tile.elements}"
        order = sorted(range(len(tile)), key=lambda k: tile[k] is not None)
        return f"[{', '.join(out[k] for k in order)}]"

    def extent_of(self, axis: str) -> str:
        """How many places of a block dimension a variable has."""
        return self.blocks[axis]

    def first_of(self, axis: str) -> str:
        """The first place of a block dimension."""
        name = self.names[axis]
        return {"grid": f"{name}_first", "stream": f"{name}_start", "tile": "0"}[self.program.axis(axis).role]

    def places(self, axis: str) -> str:
        """The places of a block dimension behind its first one, in the order in which the kernel holds them."""
        block = self.blocks[axis]
        if self.parted and axis == self.packed_axis:
            return self.x.call("eights", block, self.in_parts)[0]
        return self.x.call("interleaved", block)[0] if axis in self.paired else f"tl.arange(0, {block})"

    def fetch_tile(self, s: Fetch) -> None:
        """A load of a whole tile; its single indices are dropped, and its dimensions brought into order."""
        tile = self.tiles[s.tensor]
        text = f"{descriptor(s.tensor)}.load({self.corner(s.tensor, s.at)})"
        kept = tuple(a for a in tile if a is not None)
        if len(kept) < len(tile):
            extents = [self.blocks[a] for a in kept]
            if isinstance(tile, Units):
                extents[-1] += f" // {tile.elements}"
            text += f".reshape({', '.join(extents)})"
        if isinstance(tile, Words):
            to = self.narrow.packed[s.var.name]
            self.x.stored[s.var.name] = to
            above = s.var.name in self.narrow.lifted
            self.x.lifted |= {s.var.name} & self.narrow.lifted
            args = [text, self.x.storage(to), *([self.in_parts] if above or self.parted else [])]
            name = "lifted_words" if above else "unpacked_words" if self.parted else "unpacked"
            text = self.x.call(name, *args)[0]
        if kept != s.var.axes:
            text += ".T"
        if self.parted and not isinstance(tile, Words) and self.packed_axis in s.var.axes:
            text = self.x.call("mixed", text, str(s.var.axes.index(self.packed_axis)), self.in_parts)[0]
        stored = self.tensor(s.tensor).dtype
        if not isinstance(tile, Words):
            self.raw[s.var.name] = stored
        if isinstance(tile, Pairs) and tile[-1] is not None and isinstance(stored, DType):
            self.units[s.var.name] = tile[-1], stored
        self.put(f"{s.var.name} = {text}")

    def fetch_packed(self, s: Fetch) -> bool:
        """A load of whole bytes that hold two elements each along a stream, if it is one."""
        axis = s.at[-1].index if s.at else None
        plain = None if s.other is None else number(s.other)
        if axis is None or axis not in self.started or s.var.axes[-1:] != (axis,) or plain not in (None, 0):
            return False
        if any(axis in i.free_indices() for i in s.at[:-1]) or self.x.dims[axis] != (axis,):
            return False
        beside = tuple(m for m in s.masks if axis in free_indices(m))
        if not all(ends(m, axis) for m in beside):
            return False  # of a byte the first element says whether it is loaded
        place = self.fresh(f"{self.names[axis]}_byte")
        half = f"{self.blocks[axis]} // 2"
        first = f"tl.multiple_of({self.started[axis]} // 2, {half})"
        self.put(f"{place} = ({first} + tl.arange(0, {half})).to(INDEX)")
        own = self.names[axis]
        address = self.located(s.var.name, s.tensor, s.at, s.var.axes, place=place)
        self.names[axis] = f"(2 * {place})"

        def load(masks: tuple[Value, ...]) -> str:
            text = f"mask={self.mask(masks, s.var.axes)}, other=0" if masks else ""
            return f"tl.load({', '.join(t for t in (address, text) if t)})"

        always = self.outside(s.masks)
        text = load(s.masks)
        if len(always) < len(s.masks):
            text = load(always) if self.part is False else f"{text} if {self.edge} else {load(always)}"
        self.names[axis] = own
        self.put(f"{s.var.name} = {self.x.call('nibbles', text)[0]}")
        if beside:  # the last byte may hold one element alone
            text = self.chosen(beside, s.var.axes, (s.var.name, ATOM), "0")[0]
            self.put(f"{s.var.name} = {text}")
        return True

    def chosen(
        self, masks: tuple[Value, ...], axes: tuple[str, ...], text: tuple[str, int], other: str
    ) -> tuple[str, int]:
        """The text where all masks hold, else the other."""
        raise NotImplementedError

    def fetch(self, s: Fetch) -> None:
        """A load: of a tile through a descriptor, or by address and mask."""
        if s.tensor in self.tiles:
            self.fetch_tile(s)
            return
        if self.tensor(s.tensor).dtype == I4 and self.fetch_packed(s):
            return
        tensor = self.tensor(s.tensor)
        if s.packed or s.again is not None:
            self.x.stored[s.var.name] = tensor.dtype
        if s.again is not None:
            held, time = s.again
            (rows,) = (a for a in self.program.axes if a.role == "tile")
            place = f"{wrap(self.x.integer(rows.extent, ()), 4)} + {time}"
            self.put(f"{s.var.name} = {self.x.call('as_loaded', held, place)[0]}")
            return
        if s == self.odd_row:
            fetch_row(self, s)
            return
        policy = "evict_first" if s.tensor in self.overlap.spent else self.policy(s.at) or s.hint
        args = [self.located(s.var.name, s.tensor, s.at, s.var.axes, 16 if policy else 48)]
        plain = None if s.other is None else number(s.other)
        # a load gives its default in the storage type: one that would be rounded there is put in afterwards
        general = s.other is not None and (plain is None or not holds(tensor.dtype, plain))
        packed = tensor.dtype == I4
        general = general or (packed and plain not in (None, 0))
        hint = [f'eviction_policy="{policy}"'] if policy else []
        default = ""
        if s.masks and s.other is not None:
            zero = 0.0 if s.var.dtype is F32 else 0
            kept = zero if general or plain is None else plain
            default = literal(Literal(value=kept, dtype=s.var.dtype))[0]

        def load(masks: tuple[Value, ...]) -> str:
            mask = self.mask(masks, s.var.axes) if masks else ""
            if mask and default and not hint and len(s.var.axes) > 1 and self.few(s.at, s.var.axes):
                return self.x.call("load_parts" if self.parted else "load_once", *args, mask, default)[0]
            if mask and default and not hint and self.one(s):
                return self.x.call("load_one", *args, mask, default)[0]
            masked = [f"mask={mask}", *([f"other={default}"] if default else [])] if mask else []
            return f"tl.load({', '.join([*args, *masked, *hint])})"

        suffix = ""
        if s.raw and not general:
            self.raw[s.var.name] = tensor.dtype
        elif s.packed:
            pass
        elif not packed and not self.as_stored:
            suffix = self.widening(tensor.dtype)
        always = self.outside(s.masks)
        inner = len(always) < len(s.masks) and len(s.var.axes) > 1 and not general and not packed
        text = load(always if inner and self.part is False else s.masks) + suffix
        if inner and self.part is not False:
            # inside, the place of a tile says what the mask would; a vector's costs nothing, and Triton then
            # fetches it ahead
            text = f"{text} if {self.edge} else {load(always)}{suffix}"
        if packed:
            text = self.x.call("nibble", text, self.x.integer(s.at[-1], s.var.axes)[0])[0]
        if general and s.other is not None:
            text = (
                f"tl.where({self.mask(s.masks, s.var.axes)}, {text}, {self.x.value(s.other, s.var.axes)[0]})"
            )
        if suffix == ".to(tl.float32)" and s.var.name in self.kept and text.endswith(suffix):
            raw = self.fresh(f"{s.var.name}_raw")
            self.put(f"{raw} = {text.removesuffix(suffix)}")
            self.stored[self.kept[s.var.name]] = raw
            text = self.x.call("widened", raw)[0]
        self.put(f"{s.var.name} = {text}")

    def widening(self, stored: Storage) -> str:
        """What brings an element from the type that it is stored in to the one that it is computed in."""
        widened = compute_dtype(stored)
        return "" if widened == stored else f".to({TL[widened.name]})"

    def wide(self, value: Value) -> str:
        """How many neighbours one load brings of what a value is made from."""
        loads = [self.fetched[v.name] for v in walk(value) if isinstance(v, Read) and v.name in self.fetched]
        bits = [f"{self.base(s.tensor)}.dtype.element_ty.primitive_bitwidth" for s in loads]
        return f"128 // {bits[0]}" if bits else "4"

    def few(self, at: tuple[Int, ...], axes: tuple[str, ...]) -> bool:
        """Whether an address is the same along the last dimension for all places of a tile, as the host may find."""
        last = axes[-1]
        factors = [a for i in at for monomial, _ in i.terms for a, _ in monomial]
        whole = [a for a in factors if last in self.x.int_axes(Int.of(a))]
        return bool(whole) and all(
            isinstance(a, FloorDiv) and a.num.index == last and last in self.started for a in whole
        )

    def one(self, s: Fetch) -> bool:
        """Whether a vector along a tile may be one number, as the host may find, and has its first place inside."""
        if len(s.var.axes) != 1 or s.var.axes[0] not in self.shared:
            return False
        axis = s.var.axes[0]
        return all(m == inside(axis, self.program.axis(axis).extent) for m in s.masks)

    def write(self, s: Write) -> None:
        """A store by address and mask."""
        value, dtype = self.x.value(s.value, s.axes), self.tensor(s.tensor).dtype
        if (same := self.x.held(s.value, s.axes, dtype)) is not None:
            value = same
        elif dtype == F8E5M2:
            # the device's own conversion would make infinities finite
            value = self.x.call("to_f8e5m2_nonsat", value[0])
        # ptxas spills the addresses of a tile that stands in a flattened loop unless their mask comes first
        early = self.mask(s.masks, s.axes) if self.persistent and s.masks else None
        args = [self.located(s.tensor, s.tensor, s.at, s.axes), value[0]]
        if self.tensor(s.tensor).dtype == I4:
            # the even element of each byte says where it is and whether it is written
            mask = self.mask(s.masks, s.axes)
            whole = self.x.call("pack_nibbles", f"tl.where({mask}, {value[0]}, 0)")[0]
            args = [
                self.x.call("even_elements", args[0])[0],
                whole,
                f"mask={self.x.call('even_elements', mask)[0]}",
            ]
        elif s.masks:
            args.append(f"mask={early or self.mask(s.masks, s.axes)}")
        if s.tensor in self.overlap.kept and self.sweep is None:
            args.append('eviction_policy="evict_last"')
        elif s.tensor in self.overlap.passed or self.policy(s.at):
            args.append('eviction_policy="evict_first"')
        self.put(f"tl.store({', '.join(args)})")

    def policy(self, at: tuple[Int, ...]) -> str | None:
        """What L2 should do with an access that streams through one program alone.

        A stream that is swept again should stay until its last sweep; after that it is no use to anyone. Nor is one
        that is walked once; but beside the results of a scan L2 does better untold.
        """
        used = {n for i in at for n in i.free_indices()}
        grid = {a.name for a in self.program.axes if a.role == "grid"}
        if self.sweep is None or self.grouped or not grid or not {*self.open, *grid} <= used:
            return None
        if any(_taps(i, self.sweep[0], grid) for i in at):
            return None  # other programs and other steps read it too
        if self.sweep[2] == 1 and self.step is not None and _stores_scans(self.step):
            return None
        return "evict_first" if self.sweep[1] == self.sweep[2] else "evict_last"

    def located(
        self,
        label: str,
        name: str,
        at: tuple[Int, ...],
        axes: tuple[str, ...],
        short: int = 48,
        place: str | None = None,
    ) -> str:
        """The address of an access: in place if short, else under a name of its own; ``place``: the bytes of an
        axis of packed elements, where whole bytes are loaded."""
        text = self.address(name, at, axes, place)
        if not set(axes) <= set().union(*(self.x.int_axes(i) for i in at)):
            # conditions depend on more dimensions than the address does
            shape = ", ".join(self.extent_of(a) for a in axes)
            text = f"tl.broadcast_to({text}, ({shape}{',' if len(axes) == 1 else ''}))"
        if len(text) < short:
            return text
        name = self.fresh(f"{label.replace('.', '_')}_at")
        self.put(f"{name} = {text}")
        return name

    def address(
        self, name: str, at: tuple[Int, ...], axes: tuple[str, ...], bytes_at: str | None = None
    ) -> str:
        """The pointer to a tensor's elements, by strides."""
        tensor, text = self.tensor(name), pointer(name)
        for position, i in enumerate(at):
            if i.constant == 0:
                continue
            place = self.x.integer(i, axes)
            if tensor.dtype == I4 and position == len(at) - 1:
                place = f"({wrap(place, 5)} // 2)", ATOM
                if bytes_at is not None:
                    place = self.x.expand((bytes_at, ATOM), self.x.dims[i.index or ""], axes)
            text += f" + {wrap(place, 5)} * {stride(tensor, position)}"
        return text

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        return next(t for t in self.program.tensors if t.name == name)

    def mask(self, masks: tuple[Value, ...], axes: tuple[str, ...]) -> str:
        """A conjunction; one that is more than a single comparison gets a name in its scope."""
        masks = _equalities(masks)
        if self.odd_row is not None and self.open and set(masks) & set(self.odd_row.masks):
            return mask_row(self, masks, axes)
        ends = tuple(m for m in masks if m in self.ends)
        masks = tuple(m for m in masks if m not in self.ends)
        texts = [] if not ends else [self.x.call("unless_full", self.all_of(ends, axes)[0], "FULL")[0]]
        if masks:
            text, precedence = self.all_of(masks, axes)
            texts.append(text if not texts else wrap((text, precedence), 4))
        text = " & ".join(texts)
        if len(texts) == len(ends) + len(masks) == 1 and len(text) < 24 + 19 * len(ends):
            return text
        for scope in self.scopes:
            if text in scope:
                return scope[text]
        self.masks += 1
        name = "mask" if self.masks == 1 else f"mask_{self.masks}"
        while name in self.x.axes:
            name += "_"
        self.scopes[-1][text] = name
        self.put(f"{name} = {text}")
        return name

    def all_of(self, masks: tuple[Value, ...], axes: tuple[str, ...]) -> tuple[str, int]:
        """A conjunction as it is written."""
        single = len(masks) == 1
        texts = list(dict.fromkeys(wrap(self.x.value(m, axes), 0 if single else 4) for m in masks))
        return " & ".join(texts), 0 if single else 3


def _shared_places(program: TileProgram) -> frozenset[str]:
    """Rows or columns of a product of loaded tiles along which a tensor has an element for several neighbours alone.

    Nothing in such a program goes along these axes, so that a vector may be one number for all places of a tile.
    """
    if 0 in operand_bits(program):
        return frozenset()
    found: set[str] = set()
    for s in statements(program.body):
        if isinstance(s, Fetch) and len(s.var.axes) == 1 and program.axis(s.var.axes[0]).role == "grid":
            axis = s.var.axes[0]
            atoms = [a for i in s.at for monomial, _ in i.terms for a, _ in monomial]
            mine = [a for a in atoms if axis in Int.of(a).free_indices()]
            if mine and all(isinstance(a, FloorDiv) and a.num.index == axis for a in mine):
                found.add(axis)
    return frozenset(found)


def _stores_scans(loop: Loop) -> bool:
    """Whether a loop stores what it scans chunk by chunk."""
    body = tuple(statements(loop.body))
    scanned = any(isinstance(s, Scan) and s.along is not None for s in body)
    return scanned and any(isinstance(s, Write) for s in body)


def ends(mask: Value, axis: str) -> bool:
    """Whether a mask that holds at an index of an axis holds at every one before it."""
    match mask:
        case Compare(op="lt" | "le", a=Extent(value=a), b=Extent(value=b)):
            if axis not in (b - a).free_indices():
                return True
            split = (b - a).affine([axis])
            slope = None if split is None else split[0][axis].constant
            return slope is not None and slope <= 0
    return False


def _taps(at: Int, stream: str, grid: set[str]) -> bool:
    """Whether a step of a stream is added to a place in parallel: ``t + r``."""
    beside = at.free_indices() & grid
    split = at.affine([stream, *beside]) if stream in at.free_indices() and beside else None
    return split is not None and all(k.constant is not None for k in split[0].values())


def _equalities(masks: tuple[Value, ...]) -> tuple[Value, ...]:
    """Masks with one equality for two bounds that meet, at the place of the first."""
    out: list[Value] = []
    for mask in masks:
        match mask:
            case Compare(op="le", a=a, b=b) if replace(mask, a=b, b=a) in masks:
                equal = replace(mask, op="eq")
                if equal not in out and replace(equal, a=b, b=a) not in out:
                    out.append(equal)
            case _:
                out.append(mask)
    return tuple(out)


def fitted_segments(program: TileProgram) -> Loop | None:
    """The stream over segments that is all of a program, around the stream of a product with a tile of places."""
    loops = [s for s in statements(program.body) if isinstance(s, Loop)]
    if len(loops) != len(("segments", "sum")) or program.body != (loops[0],) or loops[0].segments is None:
        return None
    return loops[0] if isinstance(loops[0].start, Extent) and segment_places(program, loops[0]) else None


def segment_places(program: TileProgram, loop: Loop) -> str | None:
    """The blocked axis whose places lie in the segments of a loop."""
    names = loop.start.value.free_indices() if isinstance(loop.start, Extent) else frozenset()
    rows = [a.name for a in program.axes if a.blocked and a.role == "grid" and f"{a.name}.first" in names]
    return rows[0] if len(rows) == 1 else None


def _single(program: TileProgram) -> bool:
    """Whether nothing is left to load once tiles of two grid axes stream, and each takes as long as the others."""
    loops = [s for s in program.body if isinstance(s, Loop)]
    return len(loops) == 1 and loops[0].segments is None
