"""A block product whose warps have roles, as text of Gluon.

One warp brings the tiles of every step through descriptors, as many steps ahead as shared memory has slots; two
groups of four warps multiply 64 rows at a time (``waves`` of them each), fold what a step leaves, and store their part
of a tile while the other goes on. ``runtime/warp_specialised.py`` holds the pieces. A program takes this form where
all that its stream loads enters the matrix unit as it is stored; anything else has Triton's own pipeline alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from opspec.emit.describe import exact_axes
from opspec.emit.expressions import ATOM, wrap
from opspec.emit.names import shorten
from opspec.emit.narrow import Narrow, narrow
from opspec.emit.signature import KernelText, WarpRoles, descriptor
from opspec.emit.warp_form import Form, form_of, reads
from opspec.emit.warp_printer import RolePrinter
from opspec.ir.integers import Int
from opspec.ir.values import Extent, Read
from opspec.schedule.access import plain
from opspec.schedule.tile import (
    AxisPlan,
    Combine,
    Fetch,
    Let,
    Multiply,
    Operand,
    Remark,
    Statement,
    TileProgram,
    Write,
)


def print_warp_specialised(program: TileProgram, base: str) -> KernelText | None:
    """Print a program in this form as a kernel called after ``base``, if it has the form."""
    halves = narrow(program)
    form = form_of(program, halves)
    if form is None:
        return None
    return _Specialised(program, shorten(f"{base}_warp_specialised"), form, halves).kernel()


class _Specialised(RolePrinter):
    """The three functions of a kernel whose warps have roles: what brings, what multiplies, and what starts both."""

    def __init__(self, program: TileProgram, name: str, form: Form, halves: Narrow) -> None:
        super().__init__(program, name, {**form.operands, **form.results}, halves)
        self.form = form
        self.persistent = True
        self.multiplying = self.ending = False

    # frame -----------------------------------------------------------------
    def kernel(self) -> KernelText:
        load = self.function(
            "load", "One warp: the tiles of every step, as far ahead as there are slots.", self.load
        )
        doc = "A group of four warps: half the rows of every tile."
        multiply = self.function("multiply", doc, self.multiply_tiles)
        self.lines, self.level, self.scopes = [], 1, [{}]
        own = (*self.form.operands, *self.form.results)
        for t in own:
            count = "STAGES" if t in self.form.operands else "2"
            self.put(f"{self.held_tiles(t)} = warps.slots({descriptor(t)}, {count})")
        self.put("@filled, @free = warps.barriers(STAGES)")
        self.start(multiply, load)
        params, constexprs = self.parameters("\n".join(self.lines))
        return KernelText(
            name=self.name,
            params=params,
            constexprs=constexprs,
            lines=tuple(self.lines),
            helpers=tuple(sorted(self.x.used)),
            blocks=self.blocks,
            grouped=True,
            persistent=True,
            tiles=self.tiles,
            edges=dict(self.edges),
            exact={self.blocks[a]: self.program.axis(a).extent for a in exact_axes(self.program, self.tiles)},
            roles=WarpRoles(
                functions=tuple(self.functions),
                results=tuple(self.form.results),
                sums=len(self.form.sums),
                folded=self.form.folded,
                row_tiles=len({self.tile_of(p.a) for p in self.form.products}),
                column_tiles=len({self.tile_of(p.b) for p in self.form.products}),
                vectors=sum(self.along_columns(s) for s in self.form.loop.body),
            ),
        )

    def tiles_loop(self, total: str) -> None:
        self.put(f"for tile in range(gl.program_id(0), {total}, gl.num_programs(0)):")

    def coordinate(self, axis: AxisPlan, pid: tuple[str, int]) -> None:
        """Where the tile of an axis begins; for a group of warps, where its rows do."""
        name = self.names[axis.name]
        if not axis.blocked:
            self.put(f"{name} = {pid[0]}")
            return
        first = f"{wrap(pid, 5)} * {self.blocks[axis.name]}"
        if self.multiplying and axis.name == self.form.rows:
            first += f" + @WHO * ({self.blocks[axis.name]} // 2)"
        self.put(f"{name}_first = {first}")
        self.names[f"{axis.name}.first"] = f"{name}_first"

    def steps_loop(self) -> None:
        """The head of the loop over steps."""
        loop = self.form.loop
        assert isinstance(loop.start, Extent)
        assert isinstance(loop.stop, Extent)
        start, stop = (self.x.integer(v.value, ())[0] for v in (loop.start, loop.stop))
        name = self.names[loop.axis]
        if self.x.dims[loop.axis]:
            self.put(f"for {name}_start in range({start}, {stop}, {self.blocks[loop.axis]}):")
        else:
            span = stop if start == "0" else f"{start}, {stop}"
            self.put(f"for {name} in range({span}):")
        self.level += 1

    # what brings tiles -------------------------------------------------------
    def load(self) -> None:
        self.put("@slot, @phase = 0, 1")
        self.prologue()
        self.steps_loop()
        fetches = [s for s in self.form.loop.body if isinstance(s, Fetch) and self.tiled(s)]
        size = " + ".join(f"{descriptor(s.tensor)}.block_type.nbytes" for s in fetches)
        self.put(f"warps.await_free(@free, @filled, @slot, @phase, {size})")
        for s in fetches:
            where = f"{descriptor(s.tensor)}, {self.corner(s.tensor, s.at)}, @filled, @slot"
            self.put(f"warps.bring({where}, {self.held_tiles(s.tensor)})")
        self.put("@slot, @phase = warps.following(@slot, @phase, STAGES)")

    # what multiplies them ------------------------------------------------------
    def multiply_tiles(self) -> None:
        form, rows = self.form, self.blocks[self.form.rows]
        self.multiplying = True
        first = self.held_tiles(next(iter(form.operands)))
        bits = f"{first}.dtype.primitive_bitwidth"
        self.put(f"@LAYOUT: gl.constexpr = warps.accumulator({self.blocks[form.columns]}, {bits})")
        self.put(f"@WAVES: gl.constexpr = {rows} // 128")
        self.put("@slot, @phase = 0, 0")
        if form.folded:
            assert isinstance(form.loop.stop, Extent)
            self.put(f"@never = {wrap(self.x.integer(form.loop.stop.value, ()), 5)} < 0")
        self.prologue()
        waves = {name: self.fresh(f"{name}_waves") for name in form.sums}
        for held in waves.values():
            self.put(f"{held} = ()")
        self.put("for _ in gl.static_range(@WAVES):")
        self.level += 1
        for held in waves.values():
            self.put(f"{held} += (gl.zeros((64, {self.blocks[form.columns]}), gl.float32, @LAYOUT),)")
        self.level -= 1
        product, unit, early = form.products[0], "", self.ahead()
        if early:
            self.load_first(early)
        if form.folded:
            unit = (
                product.var.name if product.var.name not in waves else self.fresh(f"{product.var.name}_step")
            )
            self.put(f"{unit} = gl.zeros((64, {self.blocks[form.columns]}), gl.float32, @LAYOUT)")
        self.steps_loop()
        self.put("warps.await_filled(@filled, @slot, @phase)")
        for s in form.loop.body:
            if isinstance(s, Fetch) and self.tiled(s):
                self.fetch_tile(s)
        if form.folded:
            self.fold(waves, unit, early)
        else:
            self.add(waves)
        self.put("@slot, @phase = warps.following(@slot, @phase, STAGES)")
        self.level -= 1
        if not form.folded:
            for held in waves.values():
                self.put(f"{held} = warps.all_but({held}, 0)")
            self.put("warps.give_back_before(@free, @slot, True, STAGES)")
        self.finish(waves)
        self.put("warps.put_all()")

    def waves(self) -> None:
        self.put("for @wave in gl.static_range(@WAVES):")
        self.level += 1
        self.scopes.append({})

    def end_waves(self) -> None:
        self.scopes.pop()
        self.level -= 1

    def add(self, waves: Mapping[str, str]) -> None:
        """Products that the unit adds to what it has: those of the step before are awaited, and its slot given back."""
        form = self.form
        moved = {name: self.fresh(f"{name}_next") for name in waves}
        for name in moved.values():
            self.put(f"{name} = ()")
        self.waves()
        for s in form.loop.body:
            if isinstance(s, Remark):
                self.put(f"# {s.text}")
            if isinstance(s, Multiply):
                call = (
                    f"warps.add_product({self.slice(s.a)}, {self.tile_of(s.b)}, {waves[s.var.name]}[@wave])"
                )
                self.put(f"{moved[s.var.name]} += ({call},)")
        self.end_waves()
        later = "@WAVES" if len(form.products) == 1 else f"{len(form.products)} * @WAVES"
        for name, held in waves.items():
            self.put(f"{held} = warps.all_but({moved[name]}, {later})")
        axis = self.names[form.loop.axis]
        at = f"{axis}_start" if self.x.dims[form.loop.axis] else axis
        self.put(f"warps.give_back_before(@free, @slot, {at} > 0, STAGES)")

    def ahead(self) -> tuple[Fetch, ...]:
        """What a step loads beside tiles from places that its number gives: it is on its way a step before."""
        axis = self.form.loop.axis
        body = [s for s in self.form.loop.body if isinstance(s, Fetch) and not self.tiled(s)]
        return tuple(s for s in body if any(axis in i.free_indices() for i in s.at))

    def load_first(self, early: tuple[Fetch, ...]) -> None:
        """What the first step of a tile needs of ``early``, for each wave."""
        for s in early:
            self.put(f"{self.held_ahead(s)} = ()")
        self.waves()
        self.row_places()
        self.load_at("0", early, "ahead")
        self.end_waves()

    def held_ahead(self, s: Fetch, when: str = "ahead") -> str:
        return self.word(f"{s.var.name}_{when}")

    def load_at(self, place: str, early: tuple[Fetch, ...], when: str) -> None:
        """Loads of a step at some ``place`` of the stream."""
        axis = self.form.loop.axis
        own, self.names[axis] = self.names[axis], place
        for s in early:
            self.statement(s)
            self.put(f"{self.held_ahead(s, when)} += ({s.var.name},)")
        self.names[axis] = own

    def fold(self, waves: Mapping[str, str], unit: str, early: tuple[Fetch, ...]) -> None:
        """A product of each step by itself, and what brings it to the sum, while the other group multiplies.

        All products of a group are made in one set of registers, ``unit``; ``early`` was loaded a step before.
        """
        (total, held), (product,) = next(iter(waves.items())), self.form.products
        moved = self.fresh(f"{total}_next")
        self.put(f"{moved} = ()")
        if early:
            assert isinstance(self.form.loop.stop, Extent)
            last = wrap(self.x.integer(self.form.loop.stop.value, ()), 4)
            self.put(f"@later = tl.minimum({self.names[self.form.loop.axis]} + 1, {last} - 1)")
            for fetch in early:
                self.put(f"{self.held_ahead(fetch, 'later')} = ()")
        self.waves()
        body = [s for s in self.form.loop.body if not self.tiled(s)]
        at = body.index(product)
        if any(isinstance(s, Fetch | Let) for s in body):
            self.row_places()
        self.put(
            f"{unit} = warps.product({self.slice(product.a)}, {self.tile_of(product.b)}, {unit}, @never)"
        )
        self.load_at(self.word("later"), early, "later")
        for fetch in early:
            self.put(f"{fetch.var.name} = {self.held_ahead(fetch)}[@wave]")
        waiting = True
        for s in (*body[:at], *body[at + 1 :]):
            if waiting and (isinstance(s, Combine) or reads(s, unit)):
                self.await_product(unit)
                waiting = False
            if isinstance(s, Combine):
                self.put(f"{total} = {held}[@wave]")
                right = self.masked(s.value, s.masks, s.var.axes, s.monoid)
                self.put(f"{moved} += (warps.now({self.join(s.monoid, (total, ATOM), right)}),)")
            elif s not in early:
                self.statement(s)
        if product.accumulate:
            self.await_product(unit)
            self.put(f"{moved} += (warps.now({held}[@wave] + {unit}),)")
        self.end_waves()
        self.put(f"{held} = {moved}")
        for fetch in early:
            self.put(f"{self.held_ahead(fetch)} = {self.held_ahead(fetch, 'later')}")

    def await_product(self, name: str) -> None:
        self.put(f"{name} = warps.finished({name})")
        self.put("if @wave == @WAVES - 1:")
        self.put("    warps.give_back(@free, @slot)")

    def along_columns(self, s: Statement) -> bool:
        """Whether a statement loads a value for every column, and not one for all of a tile."""
        return isinstance(s, Fetch) and s.var.axes == (self.form.columns,) and not self.one(s)

    def tiled(self, s: Statement) -> bool:
        """Whether a statement loads a tile of an operand."""
        return isinstance(s, Fetch) and s.tensor in self.form.operands

    def slice(self, o: Operand) -> str:
        """A wave's rows of an operand in shared memory."""
        return f"{self.tile_of(o)}.slice((@WHO * @WAVES + @wave) * 64, 64)"

    def tile_of(self, o: Operand) -> str:
        value = plain(o.value)
        assert isinstance(value, Read)
        return value.name

    def fetch_tile(self, s: Fetch) -> None:
        """A tile in its slot, with its dimensions in order."""
        text, kept = self.slot_of(s.tensor, "@slot")
        self.put(f"{s.var.name} = {text}" + (".permute((1, 0))" if kept != s.var.axes else ""))

    # what a tile becomes ---------------------------------------------------------
    def row_places(self) -> None:
        """Indices of the rows and columns of a wave."""
        for axis, extent, along in (
            (self.form.rows, "64", 1),
            (self.form.columns, self.blocks[self.form.columns], 0),
        ):
            name = self.names[axis]
            first = f"{name}_first + 64 * @wave" if along else f"{name}_first"
            layout = f"gl.SliceLayout({along}, @LAYOUT)"
            self.put(f"{name} = ({first} + gl.arange(0, {extent}, layout={layout})).to(INDEX)")

    def finish(self, waves: Mapping[str, str]) -> None:
        """What stands before and behind the loop, for each wave's rows."""
        self.waves()
        self.ending = True
        self.row_places()
        # addresses are formed in the width of theirs, and what descriptors are given has 32 bits
        single = [a.name for a in self.program.axes if a.role == "grid" and not a.blocked]
        self.narrow_names = {a: self.names[a] for a in single}
        for axis, name in self.narrow_names.items():
            self.put(f"@{name}_wide = warps.wide({name}, INDEX)")
            self.names[axis] = self.word(f"{name}_wide")
        for s in self.form.before:
            self.statement(s)
        for name, held in waves.items():
            self.put(f"{name} = {held}[@wave]")
        for s in self.form.behind:
            self.statement(s)
        self.names |= self.narrow_names
        self.ending = False
        self.end_waves()

    def extent_of(self, axis: str) -> str:
        return "64" if axis == self.form.rows else super().extent_of(axis)

    def first_of(self, axis: str) -> str:
        text = super().first_of(axis)
        return f"{text} + 64 * @wave" if self.ending and axis == self.form.rows else text

    def write(self, s: Write) -> None:
        """A store of a tile through its descriptor."""
        self.put_result(s)

    def quotient(self, axis: str, divisor: Int) -> str | None:
        """``axis // divisor`` as one number where the launch finds that no tile lies in two groups."""
        if axis not in self.shared or axis != self.form.columns:
            return None
        if divisor.free_indices() or divisor.tensors() or divisor.constant is not None:
            return None
        block = self.blocks[axis]
        self.edges[block.replace("BLOCK", "PARTIAL", 1)] = divisor, block
        text = self.x.integer(divisor, ())[0]
        return f"warps.quotient_of({self.names[axis]}_first, {self.names[axis]}, {text})"
