"""A tile program as the text of a Triton kernel.

Pointers and masks are spelled out here; everything that decides *what* happens was decided
before. The lines come out indented and in the formatter's style; the template adds the frame.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from opspec.emit.describe import Tile
from opspec.emit.expressions import ATOM, TL, Expressions, literal, wrap
from opspec.emit.names import escape
from opspec.emit.running import loop_range, print_locate, print_scan
from opspec.ir.dtypes import F8E4M3, F8E5M2, F32, I4, I8, DType, DTypeParam, Storage, compute_dtype
from opspec.ir.integers import Greatest, Int, Least
from opspec.ir.program import Op, Tensor
from opspec.ir.values import Cast, Extent, Literal, Monoid, Read, Value
from opspec.schedule.exact import holds, number
from opspec.schedule.resources import operand_kind, side_by_side
from opspec.schedule.split import Split
from opspec.schedule.tile import (
    AxisPlan,
    Begin,
    Collapse,
    Combine,
    Fetch,
    Inner,
    Let,
    Locate,
    Loop,
    Multiply,
    Operand,
    Remark,
    Scan,
    Statement,
    TileProgram,
    Write,
)

REDUCE: dict[Monoid, str] = {
    "sum": "tl.sum", "prod": "reduce_prod", "max": "reduce_max", "min": "reduce_min", "any": "reduce_any", "all": "reduce_all",
}  # fmt: skip
WIDENED: dict[Storage, str] = {F8E4M3: "widen_f8e4m3", I8: "widen_i8"}
WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """A printed kernel. ``params`` in order, constexpr ones marked; ``blocks`` axis → constexpr name.

    ``tiles``: tensors that it takes as descriptors; ``described``: the same variant with such tensors.
    """

    name: str
    params: tuple[str, ...]
    constexprs: tuple[str, ...]
    lines: tuple[str, ...]
    helpers: tuple[str, ...]
    blocks: dict[str, str]
    grouped: bool
    persistent: bool = False
    tiles: Mapping[str, Tile] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    edges: Mapping[str, tuple[Int, str]] = field(default_factory=dict)
    described: KernelText | None = None
    split: SplitText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """The kernels of a stream that is walked in parts, and the one that joins these."""

    split: Split
    partial: KernelText
    merge: KernelText


def print_kernel(program: TileProgram, name: str, tiles: Mapping[str, Tile] | None = None) -> KernelText:
    """Print one variant as a kernel called ``name``; ``tiles``: tensors that it takes as descriptors."""
    return _Printer(program, name, tiles or {}).kernel()


def identifiers(op: Op) -> dict[str, str]:
    """Python identifiers for every dim, tensor and scalar of an op."""
    return {n: escape(n) for n in (*op.dims, *(t.name for t in op.tensors), *(s.name for s in op.scalars))}


def pointer(tensor: str) -> str:
    """The pointer parameter of a tensor."""
    return f"{tensor.replace('.', '_')}_ptr"


def descriptor(tensor: str) -> str:
    """The descriptor parameter of a tensor."""
    return f"{tensor.replace('.', '_')}_desc"


def stride(tensor: Tensor, position: int) -> str:
    """The stride parameter of one axis of a tensor: by its dim where that is telling, else by position."""
    dims = [_bare(e) for e in tensor.extents]
    letter = dims[position]
    label = letter if letter is not None and dims.count(letter) == 1 else str(position)
    return f"{tensor.name.replace('.', '_')}_stride_{label}"


def _bare(extent: Int) -> str | None:
    dims = extent.dims()
    return next(iter(dims)) if len(dims) == 1 and str(extent) in dims else None


def block_names(axes: tuple[AxisPlan, ...]) -> dict[str, str]:
    """Constexpr names of the block extents: by dim where unique, else by axis."""
    out: dict[str, str] = {}
    blocked = [a for a in axes if a.blocked]
    dims = [_bare(a.extent) for a in blocked]
    for axis, dim in zip(blocked, dims, strict=True):
        out[axis.name] = f"BLOCK_{dim if dim is not None and dims.count(dim) == 1 else axis.name.upper()}"
    if len(set(out.values())) < len(out):
        out = {a: f"BLOCK_{a}" for a in out}
    for axis in blocked:
        if len(axis.dims) == 2:
            out[axis.dims[0]], out[axis.dims[1]] = "STEPS", out[axis.name]
    return out


class _Printer:
    def __init__(self, program: TileProgram, name: str, tiles: Mapping[str, Tile]) -> None:
        self.program, self.name, self.tiles = program, name, tiles
        self.placed = {a for tile in tiles.values() for a in tile}
        self.blocks = block_names(program.axes)
        self.names = identifiers(program.op) | {a.name: escape(a.name) for a in program.axes}
        self.names |= {n: escape(n) for n in program.sizes}
        self.x = Expressions(
            dims={a.name: a.dims for a in program.axes},
            names=self.names,
            axes={v.name: v.axes for v in program.vars},
            data=dict(program.data),
            element=self.element,
        )
        self.raw: dict[str, Storage] = {}
        self.scopes: list[dict[str, str]] = [{}]
        self.masks = 0
        self.lines: list[str] = []
        self.level = 1
        self.sweep: tuple[str, int, int] | None = None
        self.implied: tuple[Value, ...] = ()
        self.edges: dict[str, tuple[Int, str]] = {}
        self.edge = ""
        products = [s for s in _all(program.body) if isinstance(s, Multiply)]
        tiled = [a for a in program.axes if a.role == "grid" and a.blocked]
        self.grouped = bool(products) and len(tiled) == 2
        # with descriptors a program goes from tile to tile, and loads for the next while it stores one
        self.persistent = self.grouped and bool(tiles) and not program.sizes and _single(program)
        self.persistent = self.persistent and side_by_side(program) == 1 and operand_kind(program) == "16"

    def element(self, dtype: DTypeParam) -> str:
        """The element type that a dtype parameter has in this launch."""
        tensor = next(t for t in self.program.tensors if t.dtype == dtype)
        if tensor.name in self.tiles:
            return f"{descriptor(tensor.name)}.dtype"
        return f"{pointer(tensor.name)}.dtype.element_ty"

    # frame -----------------------------------------------------------------
    def kernel(self) -> KernelText:
        self.prologue()
        self.block(self.program.body)
        if self.tiles or self.program.sizes:
            self.drop_unused()
        text = "\n".join(self.lines)
        candidates = [self.base(t.name) for t in self.program.tensors]
        candidates += [self.names[s.name] for s in self.program.op.scalars]
        candidates += [self.names[d] for d in (*self.program.op.dims, *self.program.sizes)]
        candidates += [stride(t, i) for t in self.program.tensors for i in range(len(t.extents))]
        words = _words(text)
        params = tuple(c for c in candidates if c in words)
        constexprs = tuple(
            c for c in dict.fromkeys((*self.blocks.values(), *self.edges, "GROUP", "INDEX")) if c in words
        )
        return KernelText(
            name=self.name,
            params=params,
            constexprs=constexprs,
            lines=tuple(self.lines),
            helpers=tuple(sorted(self.x.used)),
            blocks=self.blocks,
            grouped=self.grouped,
            persistent=self.persistent,
            tiles=self.tiles,
            sizes=tuple(self.names[n] for n in self.program.sizes),
            edges=dict(self.edges),
        )

    def base(self, tensor: str) -> str:
        """The parameter through which a tensor comes."""
        return descriptor(tensor) if tensor in self.tiles else pointer(tensor)

    def drop_unused(self) -> None:
        """Leave out indices and masks that only addresses would have needed."""
        while True:
            code = [line for line in self.lines if not line.lstrip().startswith("#")]
            words = Counter(w for line in code for w in re.findall(r"[A-Za-z_]\w*", line))
            kept = [
                line
                for line in self.lines
                if not ((m := re.match(r"\s*([A-Za-z_]\w*) = ", line)) and words[m[1]] == 1)
            ]
            if len(kept) == len(self.lines):
                return
            self.lines = kept

    def prologue(self) -> None:
        """Coordinates of the program along every grid axis, and whole axes."""
        grid = [a for a in self.program.axes if a.role == "grid"]
        if self.persistent:
            total = " * ".join(wrap(self.count(a), 5) for a in grid)
            self.put(f"for tile in tl.range(tl.program_id(0), {total}, tl.num_programs(0), flatten=True):")
            self.level += 1
        elif grid:
            self.put("pid = tl.program_id(0).to(INDEX)")
        if self.grouped:
            tiled = [a for a in grid if a.blocked]
            rest = [a for a in grid if not a.blocked]
            counts = [self.count(a) for a in tiled]
            at = "tile" if self.persistent else "pid"
            if rest:
                self.put(f"tiles = {' * '.join(wrap(c, 5) for c in counts)}")
                self.outer(rest, f"{at} // tiles")
                self.put(f"pid = {at} % tiles")
                at = "pid"
            ids = [f"pid_{self.names[a.name]}" for a in tiled]
            self.x.used.add("grouped")
            self.put(f"{', '.join(ids)} = grouped({at}, {counts[0][0]}, {counts[1][0]}, GROUP)")
            for axis, pid in zip(tiled, ids, strict=True):
                self.coordinate(axis, (pid, ATOM))
        elif grid:
            self.outer(grid, "pid")
        for axis in self.program.axes:
            if axis.role == "tile":
                block = self.blocks[axis.name]
                self.put(f"{self.names[axis.name]} = tl.arange(0, {block}).to(INDEX)")

    def outer(self, axes: list[AxisPlan], pid: str) -> None:
        """Split a flat program number into coordinates, the last axis fastest."""
        rest = pid
        for k, axis in enumerate(reversed(axes)):
            last = k == len(axes) - 1
            count = self.count(axis)
            if last:
                own: tuple[str, int] = (rest, ATOM if rest == "pid" else 5)
            else:
                own = (f"{rest} % {wrap(count, 6)}", 5)
                rest = f"{rest} // {wrap(count, 6)}"
            self.coordinate(axis, own)

    def coordinate(self, axis: AxisPlan, pid: tuple[str, int]) -> None:
        name = self.names[axis.name]
        if not axis.blocked:
            self.put(f"{name} = {pid[0]}")
            return
        block = self.blocks[axis.name]
        edges = {e: f"{name}_{e}" for e in ("first", "last") if self.mentions(f"{axis.name}.{e}")}
        if axis.name in self.placed:
            edges["first"] = f"{name}_first"
        if edges:
            start = f"{name}_first"
            self.names[f"{axis.name}.first"] = start
            self.put(f"{start} = {wrap(pid, 5 if '%' not in pid[0] and '//' not in pid[0] else 6)} * {block}")
            self.put(f"{name} = {start} + tl.arange(0, {block})")
            if "last" in edges:
                last = f"{name}_last"
                self.names[f"{axis.name}.last"] = last
                end = wrap(self.x.integer(axis.extent, ()), 4)
                self.put(f"{last} = tl.minimum({start} + {block}, {end}) - 1")
            return
        self.put(
            f"{name} = {wrap(pid, 5 if '%' not in pid[0] and '//' not in pid[0] else 6)} * {block} + tl.arange(0, {block})"
        )

    def mentions(self, index: str) -> bool:
        """Whether a loop's bounds use the first or last index of a block."""
        loops = [s for s in _all(self.program.body) if isinstance(s, Loop)]
        bounds = [v for s in loops for v in (s.start, s.stop)]
        bounds += [v for s in loops if s.inner for v in (s.inner.start, s.inner.stop) if v is not None]
        return any(index in v.value.free_indices() for v in bounds if isinstance(v, Extent))

    def count(self, axis: AxisPlan) -> tuple[str, int]:
        """How many programs an axis has."""
        extent = self.x.integer(axis.extent, ())
        if not axis.blocked:
            return extent
        return f"tl.cdiv({extent[0]}, {self.blocks[axis.name]})", ATOM

    # statements --------------------------------------------------------------
    def put(self, text: str) -> None:
        self.lines.append("    " * self.level + text)

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, s: Statement) -> None:
        match s:
            case Remark(text=text):
                self.put(f"# {text}")
            case Fetch():
                self.fetch(s)
            case Let(var=var, value=value):
                text = self.x.value(value, var.axes)[0]
                if isinstance(value, Literal) and isinstance(value.value, float) and not var.axes:
                    text = f"tl.full((), {text}, tl.float32)"
                self.put(f"{var.name} = {text}")
            case Begin(var=var, nowhere=nowhere) if nowhere is not None:
                self.put(
                    f"{var.name} = tl.full({self.shape(var.axes)}, {self.x.exact(nowhere, ())[0]}, INDEX)"
                )
            case Begin(var=var, monoid=monoid):
                self.put(f"{var.name} = {self.identity(monoid, var.axes, var.dtype)}")
            case Collapse():
                self.collapse(s)
            case Combine(var=var, monoid=monoid, value=value, masks=masks):
                right = self.masked(value, masks, var.axes, monoid)
                self.put(f"{var.name} = {self.join(monoid, (var.name, ATOM), right)}")
            case Locate():
                print_locate(self, s)
            case Scan():
                print_scan(self, s)
            case Multiply():
                self.multiply(s)
            case Write():
                self.write(s)
            case Loop():
                self.loop(s)
            case _:
                assert_never(s)

    def shape(self, axes: tuple[str, ...]) -> str:
        """The shape of a block variable."""
        text = "".join(f"{self.blocks[a]}, " for a in axes)
        return f"({text.rstrip(' ') if len(axes) == 1 else text.rstrip(', ')})"

    def neutral(self, monoid: Monoid, dtype: DType) -> str:
        """The identity of a monoid as one number."""
        return identity_of(monoid, dtype)

    def identity(self, monoid: Monoid, axes: tuple[str, ...], dtype: DType) -> str:
        shape = self.shape(axes)
        kind = TL[dtype.name]
        if dtype is F32 and monoid == "sum" and axes:
            return f"tl.zeros({shape}, {kind})"
        return f"tl.full({shape}, {identity_of(monoid, dtype)}, {kind})"

    def join(self, monoid: Monoid, a: tuple[str, int], b: tuple[str, int]) -> str:
        match monoid:
            case "sum":
                return f"{wrap(a, 4)} + {wrap(b, 5)}"
            case "prod":
                return f"{wrap(a, 5)} * {wrap(b, 6)}"
            case "max":
                return self.x.call("maximum", a[0], b[0])[0]
            case "min":
                return self.x.call("minimum", a[0], b[0])[0]
            case "any":
                return f"{wrap(a, 2)} | {wrap(b, 3)}"
            case "all":
                return f"{wrap(a, 2)} & {wrap(b, 3)}"
            case _:
                raise AssertionError(monoid)

    def masked(
        self, value: Value, masks: tuple[Value, ...], axes: tuple[str, ...], monoid: Monoid
    ) -> tuple[str, int]:
        """The value, with the identity where a mask fails."""
        text = self.x.value(value, axes)
        return self.chosen(masks, axes, text, identity_of(monoid, value.dtype))

    def chosen(
        self, masks: tuple[Value, ...], axes: tuple[str, ...], text: tuple[str, int], other: str
    ) -> tuple[str, int]:
        """The text where all masks hold, else the other; masks that a tile's place implies only at the edge."""
        always = tuple(m for m in masks if m not in self.implied)
        if not masks:
            return text
        full = f"tl.where({self.mask(masks, axes)}, {text[0]}, {other})", ATOM
        if len(always) == len(masks):
            return full
        plain = text if not always else (f"tl.where({self.mask(always, axes)}, {text[0]}, {other})", ATOM)
        return f"{wrap(full, 1)} if {self.edge} else {wrap(plain, 1)}", 0

    def collapse(self, s: Collapse) -> None:
        text = self.masked(s.value, s.masks, s.axes, s.monoid)[0]
        if not s.over:
            self.put(f"{s.var.name} = {text}")
            return
        self.put(f"{s.var.name} = {self.reduced(text, s.monoid, s.axes, s.over)}")

    def reduced(self, text: str, monoid: Monoid, axes: tuple[str, ...], over: tuple[str, ...]) -> str:
        """A text of dimensions ``axes``, reduced over some of them."""
        function = REDUCE[monoid]
        if function.startswith("reduce_"):
            self.x.used.add(function)
        if len(over) == len(axes) and function == "tl.sum":
            return f"tl.sum({text})"
        for axis in sorted(over, key=axes.index, reverse=True):
            text = f"{function}({text}, axis={axes.index(axis)})"
        return text

    def multiply(self, s: Multiply) -> None:
        a, b = self.operand(s.a), self.operand(s.b)
        acc = f", {s.var.name}" if s.accumulate else ""
        kind = (
            f'input_precision="{s.precision}"' if s.var.dtype is F32 else f"out_dtype={TL[s.var.dtype.name]}"
        )
        cast = s.a.cast
        if isinstance(cast, DType) and cast.kind == "float" and cast.bits == 8:
            # the unit adds products of f8 in 14 bits: after each step what it has goes to an f32
            kind += f", max_num_imprecise_acc={self.blocks[s.a.axes[1]]}"
        self.put(f"{s.var.name} = tl.dot({a}, {b}{acc}, {kind})")

    def operand(self, o: Operand) -> str:
        text = self.x.value(o.value, o.axes)
        if o.masks:
            zero = "0.0" if o.value.dtype is F32 else "0"
            text = self.chosen(o.masks, o.axes, text, zero)
        value = o.value.x if isinstance(o.value, Cast) and o.value.implicit and not o.masks else o.value
        have: Storage | None = self.raw.get(value.name) if isinstance(value, Read) else None
        if have is not None and value is not o.value:
            text = self.x.value(value, o.axes)
        want: Storage = o.cast if o.cast is not None else F32
        if have == want and not o.masks:
            return text[0]
        if have is None and want == F32:
            return text[0]
        if self.tiles and have in WIDENED and want != F32:
            # descriptors say that the device has the instructions for it
            return self.x.call(WIDENED[have], text[0], self.x.storage(want))[0]
        return f"{wrap(text, ATOM)}.to({self.x.storage(want)})"

    def corner(self, tensor: str, at: tuple[Int, ...]) -> str:
        """Where a tile begins, an index for each axis of its tensor."""
        out = []
        for i, axis in zip(at, self.tiles[tensor], strict=True):
            if axis is None:
                out.append(self.x.integer(i, ())[0])
                continue
            role = self.program.axis(axis).role
            name = self.names[axis]
            out.append({"grid": f"{name}_first", "stream": f"{name}_start", "tile": "0"}[role])
        return f"[{', '.join(out)}]"

    def extents(self, axes: Iterable[str | None]) -> str:
        """Block extents of axes as arguments; 1 for a single index."""
        return ", ".join("1" if a is None else self.blocks[a] for a in axes)

    def fetch_tile(self, s: Fetch) -> None:
        """A load of a whole tile; its single indices are dropped, and its dimensions brought into order."""
        tile = self.tiles[s.tensor]
        text = f"{descriptor(s.tensor)}.load({self.corner(s.tensor, s.at)})"
        kept = tuple(a for a in tile if a is not None)
        if len(kept) < len(tile):
            text += f".reshape({self.extents(kept)})"
        if kept != s.var.axes:
            text += ".T"
        self.raw[s.var.name] = self.tensor(s.tensor).dtype
        self.put(f"{s.var.name} = {text}")

    def fetch(self, s: Fetch) -> None:
        if s.tensor in self.tiles:
            self.fetch_tile(s)
            return
        tensor = self.tensor(s.tensor)
        policy = self.policy(s.at)
        args = [self.located(s.var.name, s.tensor, s.at, s.var.axes, 16 if policy else 48)]
        plain = None if s.other is None else number(s.other)
        # a load gives its default in the storage type: one that would be rounded there is put in afterwards
        general = s.other is not None and (plain is None or not holds(tensor.dtype, plain))
        packed = tensor.dtype == I4
        general = general or (packed and plain not in (None, 0))
        if s.masks:
            args.append(f"mask={self.mask(s.masks, s.var.axes)}")
            if s.other is not None:
                zero = 0.0 if s.var.dtype is F32 else 0
                kept = zero if general or plain is None else plain
                other = literal(Literal(value=kept, dtype=s.var.dtype))[0]
                args.append(f"other={other}")
        if policy:
            args.append(f'eviction_policy="{policy}"')
        text = f"tl.load({', '.join(args)})"
        if packed:
            text = self.x.call("nibble", text, self.x.integer(s.at[-1], s.var.axes)[0])[0]
        if s.raw and not general:
            self.raw[s.var.name] = tensor.dtype
        elif (widened := compute_dtype(tensor.dtype)) != tensor.dtype and not packed:
            text += f".to({TL[widened.name]})"
        if general and s.other is not None:
            text = (
                f"tl.where({self.mask(s.masks, s.var.axes)}, {text}, {self.x.value(s.other, s.var.axes)[0]})"
            )
        self.put(f"{s.var.name} = {text}")

    def write(self, s: Write) -> None:
        value = self.x.value(s.value, s.axes)
        if self.tensor(s.tensor).dtype == F8E5M2:
            # the device's own conversion would make infinities finite
            value = self.x.call("to_f8e5m2_nonsat", value[0])
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
            args.append(f"mask={self.mask(s.masks, s.axes)}")
        if self.policy(s.at):
            args.append('eviction_policy="evict_first"')
        self.put(f"tl.store({', '.join(args)})")

    def policy(self, at: tuple[Int, ...]) -> str | None:
        """What L2 should do with an access that streams through one program alone.

        A stream that is swept again should stay until its last sweep; after that it is no use to anyone.
        """
        used = {n for i in at for n in i.free_indices()}
        grid = {a.name for a in self.program.axes if a.role == "grid"}
        if self.sweep is None or self.grouped or not grid or self.sweep[0] not in used or not grid <= used:
            return None
        if any(_taps(i, self.sweep[0], grid) for i in at):
            return None  # other programs and other steps read it too
        return "evict_first" if self.sweep[1] == self.sweep[2] else "evict_last"

    def located(
        self, label: str, name: str, at: tuple[Int, ...], axes: tuple[str, ...], short: int = 48
    ) -> str:
        """The address of an access: in place if short, else under a name of its own."""
        text = self.address(name, at, axes)
        if not set(axes) <= set().union(*(self.x.int_axes(i) for i in at)):
            # conditions depend on more dimensions than the address does
            shape = ", ".join(self.blocks[a] for a in axes)
            text = f"tl.broadcast_to({text}, ({shape}{',' if len(axes) == 1 else ''}))"
        if len(text) < short:
            return text
        name = f"{label.replace('.', '_')}_at"
        while name in self.x.axes or name in self.names.values():
            name += "_"
        self.put(f"{name} = {text}")
        return name

    def address(self, name: str, at: tuple[Int, ...], axes: tuple[str, ...]) -> str:
        tensor, text = self.tensor(name), pointer(name)
        for position, i in enumerate(at):
            if i.constant == 0:
                continue
            place = self.x.integer(i, axes)
            if tensor.dtype == I4 and position == len(at) - 1:
                place = f"({wrap(place, 5)} // 2)", ATOM
            text += f" + {wrap(place, 5)} * {stride(tensor, position)}"
        return text

    def tensor(self, name: str) -> Tensor:
        return next(t for t in self.program.tensors if t.name == name)

    def loop(self, s: Loop) -> None:
        axis = self.names[s.axis]
        start, stop = (
            (self.x.integer(v.value, ()) if isinstance(v, Extent) else self.x.value(v, ()))[0]
            for v in (s.start, s.stop)
        )
        if s.sweeps > 1:
            self.put(f"# sweep {s.sweep} of {s.sweeps} over {s.axis}")
        dims = self.x.dims[s.axis]
        if s.segments is not None:
            start, stop = self.segments(s, s.segments, start, stop)
        if len(dims) == 2:
            steps, lanes = (self.blocks[d] for d in dims)
            assert not s.reverse
            self.put(f"for {axis}_start in range({start}, {stop}, {steps} * {lanes}):")
            self.level += 1
            self.put(f"{axis} = {axis}_start + tl.arange(0, {steps})[:, None] * {lanes}")
            self.put(f"{axis} = ({axis} + tl.arange(0, {lanes})[None, :]).to(INDEX)")
        elif dims:
            block = self.blocks[s.axis]
            if s.inner is not None:
                start, stop = self.parts(s, s.inner, start, stop)
            self.put(f"for {axis}_start in {loop_range(s, start, stop, block)}:")
            self.level += 1
            self.put(f"{axis} = ({axis}_start + tl.arange(0, {block})).to(INDEX)")
        else:
            self.put(f"for {axis} in {loop_range(s, start, stop, None)}:")
            self.level += 1
        self.scopes.append({})
        outer, self.sweep = self.sweep, (s.axis, s.sweep, s.sweeps)
        self.block(s.body)
        self.sweep = outer
        self.scopes.pop()
        self.level -= 1
        if s.inner is not None:
            self.level -= 1
            self.implied, self.edge = (), ""

    def parts(self, s: Loop, inner: Inner, start: str, stop: str) -> tuple[str, str]:
        """Open a loop over the parts of a stream, unrolled when Triton compiles: tiles inside, tiles at an edge."""
        axis, block = self.names[s.axis], self.blocks[s.axis]
        assert isinstance(inner.stop, Extent)
        high = self.x.integer(inner.stop.value, ())
        part, first, last = f"{axis}_part", f"{axis}_first", f"{axis}_inner"
        self.implied = inner.implied
        if inner.start is None:
            self.edge = f"{part} == 1"
            whole = f"tl.maximum({high[0] if start == '0' else f'{wrap(high, 4)} - ({start})'}, 0)"
            if (
                all(c > 0 for _, c in inner.stop.value.terms)
                and start == "0"
                and not _picks(inner.stop.value)
            ):
                whole = wrap(high, 5)
            text = f"{whole} // {block} * {block}"
            self.put("# tiles inside, then the masked one" + ("" if start == "0" else "s at the edge"))
            self.put(f"{last} = {text if start == '0' else f'{start} + {text}'}")
            self.put(f"for {part} in tl.static_range({self.phases(s, inner)}):")
            self.level += 1
            return f"{last} if {self.edge} else {start}", f"{stop} if {self.edge} else {last}"
        assert isinstance(inner.start, Extent)
        low = self.x.integer(inner.start.value, ())
        self.edge = f"{part} != 1"
        self.put("# masked tiles at the edge, tiles inside, masked tiles at the other edge")
        begin = low[0] if start == "0" else f"{wrap(low, 4)} - ({start})"
        shift = "" if start == "0" else f"{start} + "
        self.put(f"{first} = {shift}tl.cdiv(tl.maximum({begin}, 0), {block}) * {block}")
        end = high[0] if start == "0" else f"{wrap(high, 4)} - ({start})"
        self.put(f"{last} = tl.maximum({shift}tl.maximum({end}, 0) // {block} * {block}, {first})")
        self.put(f"for {part} in tl.static_range(3):")
        self.level += 1
        begin = f"{start} if {part} == 0 else ({first} if {part} == 1 else {last})"
        return begin, f"tl.minimum({first}, {stop}) if {part} == 0 else ({last} if {part} == 1 else {stop})"

    def phases(self, s: Loop, inner: Inner) -> str:
        """How often the body of a loop with an edge is written: once where the host knows that there is none."""
        assert isinstance(inner.stop, Extent)
        bounds = [v.value for v in (s.start, s.stop, inner.stop) if isinstance(v, Extent)]
        known = all(not v.free_indices() and not v.tensors() for v in bounds)
        if not known or inner.stop.value != bounds[1] or bounds[0] != Int.of(0):
            return "2"
        edge = self.blocks[s.axis].replace("BLOCK", "EDGE", 1)
        self.edges[edge] = (inner.stop.value, self.blocks[s.axis])
        return f"1 + {edge}"

    def segments(self, s: Loop, tensor: str, first: str, last: str) -> tuple[str, str]:
        """Look up which segments hold the places ``first`` to ``last``."""
        axis, count = self.names[s.axis], self.x.integer(self.program.axis(s.axis).extent, ())[0]
        self.x.used.add("segments")
        names = f"{axis}_first", f"{axis}_end"
        offsets = f"{pointer(tensor)}, {stride(self.tensor(tensor), 0)}"
        self.put(f"{', '.join(names)} = segments({offsets}, {count}, {first}, {last})")
        return names

    def mask(self, masks: tuple[Value, ...], axes: tuple[str, ...]) -> str:
        """A conjunction; one that is more than a single comparison gets a name in its scope."""
        texts = list(dict.fromkeys(wrap(self.x.value(m, axes), 0 if len(masks) == 1 else 4) for m in masks))
        text = " & ".join(texts)
        if len(texts) == 1 and len(text) < 24:
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


def identity_of(monoid: Monoid, dtype: DType) -> str:
    """The identity of a monoid in a compute type."""
    match monoid:
        case "any":
            return "False"
        case "all":
            return "True"
        case "sum":
            return "0.0" if dtype is F32 else "0"
        case "prod":
            return "1.0" if dtype is F32 else "1"
        case "max":
            return 'float("-inf")' if dtype is F32 else str(-(2 ** (dtype.bits - 1)))
        case "min":
            return 'float("inf")' if dtype is F32 else str(2 ** (dtype.bits - 1) - 1)
        case _:
            raise AssertionError(monoid)


def _taps(at: Int, stream: str, grid: set[str]) -> bool:
    """Whether a step of a stream is added to a place in parallel: ``t + r``."""
    beside = at.free_indices() & grid
    split = at.affine([stream, *beside]) if stream in at.free_indices() and beside else None
    return split is not None and all(k.constant is not None for k in split[0].values())


def _single(program: TileProgram) -> bool:
    """Whether nothing is left to load once tiles of two grid axes stream."""
    return sum(isinstance(s, Loop) for s in program.body) == 1


def _picks(value: Int) -> bool:
    return any(isinstance(a, Least | Greatest) for a in value.atoms())


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))


def _all(body: tuple[Statement, ...]) -> list[Statement]:
    out: list[Statement] = []
    for s in body:
        out.append(s)
        if isinstance(s, Loop):
            out += _all(s.body)
    return out


__all__ = ["KernelText", "block_names", "descriptor", "identifiers", "pointer", "print_kernel", "stride"]
