"""A tile program as the text of a Triton kernel.

Pointers and masks are spelled out here; everything that decides *what* happens was decided
before. The lines come out indented and in the formatter's style; the template adds the frame.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container
from dataclasses import replace
from itertools import permutations
from typing import assert_never

from opspec.emit.accesses import segment_places
from opspec.emit.describe import describe, exact_axes
from opspec.emit.expressions import ATOM, TL, is_count, wrap
from opspec.emit.loops import Loops
from opspec.emit.names import shorten
from opspec.emit.narrow import narrow, print_narrow
from opspec.emit.parts import WIDENED
from opspec.emit.running import across_memory, print_counted, print_locate, print_scan
from opspec.emit.signature import KernelText, Overlap, stride
from opspec.emit.thinned import thin_masks
from opspec.ir.dtypes import F32, I4, DType, Storage
from opspec.ir.integers import Int
from opspec.ir.values import Binary, Cast, Extent, Literal, Monoid, Read, Value, free_indices, walk
from opspec.schedule.access import plain
from opspec.schedule.tile import (
    AxisPlan,
    Begin,
    Collapse,
    Combine,
    Fetch,
    Let,
    Locate,
    Loop,
    Multiply,
    Operand,
    Remark,
    Scan,
    Statement,
    Take,
    TileProgram,
    Unroll,
    Write,
    assigned,
    integers_of,
    statements,
    values_of,
)
from opspec.schedule.tile import inside as end
from opspec.schedule.walked import around_walk

REDUCE: dict[Monoid, str] = {
    "sum": "tl.sum", "prod": "reduce_prod", "max": "reduce_max", "min": "reduce_min", "any": "reduce_any", "all": "reduce_all",
}  # fmt: skip
PARTS = 2  # sizes of a kernel that walks a part of a stream: how many there are, and their span


def print_kernel(
    program: TileProgram,
    base: str,
    keep: Container[str] = (),
    *,
    backwards: bool = False,
    overlap: Overlap = Overlap(),  # noqa: B008 - frozen
    full: bool = False,
    large: bool = False,
) -> KernelText:
    """Print one variant as a kernel called ``base``, and where operands can be moved as whole tiles one that takes
    descriptors of them beside it; ``keep``: tensors that it takes by pointer all the same; ``backwards``: its
    programs go from the last to the first; ``overlap``: with the launches before and after it;
    ``full``: whether it is told of tiles that are full, which need no masks; ``large``: whether it goes through much in large blocks."""
    halves = narrow(program)
    if large:
        program = thin_masks(program)
    text = Printer(
        program,
        shorten(base),
        {},
        halves,
        backwards=backwards,
        overlap=overlap,
        full=full,
        large=large,
    ).kernel()
    tiles = {t: tile for t, tile in describe(program, halves.packed).items() if t not in keep}
    if not tiles:
        return text
    described = shorten(f"{base}_described")
    own = Printer(program, described, tiles, halves, backwards=backwards, overlap=overlap).kernel()
    # a launch gives both the same blocks, though a descriptor may know one that nothing else here names
    told = tuple(dict.fromkeys((*(c for c in text.constexprs if c in text.blocks.values()), *own.constexprs)))
    return replace(text, described=replace(own, constexprs=told))


def _needs_values(load: Fetch) -> bool:
    """Whether an address or a mask is made from what a kernel has read."""
    values = any(isinstance(v, Read) for x in values_of(load) for v in walk(x))
    return values or any(i.tensors() for i in integers_of(load))


class Printer(Loops):
    """A kernel, statement by statement."""

    # frame -----------------------------------------------------------------
    def kernel(self) -> KernelText:
        """The whole kernel."""
        early, rest = self.early()
        self.prologue(waits=not early)
        if self.walked is None:
            self.straight(early, rest)
        else:
            self.around(self.walked)
        if self.tiles or self.program.sizes:
            self.drop_unused()
        text = "\n".join(self.lines)
        words = words_of(text)
        params = tuple(c for c in self.candidates() if c in words)
        constexprs = tuple(
            c
            for c in dict.fromkeys(
                (
                    *self.blocks.values(),
                    *self.edges,
                    *self.counts,
                    "GROUP",
                    "PARTS",
                    "STEPS",
                    "SEGMENTS",
                    "INDEX",
                    "FULL",
                    "ODD",
                    "OVERLAP",
                )
            )
            if c in words
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
            exact={self.blocks[a]: self.program.axis(a).extent for a in exact_axes(self.program, self.tiles)},
            sizes=tuple(self.names[n] for n in self.program.sizes),
            edges=dict(self.edges),
            counts={c: extent for c, extent in self.counts.items() if c in constexprs},
            walked=None if self.walked is None else self.walked.name,
            segments=None if self.fitted is None else self._segments(self.fitted),
        )

    def _segments(self, s: Loop) -> tuple[str, Int]:
        """The axis of places in segments that tiles fit, and how many segments there are."""
        places = segment_places(self.program, s)
        assert places is not None
        return places, self.program.axis(s.axis).extent

    def around(self, axis: AxisPlan) -> None:
        """What is the same for every index of an axis, and a loop over those of this program."""
        before, inside = around_walk(self.program, axis.name)
        self.block(before)
        name, extent = self.names[axis.name], self.count(axis)[0]
        self.put(f"for {name} in tl.range(pid % walks, {extent}, walks, flatten=True):")
        self.level += 1
        masks = {m for s in inside if isinstance(s, Collapse) for m in s.masks}
        whole = [a for a in self.program.axes if a.role == "tile" and end(a.name, a.extent) in masks]
        if len(whole) == 1 and whole[0].blocked:
            # registers of a tile that ends where its axis does need no mask in every step
            (axis,) = whole
            self.edge = self.blocks[axis.name].replace("BLOCK", "EDGE", 1)
            self.edges[self.edge] = (axis.extent, self.blocks[axis.name])
            self.implied = (end(axis.name, axis.extent),)
        self.block(inside)
        self.implied, self.edge = (), ""
        self.level -= 1

    def candidates(self) -> list[str]:
        """What a kernel may take from its launch, in the order in which it does."""
        found = [self.base(t.name) for t in self.program.tensors]
        found += [self.names[s.name] for s in self.program.op.scalars]
        found += [self.names[d] for d in (*self.program.op.dims, *self.program.sizes)]
        found += [stride(t, i) for t in self.program.tensors for i in range(len(t.extents))]
        return found

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

    def straight(self, early: tuple[Statement, ...], rest: tuple[Statement, ...]) -> None:
        """Statements in order, those that need not wait for the launch before in front of all others."""
        if early:
            self.block(early)
            self.wait()
        if self.large:
            self.folded_twice(rest)
        else:
            self.block(rest)

    def folded_twice(self, body: tuple[Statement, ...]) -> None:
        """Statements of which several fold the same tile: each widens it anew, so that it is held in 16 bits."""
        folds = sum(isinstance(s, Collapse) for s in body)
        self.kept = {
            s.var.name: s.var.name for s in body if folds > 1 and isinstance(s, Fetch) and len(s.var.axes) > 1
        }
        lets: list[Statement] = []
        known, folded, stale = {*self.kept}, False, False
        for s in body:
            read = {v.name for x in values_of(s) for v in walk(x) if isinstance(v, Read)}
            if stale and read & known:
                for name, raw in self.stored.items():
                    self.put(f"{name} = {self.x.call('widened', raw)[0]}")
                self.block(tuple(lets))
                stale = False
            self.statement(s)
            if isinstance(s, Collapse):
                folded = stale = True
            elif isinstance(s, Let) and read & known and not folded:
                lets.append(s)
                known.add(s.var.name)

    def early(self) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
        """The loads that need not wait for the launch before, and all other statements."""
        body = self.program.body
        if not self.overlap.early or self.persistent or self.walked is not None or self.tiles:
            return (), body
        early = tuple(
            s
            for s in body
            if isinstance(s, Fetch) and s.tensor in self.overlap.early and not _needs_values(s)
        )
        return early, tuple(s for s in body if s not in early)

    def wait(self) -> None:
        """Wait for the launch before."""
        self.put("# on its way while the launch before it ends, and here it waits for what that wrote")
        self.x.used.add("wait_for_earlier")
        self.put("wait_for_earlier(OVERLAP)")

    def prologue(self, *, waits: bool = True) -> None:
        """Coordinates of the program along every grid axis, and whole axes; ``waits``: before anything else."""
        if self.overlap.waits and waits:
            self.wait()
        if self.overlap.lets:
            self.x.used.add("let_next_come")
            self.put("let_next_come(OVERLAP)")
        grid = [a for a in self.program.axes if a.role == "grid"]
        places = None
        if self.fitted is not None and self.fitted.segments is not None:
            places = self.fit(self.fitted, self.fitted.segments)
        if self.persistent:
            total = " * ".join(wrap(self.count(a), 5) for a in grid)
            self.tiles_loop(total)
            self.level += 1
        elif grid and self.backwards:
            self.put("# the last first: L2 still holds what the launch before wrote last")
            self.put("pid = (tl.num_programs(0) - 1 - tl.program_id(0)).to(INDEX)")
        elif grid:
            self.put("pid = tl.program_id(0).to(INDEX)")
        tiled = self.together(grid)
        if tiled:
            rest = [a for a in grid if a not in tiled]
            counts = [self.count(a) for a in tiled]
            at = "tile" if self.persistent else "pid"
            if rest:
                self.put(f"tiles = {' * '.join(wrap(c, 5) for c in counts)}")
                self.outer(rest, f"{at} // tiles")
                self.put(f"pid = {at} % tiles")
                at = "pid"
            ids = [f"pid_{self.names[a.name]}" if a.blocked else self.names[a.name] for a in tiled]
            self.x.used.add("grouped")
            self.put(f"{', '.join(ids)} = grouped({at}, {counts[0][0]}, {counts[1][0]}, GROUP)")
            for axis, pid in zip(tiled, ids, strict=True):
                if axis.name == places and self.fitted is not None and self.fitted.segments is not None:
                    self.take(self.fitted, self.fitted.segments, places, pid)
                elif axis.blocked:
                    self.coordinate(axis, (pid, ATOM))
        elif self.walked is not None:
            rest = [a for a in grid if a is not self.walked]
            rows = " * ".join(wrap(self.count(a), 5) for a in rest)
            self.put("# so many programs share the same rows, and each walks over what these meet")
            self.put(
                f"walks = tl.num_programs(0) // ({rows})"
                if "*" in rows
                else f"walks = tl.num_programs(0) // {rows}"
            )
            self.outer(rest, "pid // walks")
        elif grid:
            self.outer(grid, "pid")
        for axis in self.program.axes:
            if axis.role == "tile":
                self.put(f"{self.names[axis.name]} = {self.places(axis.name)}.to(INDEX)")

    def tiles_loop(self, total: str) -> None:
        """The head of the loop in which a program goes from tile to tile."""
        self.put(f"for tile in tl.range(tl.program_id(0), {total}, tl.num_programs(0), flatten=True):")

    def together(self, grid: list[AxisPlan]) -> list[AxisPlan]:
        """The two axes whose programs are walked in groups: tiles of a product, or its rows and the parts of its columns."""
        if self.grouped:
            return [a for a in grid if a.blocked]
        if self.nested is None or len(self.program.sizes) != PARTS:
            return []
        return [*(a for a in grid if a.name == self.nested.rows), grid[0]]

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
        """Where a program lies along an axis, from its number along it."""
        name = self.names[axis.name]
        if not axis.blocked:
            self.put(f"{name} = {pid[0]}")
            return
        first = f"{numbered(pid)} * {self.blocks[axis.name]}"
        ends = any(self.mentions(f"{axis.name}.{e}") for e in ("first", "last"))
        if ends or axis.name in self.placed or axis.name in self.shared or self.large:
            self.block_ends(axis, first, f"{name}_first + {self.places(axis.name)}")
            return
        text = f"{first} + {self.places(axis.name)}"
        if axis.rows:
            name = self.names[f"{axis.name}.place"]
            text = f"({text}) * {self.blocks[f'{axis.name}.step']}"
        if axis.name in across_memory(self.program).values():
            text = f"tl.max_contiguous({text}, 2)"  # wider loads would leave lanes to other steps
        self.put(f"{name} = {text}")

    def block_ends(self, axis: AxisPlan, first: str, places: str = "") -> None:
        """The first place of a program's block, its ``places`` if they are given, and the last one where a loop ends by it."""
        name = self.names[axis.name]
        self.names[f"{axis.name}.first"] = f"{name}_first"
        self.put(f"{name}_first = {first}")
        if places:
            self.put(f"{name} = {places}")
        if self.mentions(f"{axis.name}.last"):
            self.names[f"{axis.name}.last"] = f"{name}_last"
            end = wrap(self.x.integer(axis.extent, ()), 4)
            self.put(f"{name}_last = tl.minimum({name}_first + {self.blocks[axis.name]}, {end}) - 1")

    def mentions(self, index: str) -> bool:
        """Whether a loop's bounds use the first or last index of a block."""
        loops = [s for s in statements(self.program.body) if isinstance(s, Loop)]
        bounds = [v for s in loops for v in (s.start, s.stop)]
        bounds += [v for s in loops if s.inner for v in (s.inner.start, s.inner.stop) if v is not None]
        return any(index in v.value.free_indices() for v in bounds if isinstance(v, Extent))

    def count(self, axis: AxisPlan) -> tuple[str, int]:
        """How many programs an axis has."""
        if f"{axis.name}.tiles" in self.names:
            return self.names[f"{axis.name}.tiles"], ATOM
        extent = self.x.integer(axis.extent, ())
        if not axis.blocked:
            return extent
        step = f" * {self.blocks[f'{axis.name}.step']}" if axis.rows else ""
        return f"tl.cdiv({extent[0]}, {self.blocks[axis.name]}{step})", ATOM

    # statements --------------------------------------------------------------

    def block(self, body: tuple[Statement, ...]) -> None:
        """Statements in order."""
        for k, statement in enumerate(body):
            if self.walks_rows(statement):
                self.walk_rows(body[k:])
                return
            self.statement(statement)

    def statement(self, s: Statement) -> None:
        """One statement."""
        match s:
            case Remark(text=text):
                self.put(f"# {text}")
            case Fetch():
                self.fetch(s)
            case Let(var=var, value=value) if self.narrowed(var.name, value):
                half = self.narrow.values[var.name]
                self.x.stored[var.name] = half
                value = self.before(var.name, value)
                self.put(f"{var.name} = {print_narrow(self.x, value, var.axes, half)[0]}")
            case Let(var=var, value=value):
                if isinstance(value, Cast) and (to := self.held(value)) is not None:
                    self.x.stored[var.name] = to
                    self.put(f"{var.name} = {self.x.rounded(value, var.axes)[0]}")
                    return
                text = self.x.widened(value, var.axes)
                if isinstance(value, Literal) and isinstance(value.value, float) and not var.axes:
                    text = f"tl.full((), {text}, tl.float32)"
                self.put(f"{var.name} = {text}")
            case Begin(var=var, nowhere=nowhere) if nowhere is not None:
                self.put(
                    f"{var.name} = tl.full({self.shape(var.axes)}, {self.x.exact(nowhere, ())[0]}, INDEX)"
                )
            case Begin(var=var) if var.name == self.parted:
                self.put(
                    f"{var.name} = {self.x.call('zeros_parts', *self.shape(var.axes)[1:-1].split(', '), 'PARTS')[0]}"
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
                self.walk(s)
                if self.parted is not None:
                    self.put(f"{self.parted} = {self.x.call('sum_parts', self.parted, 'PARTS')[0]}")
            case Unroll():
                self.unroll(s)
            case Take(var=var, kept=kept, at=at, stored=stored):
                taken = f"{kept}[{self.x.integer(at, ())[0]}]"
                stored = self.whole_rows.get(kept, stored)
                if stored is not None:
                    taken += self.widening(self.tensor(stored).dtype)
                self.put(f"{var.name} = {self.x.call('widened', taken)[0] if kept in self.stored else taken}")
            case _:
                assert_never(s)

    def narrowed(self, name: str, value: Value) -> bool:
        """Whether a variable is computed in 16 bits."""
        return name in self.narrow.values and self.come_narrow(value)

    def before(self, name: str, value: Value) -> Value:
        """What of a product in 16 bits enters the matrix unit: all but a factor that a tile may have once a row."""
        if name not in self.narrow.factors:
            return value
        own, factor = self.apart(value)
        if factor is not None:
            self.factors[name] = factor
        return own

    def apart(self, value: Value) -> tuple[Value, Value | None]:
        """A product in 16 bits without a factor that a tile may have once a row, and that factor."""
        if not isinstance(value, Binary) or value.op != "mul":
            return value, None
        for own, factor in permutations((value.a, value.b)):
            fetch = self.fetched.get(factor.name) if isinstance(factor, Read) else None
            if fetch is not None and self.few(fetch.at, fetch.var.axes):
                return own, factor
        return value, None

    def behind(self, s: Multiply) -> tuple[Operand, Value | None]:
        """The rows of a block product, and what of them can go behind it."""
        value, want = plain(s.a.value), s.a.cast
        if not s.accumulate or want is None:
            return s.a, None
        if isinstance(value, Read):
            return s.a, self.factors.get(value.name)
        if not self.narrow.inline(value, want) or not self.come_narrow(value):
            return s.a, None
        own, factor = self.apart(value)
        return replace(s.a, value=own), factor

    def come_narrow(self, value: Value) -> bool:
        """Whether what a value reads from packed tensors has come in 16 bits."""
        reads = {v.name for v in walk(value) if isinstance(v, Read)}
        return reads & set(self.narrow.packed) <= set(self.x.stored)

    def walk(self, s: Loop) -> None:
        """A loop; where what lies outside a domain may have come in as NaN, once more and with a look at each tile.

        A matrix unit multiplies it by 0, which only infinity and NaN show, and then in what the loop has summed.
        """
        summed = {
            x.var.name for x in s.body if isinstance(x, Multiply) and x.accumulate and x.a.apart + x.b.apart
        }
        begun = {x.var.name: x for x in self.program.body if isinstance(x, Begin)}
        carried = {c.var.name for c in s.carried} | summed
        if not summed or s not in self.program.body or not carried <= set(begun) or s.segments is not None:
            self.loop(s)
            return
        self.checked = frozenset(summed)
        self.loop(s)
        self.checked = frozenset()
        self.put("# what is outside the domain was multiplied by 0: if that made NaN, once more without it")
        self.put(f"if {' | '.join(self.x.call('any_nan', name)[0] for name in sorted(summed))}:")
        self.level += 1
        self.scopes.append({})
        for name, begin in begun.items():
            if name in carried:
                self.statement(begin)
        self.loop(replace(s, inner=None))
        self.scopes.pop()
        self.level -= 1

    def held(self, value: Cast) -> Storage | None:
        """The storage type in which a cast is left, so that a store of it need not round again."""
        plain = value.implicit or value.to in (value.dtype, F32, I4)
        return None if plain or not any(isinstance(v, Read) for v in walk(value)) else value.to

    def shape(self, axes: tuple[str, ...]) -> str:
        """The shape of a block variable."""
        text = "".join(f"{self.extent_of(a)}, " for a in axes)
        return f"({text.rstrip(' ') if len(axes) == 1 else text.rstrip(', ')})"

    def neutral(self, monoid: Monoid, dtype: DType) -> str:
        """The identity of a monoid as one number."""
        return identity_of(monoid, dtype)

    def identity(self, monoid: Monoid, axes: tuple[str, ...], dtype: DType) -> str:
        """A block of the identity of a monoid."""
        shape = self.shape(axes)
        kind = TL[dtype.name]
        if dtype is F32 and monoid == "sum" and axes:
            return f"tl.zeros({shape}, {kind})"
        return f"tl.full({shape}, {identity_of(monoid, dtype)}, {kind})"

    def join(self, monoid: Monoid, a: tuple[str, int], b: tuple[str, int]) -> str:
        """Two values combined by a monoid."""
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
        text = self.x.entering(value, monoid, axes)
        return self.chosen(masks, axes, text, identity_of(monoid, value.dtype))

    def chosen(
        self, masks: tuple[Value, ...], axes: tuple[str, ...], text: tuple[str, int], other: str
    ) -> tuple[str, int]:
        """The text where all masks hold, else the other; masks that a tile's place implies only at the edge."""
        always = self.outside(masks)
        if not masks:
            return text
        full = text
        if len(always) == len(masks) or self.part is not False:
            full = f"tl.where({self.mask(masks, axes)}, {text[0]}, {other})", ATOM
        if len(always) == len(masks) or self.part is True:
            return full
        plain = text if not always else (f"tl.where({self.mask(always, axes)}, {text[0]}, {other})", ATOM)
        if self.part is False:
            return plain
        return f"{wrap(full, 1)} if {self.edge} else {wrap(plain, 1)}", 0

    def collapse(self, s: Collapse) -> None:
        """A value combined over block dimensions."""
        if s.counted is not None:
            print_counted(self, s, s.counted)
            return
        text = self.masked(s.value, s.masks, s.axes, s.monoid)[0]
        if not s.over:
            self.put(f"{s.var.name} = {text}")
            return
        text = self.reduced(text, s.monoid, s.axes, s.over)
        self.put(f"{s.var.name} = {f'tl.cast({text}, tl.int64)' if is_count(s.value, s.monoid) else text}")

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
        """A block product; where its domain cuts one operand and not the other, so that what this has doesn't count."""
        apart = (*s.a.apart, *s.b.apart)
        if not apart or self.part is not None or s.var.name in self.checked:
            self.dot(s)
        elif any(m not in self.implied for m in apart):
            self.dot_inside(s)
        else:
            self.branch(f"if {self.edge}:", lambda: self.dot_inside(s), part=True)
            self.branch("else:", lambda: self.dot(s), part=False)

    def branch(self, head: str, body: Callable[[], None], *, part: bool) -> None:
        """Lines of a branch that Triton takes when it compiles."""
        self.put(head)
        self.level += 1
        self.scopes.append({})
        self.part = part
        body()
        self.part = None
        self.scopes.pop()
        self.level -= 1

    def dot_inside(self, s: Multiply) -> None:
        """A block product over a domain that cuts its operands apart."""
        inside = [self.mask(o.masks, o.axes) if o.apart else "None" for o in (s.a, s.b)]
        acc = s.var.name if s.accumulate else self.identity("sum", s.var.axes, s.var.dtype)
        args = [
            self.rows_operand(s.a),
            self.operand(s.b, "widen"),
            *inside,
            acc,
            f'"{s.precision}"',
        ]
        if _is_f8(s.a):
            args.append(self.blocks[s.a.axes[1]])
        self.put(f"{s.var.name} = {self.x.call('dot_inside', *args)[0]}")

    def dot(self, s: Multiply) -> None:
        """A block product on the matrix unit."""
        units = self.stored_units(s.b)
        if units is not None and not s.b.masks:
            into = self.x.storage(s.b.cast if s.b.cast is not None else F32)
            args = [self.rows_operand(s.a), units[2], TL[units[1].name], into]
            args += [str(s.b.axes.index(units[0])), *([s.var.name] if s.accumulate else [])]
            self.put(f"{s.var.name} = {self.x.call('dot_units', *args)[0]}")
            return
        rows, factor = self.behind(s)
        a, b = self.rows_operand(rows), self.operand(s.b, "widen")
        if factor is not None:
            args = [a, self.x.value(factor, s.a.axes)[0], b, s.var.name, self.in_parts]
            self.put(f"{s.var.name} = {self.x.call('dot_behind', *args)[0]}")
            return
        if s.var.name == self.parted:
            self.put(f"{s.var.name} = {self.x.call('dot_parts', a, b, s.var.name, self.in_parts)[0]}")
            return
        acc = f", {s.var.name}" if s.accumulate else ""
        kind = (
            f'input_precision="{s.precision}"' if s.var.dtype is F32 else f"out_dtype={TL[s.var.dtype.name]}"
        )
        if _is_f8(s.a):
            # the unit adds products of f8 in 14 bits: after each step what it has goes to an f32
            kind += f", max_num_imprecise_acc={self.blocks[s.a.axes[1]]}"
        self.put(f"{s.var.name} = tl.dot({a}, {b}{acc}, {kind})")

    def rows_operand(self, o: Operand) -> str:
        """A left operand; one that is computed and stays the same in a loop with other products, for each step anew.

        A matrix unit takes such an operand from registers, and the assembler of CUDA 12.8 gives these registers
        to the other products too: from the second step on the first product is wrong. One that is only loaded
        is taken from shared memory.
        """
        text, step = self.operand(o, "widen_parts" if self.parted else "widen_pairs"), self.step
        if step is None or not self.x.dims[step.axis] or text in self.raw or step.axis in o.axes:
            return text
        body = list(statements(step.body))
        changing = {v.name for x in body for v in assigned(x)}
        read = {v.name for v in walk(o.value) if isinstance(v, Read)}
        if sum(isinstance(x, Multiply) for x in body) < 2 or changing & read:
            return text
        if step.axis in free_indices(o.value):
            return text
        return self.x.call("renewed", text, f"{self.names[step.axis]}_start")[0]

    def narrow_operand(self, o: Operand, want: Storage) -> tuple[str, int] | None:
        """An operand that is held in the 16 bits in which it enters a product."""
        value = plain(o.value)
        if isinstance(value, Read):
            known = value.name in self.narrow.packed or value.name in self.narrow.values
            return self.x.held(value, o.axes, want) if known else None
        if not self.narrow.inline(value, want) or not self.come_narrow(value):
            return None
        return print_narrow(self.x, value, o.axes, want)

    def stored_units(self, o: Operand) -> tuple[str, DType, str] | None:
        """Along which dimension, of which bytes and under which name an operand was loaded in units of two."""
        loaded = plain(o.value)
        if not isinstance(loaded, Read) or loaded.name not in self.units:
            return None
        return (*self.units[loaded.name], loaded.name)

    def operand(self, o: Operand, widen: str) -> str:
        """An operand in the type that it enters a product in; bytes through ``widen`` where descriptors say
        that the device has the instructions for it."""
        units = self.stored_units(o)
        if units is not None:
            along, stored, name = units
            into = self.x.storage(o.cast if o.cast is not None else F32)
            wide = self.x.call("planes", name, TL[stored.name], into, str(o.axes.index(along)))
            return self.chosen(o.masks, o.axes, wide, "0.0")[0]
        text = self.x.value(o.value, o.axes)
        if o.masks:
            zero = "0.0" if o.value.dtype is F32 else "0"
            text = self.chosen(o.masks, o.axes, text, zero)
        value = o.value if o.masks else plain(o.value)
        have: Storage | None = self.raw.get(value.name) if isinstance(value, Read) else None
        if have is not None and value is not o.value:
            text = self.x.value(value, o.axes)
        want: Storage = o.cast if o.cast is not None else F32
        if (own := self.narrow_operand(o, want)) is not None:
            return self.chosen(o.masks, o.axes, own, "0.0")[0]
        if not o.masks and (same := self.x.held(o.value, o.axes, want)) is not None:
            return same[0]
        if have == want and not o.masks:
            return text[0]
        if have is None and want == F32:
            return text[0]
        if self.tiles and have in WIDENED and want != F32:
            parts = [self.in_parts] if widen == "widen_parts" else []
            return self.x.call(widen, text[0], self.x.storage(want), *parts)[0]
        return f"{wrap(text, ATOM)}.to({self.x.storage(want)})"


def _is_f8(o: Operand) -> bool:
    """Whether an operand enters the matrix unit in eight bits."""
    return isinstance(o.cast, DType) and o.cast.kind == "float" and o.cast.bits == 8


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


def numbered(pid: tuple[str, int]) -> str:
    """A program's number along an axis, as a factor."""
    return wrap(pid, 5 if "%" not in pid[0] and "//" not in pid[0] else 6)


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))
