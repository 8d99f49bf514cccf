"""A chain of two block products whose warps have roles, as text of Gluon.

One warp brings the rows of a tile and then what the stream gives, as many steps ahead as shared memory has slots. Two
groups of four warps have 64 rows each. A group starts the first product of a step, then the second of the step before,
and while the matrix unit is at that one makes of the first what the next multiplies: so the unit rests for no
exponential. ``runtime/warp_specialised.py`` holds the pieces.
"""

from __future__ import annotations

import re
from dataclasses import replace

from opspec.emit.chain_form import Chain, chain_of, value_rows
from opspec.emit.describe import exact_axes
from opspec.emit.expressions import ATOM, TL, wrap
from opspec.emit.names import shorten
from opspec.emit.narrow import Narrow, narrow
from opspec.emit.signature import KernelText, RoleText, WarpRoles, descriptor
from opspec.emit.triton import identity_of, numbered, words_of
from opspec.emit.warp_form import reads
from opspec.emit.warp_printer import ROWS, RolePrinter
from opspec.ir.dtypes import DType
from opspec.ir.values import Extent, Monoid, Read, Unary, Value
from opspec.schedule.access import plain
from opspec.schedule.tile import (
    AxisPlan,
    Collapse,
    Fetch,
    Inner,
    Let,
    Operand,
    Remark,
    TileProgram,
    Write,
    assigned,
)

CHECKED = 4096  # marks that a program looks at together


def print_warp_chained(program: TileProgram, base: str) -> KernelText | None:
    """Print a program in this form as a kernel called after ``base``, if it has the form."""
    halves = narrow(program)
    form = chain_of(program, halves)
    if form is None:
        return None
    return _Chained(program, shorten(f"{base}_warp_specialised"), form, halves).kernel()


class _Mended(RolePrinter):
    """The same program in Triton's own pipeline, for tiles of the other that are marked."""

    marks = ""

    def prologue(self, *, waits: bool = True) -> None:
        """A loop over marked tiles, and the coordinates of each."""
        del waits  # the launch before it has ended
        grid = [a for a in self.program.axes if a.role == "grid"]
        total = " * ".join(wrap(self.count(a), 5) for a in grid)
        rows = 2 * ROWS
        own = self.blocks[next(a.name for a in grid if a.blocked)]
        self.put(
            "# what is outside the domain was multiplied by 0: tiles in which that left NaN, once more without it"
        )
        self.put(f"@per = tl.cdiv({total}, tl.num_programs(0))")
        self.put("@first = tl.program_id(0) * @per")
        self.put(f"@last = tl.minimum(@first + @per, {total})")
        self.put("@found = 0")
        self.put(f"for @at in range(@first * {rows}, @last * {rows}, {CHECKED}):")
        self.put(f"    @places = @at + tl.arange(0, {CHECKED})")
        self.put(
            f"    @found |= tl.max(tl.load({self.marks} + @places, mask=@places < @last * {rows}, other=0))"
        )
        self.put("if @found != 0:")
        self.put(f"    for @part in range(@first * ({rows} // {own}), @last * ({rows} // {own})):")
        self.level += 2
        self.put(f"@marked = {self.marks} + @part * {own} + tl.arange(0, {own})")
        self.put("if tl.max(tl.load(@marked)) != 0:")
        self.level += 1
        self.put(f"pid = tl.cast(@part // ({rows} // {own}), INDEX)")
        self.outer(grid, "pid")
        for axis in self.program.axes:
            if axis.role == "tile":
                self.put(f"{self.names[axis.name]} = {self.places(axis.name)}.to(INDEX)")

    def count(self, axis: AxisPlan) -> tuple[str, int]:
        extent = self.x.integer(axis.extent, ())
        return (f"tl.cdiv({extent[0]}, {2 * ROWS})", ATOM) if axis.blocked else extent

    def coordinate(self, axis: AxisPlan, pid: tuple[str, int]) -> None:
        name = self.names[axis.name]
        if not axis.blocked:
            self.put(f"{name} = {pid[0]}")
            return
        block, rows = self.blocks[axis.name], 2 * ROWS
        first = f"{numbered(pid)} * {rows} + @part % ({rows} // {block}) * {block}"
        self.block_ends(axis, first, f"{name}_first + {self.places(axis.name)}")

    def candidates(self) -> list[str]:
        return [*super().candidates(), self.marks]


class _Chained(RolePrinter):
    """The functions of such a kernel: what brings, what multiplies, a step of that, and what starts both."""

    BARRIERS = ("held_filled", "held_free", "first_filled", "first_free", "second_filled", "second_free")

    def __init__(self, program: TileProgram, name: str, form: Chain, halves: Narrow) -> None:
        super().__init__(program, name, {**form.operands, **form.results}, halves)
        self.form = form
        self.persistent = True
        self.multiplying = self.ending = False
        self.factors_read = tuple(
            sorted(frozenset().union(*(value_rows(s.value, form.second.var.name) for s in form.moved)))
        )

    # frame -----------------------------------------------------------------
    def kernel(self) -> KernelText:
        form = self.form
        load = self.function(
            "load",
            "One warp: the rows of a tile, and what the stream gives, as far ahead as there are slots.",
            self.load,
        )
        step = self.step_function()
        multiply = self.function(
            "multiply",
            "A group of four warps: half the rows of every tile.",
            lambda: self.multiply_tiles(step),
        )
        self.lines, self.level, self.scopes = [], 1, [{}]
        counts = {form.held.tensor: "1"} | {f.tensor: "STAGES" for f in form.streamed}
        for t in self.tiles:
            self.put(f"{self.held_tiles(t)} = warps.slots({descriptor(t)}, {counts.get(t, '2')})")
        for kind, count in (("held", "1"), ("first", "STAGES"), ("second", "STAGES")):
            self.put(f"@{kind}_filled, @{kind}_free = warps.barriers({count})")
        self.start(multiply, load)
        params, constexprs = self.parameters("\n".join(self.lines))
        return KernelText(
            name=self.name,
            params=params,
            constexprs=constexprs,
            lines=tuple(self.lines),
            helpers=tuple(sorted(self.x.used)),
            blocks=self.blocks,
            grouped=False,
            persistent=True,
            tiles=self.tiles,
            exact={self.blocks[a]: self.program.axis(a).extent for a in exact_axes(self.program, self.tiles)},
            marks=self.word("marks_ptr") if form.apart else "",
            roles=WarpRoles(
                functions=(self.functions[0], step, self.functions[1]),
                results=tuple(form.results),
                chained=tuple(f.tensor for f in (form.held, *form.streamed)),
                live=form.live,
                mended=self.mended() if form.apart else None,
            ),
        )

    def mended(self) -> KernelText:
        """The kernel that goes over marked tiles."""
        base = self.name.removesuffix("_warp_specialised")
        printer = _Mended(self.program, shorten(f"{base}_mended"), self.form.operands, self.narrow)
        printer.marks = self.word("marks_ptr")
        return replace(printer.kernel(), marks=printer.marks)

    def candidates(self) -> list[str]:
        return [*super().candidates(), *([self.word("marks_ptr")] if self.form.apart else [])]

    def tiles_loop(self, total: str) -> None:
        self.put(f"for pid in range(gl.program_id(0), {total}, gl.num_programs(0)):")

    def coordinate(self, axis: AxisPlan, pid: tuple[str, int]) -> None:
        """Where a tile lies along an axis; in what multiplies also the rows of a group, in the width of addresses."""
        name = self.names[axis.name]
        if not axis.blocked:
            if self.multiplying:
                self.put(f"@{name}_tile = {pid[0]}")
                self.narrow_names[axis.name] = self.word(f"{name}_tile")
                self.put(f"{name} = warps.wide(@{name}_tile, INDEX)")
            else:
                self.put(f"{name} = {pid[0]}")
            return
        self.block_ends(axis, f"{numbered(pid)} * {self.blocks[axis.name]}")
        if self.multiplying:
            self.put(f"{name} = ({name}_first + @WHO * {ROWS} + {self.places(axis.name)}).to(INDEX)")

    def places(self, axis: str) -> str:
        along, layout = {
            self.form.rows: (1, "@LAYOUT"),
            self.form.loop.axis: (0, "@LAYOUT"),
        }.get(axis, (0, "@RESULT"))
        return f"gl.arange(0, {self.extent_of(axis)}, layout=gl.SliceLayout({along}, {layout}))"

    def extent_of(self, axis: str) -> str:
        return str(ROWS) if axis == self.form.rows else super().extent_of(axis)

    def first_of(self, axis: str) -> str:
        text = super().first_of(axis)
        return f"{text} + @WHO * {ROWS}" if self.ending and axis == self.form.rows else text

    def identity(self, monoid: Monoid, axes: tuple[str, ...], dtype: DType) -> str:
        layout = "@RESULT" if axes == self.form.second.var.axes else "gl.SliceLayout(1, @LAYOUT)"
        if not axes:
            return super().identity(monoid, axes, dtype)
        return f"gl.full({self.shape(axes)}, {identity_of(monoid, dtype)}, {TL[dtype.name]}, {layout})"

    # what brings tiles -------------------------------------------------------
    def first_and_last(self) -> None:
        """Where the first and the last step of a tile begin: the stream is walked from its end."""
        loop = self.form.loop
        assert isinstance(loop.start, Extent)
        assert isinstance(loop.stop, Extent)
        start, stop = (self.x.integer(v.value, ())[0] for v in (loop.start, loop.stop))
        block = self.blocks[self.form.loop.axis]
        span = stop if start == "0" else f"{stop} - @begin"
        self.put(f"@begin = {start}")
        self.put("# a tile without a place has one step all the same, in which nothing counts")
        self.put(f"@end = @begin + tl.maximum(tl.cdiv({span}, {block}) - 1, 0) * {block}")

    def parts_of_stream(self, inner: Inner | None) -> tuple[str, str, str]:
        """Open a loop over the parts of what is left of a stream, from its end: masked steps, then plain ones. The
        first step of a part, the end of its last, and whether it is masked, as text."""
        axis, block = self.names[self.form.loop.axis], self.blocks[self.form.loop.axis]
        if inner is None:
            self.put("@made = warps.packed(@made)")
            return "@begin", "@end", "True"
        assert isinstance(inner.stop, Extent)
        high = wrap(self.x.integer(inner.stop.value, ()), 4)
        self.put("# masked tiles at the end, tiles inside")
        self.put(f"@inner = tl.maximum(@begin + tl.maximum({high} - @begin, 0) // {block} * {block}, @begin)")
        part = f"{axis}_part"
        self.put(f"for {part} in gl.static_range(2):")
        self.level += 1
        self.put("@made = warps.packed(@made)")
        self.put(f"@low = @inner if {part} == 0 else @begin")
        self.put(f"@high = @end if {part} == 0 else tl.minimum(@inner, @end)")
        return "@low", "@high", f"{part} != 1"

    def load(self) -> None:
        form, axis = self.form, self.names[self.form.loop.axis]
        self.put("@slot, @phase, @turn = 0, 1, 1")
        self.prologue()
        self.bring(form.held, "held", "0", "@turn")
        self.put("@turn ^= 1")
        self.first_and_last()
        block = self.blocks[form.loop.axis]
        self.put(f"for {axis}_back in range(@begin, @end + {block}, {block}):")
        self.level += 1
        self.put(f"{axis}_start = @begin + @end - {axis}_back")
        for fetch, kind in zip(form.streamed, ("first", "second"), strict=True):
            self.bring(fetch, kind, "@slot", "@phase")
        self.put("@slot, @phase = warps.following(@slot, @phase, STAGES)")

    def bring(self, s: Fetch, kind: str, slot: str, phase: str) -> None:
        own = descriptor(s.tensor)
        self.put(f"warps.await_free(@{kind}_free, @{kind}_filled, {slot}, {phase}, {own}.block_type.nbytes)")
        self.put(
            f"warps.bring({own}, {self.corner(s.tensor, s.at)}, @{kind}_filled, {slot}, {self.held_tiles(s.tensor)})"
        )

    # a step --------------------------------------------------------------------
    def step_function(self) -> RoleText:
        """What is made of the first product of a step: the rows of the second, new states, and what moves its sum."""
        form, axis = self.form, self.names[self.form.loop.axis]
        self.multiplying = True
        self.lines, self.level, self.scopes, self.masks = [], 1, [{}], 0
        self.prologue()  # for the names of places alone
        self.lines, self.level, self.scopes, self.masks = [], 1, [{}], 0
        self.put(f"{axis} = ({axis}_start + {self.places(form.loop.axis)}).to(INDEX)")
        self.open, self.step = (form.loop.axis,), form.loop
        if form.loop.inner is not None:
            self.implied, self.edge = form.loop.inner.implied, self.word("MASKED")
        made, early = self.word("made"), self.masked_before()
        for s in form.loop.body:
            if s is form.second:
                rows = replace(s.a, masks=()) if early is not None else s.a
                self.put(f"{made} = warps.rows_operand({self.operand(rows, 'widen_pairs')}, @RESULT)")
            elif early is not None and s is early[0]:
                assert isinstance(early[0].value, Unary)
                power, axes = early[0].var.name, early[0].var.axes
                exponent = self.word(f"{power}_log2")
                self.put(f"{exponent} = {self.x.value(early[0].value.x, axes)[0]}")
                inside = self.chosen(early[1], axes, (exponent, ATOM), 'float("-inf")')[0]
                self.put(f"{power} = tl.exp2({inside})")
            elif s in form.between and not self.of_second(s):
                whole = early is not None and reads(s, early[0].var.name)
                self.statement(replace(s, masks=()) if whole and isinstance(s, Collapse) else s)
        self.implied, self.edge, self.open, self.step = (), "", (), None
        back = [made, *form.states]
        for name in self.factors_read:
            if name in form.states:  # a state that moves the sum: as it is here
                self.put(f"@{name}_moves = warps.rows_of({name}, @RESULT)")
                back.append(self.word(f"{name}_moves"))
            else:
                self.put(f"{name} = warps.rows_of({name}, @RESULT)")
                back.append(name)
        self.back = tuple(back)
        self.put(f"return {', '.join(back)}")
        self.drop_unused()
        text = "\n".join(self.lines)
        words = words_of(text)
        local = {form.first.var.name, f"{axis}_start", *form.states, self.names[form.rows]}
        local |= {v.name for s in form.before for v in assigned(s)}
        local |= {self.names[a.name] for a in self.program.axes if a.role == "grid"}
        made_here = {m[1] for line in self.lines if (m := re.match(r"\s*(\w+) = ", line))}
        local = {n for n in local if n in words and (n not in made_here or n in form.states)}
        params, constexprs = self.parameters(text)
        constexprs += tuple(self.word(n) for n in ("LAYOUT", "RESULT", "MASKED") if self.word(n) in words)
        name = shorten(f"{self.name.removesuffix('_warp_specialised')}_step")
        self.multiplying = False
        doc = "What a step makes of its first product: rows of the second, states, and what moves the sum to these."
        return RoleText(
            name=name,
            doc=doc,
            params=(*sorted(local), *params),
            constexprs=constexprs,
            lines=tuple(self.lines),
        )

    def masked_before(self) -> tuple[Let, tuple[Value, ...]] | None:
        """A power of 2 of which sums and the second product take what is inside of the same masks alone, and these.

        Where they don't hold its exponent can be -inf instead: masks need not stay in registers then.
        """
        form = self.form
        value, masks = plain(form.second.a.value), form.second.a.masks
        if not isinstance(value, Read) or not masks:
            return None
        power = next((s for s in form.between if isinstance(s, Let) and s.var.name == value.name), None)
        if power is None or not isinstance(power.value, Unary) or power.value.op != "exp2":
            return None
        fits = all(
            isinstance(s, Collapse)
            and s.monoid == "sum"
            and s.masks == masks
            and isinstance(s.value, Read)
            and s.value.name == value.name
            for s in form.between
            if reads(s, value.name)
        )
        return (power, masks) if fits else None

    def of_second(self, s: object) -> bool:
        """Whether a remark stands above the second product."""
        body = self.form.loop.body
        if not isinstance(s, Remark):
            return False
        later = [x for x in body[body.index(s) + 1 :] if not isinstance(x, Remark)]
        return bool(later) and (later[0] is self.form.second or later[0] in self.form.moved)

    def make_step(self, step: RoleText, masked: str) -> None:
        """A call of the step."""
        given = [masked if p == self.word("MASKED") else p for p in (*step.params, *step.constexprs)]
        self.put(f"{', '.join(self.back)} = {step.name}({', '.join(given)})")

    # what multiplies -------------------------------------------------------------
    def multiply_tiles(self, step: RoleText) -> None:
        form, loop = self.form, self.form.loop
        axis, block = self.names[loop.axis], self.blocks[loop.axis]
        self.multiplying = True
        s, o = form.first.var.name, form.second.var.name
        keys, values = (f.var.name for f in form.streamed)
        bits = f"{self.held_tiles(form.held.tensor)}.dtype.primitive_bitwidth"
        self.put(f"@LAYOUT: gl.constexpr = warps.accumulator({block}, {bits})")
        self.put(f"@RESULT: gl.constexpr = warps.accumulator({self.blocks[form.columns]}, {bits})")
        self.put("@slot, @phase, @turn = 0, 0, 0")
        tested = sorted(self.program.axis(loop.axis).extent.dims())
        self.put(f"@never = {self.names[tested[0]] if tested else 'gl.num_programs(0)'} < 0")
        self.put(f"{s} = gl.zeros(({ROWS}, {block}), gl.float32, @LAYOUT)")
        self.prologue()
        for b in form.before:
            self.statement(b)
        for begin in form.begun:
            self.statement(begin)
        self.put("warps.await_filled(@held_filled, 0, @turn)")
        self.put("@turn ^= 1")
        self.tile(form.held, "0", form.first.a, rows=True)
        self.first_and_last()
        self.put("# the last step first and by itself: no product is before it")
        self.put(f"{axis}_start = @end")
        self.first_product(keys)
        self.put(f"{s} = warps.finished({s})")
        self.put("warps.give_back(@first_free, @slot)")
        self.make_step(step, "True")
        self.move()
        self.put("@last, @before = @slot, @phase")
        self.put("@slot, @phase = warps.following(@slot, @phase, STAGES)")
        level = self.level
        low, high, masked = self.parts_of_stream(loop.inner)
        self.put(f"for {axis}_back in range({low}, {high}, {block}):")
        self.level += 1
        self.put(f"{axis}_start = {low} + {high} - {block} - {axis}_back")
        self.first_product(keys)
        self.second_product(values, o)
        self.put(f"{s} = warps.all_but(({s},), 1)[0]")
        self.put("warps.give_back(@first_free, @slot)")
        self.make_step(step, masked)
        self.put(f"{o} = warps.finished({o})")
        self.put("warps.give_back(@second_free, @last)")
        self.move()
        self.put("@last, @before = @slot, @phase")
        self.put("@slot, @phase = warps.following(@slot, @phase, STAGES)")
        self.level = level
        self.put("warps.give_back(@held_free, 0)")
        self.second_product(values, o)
        self.put(f"{o} = warps.finished({o})")
        self.put("warps.give_back(@second_free, @last)")
        if form.apart:
            rows, end = (
                self.names[form.rows],
                wrap(self.x.integer(self.program.axis(form.rows).extent, ()), 4),
            )
            self.put(f"@rows = warps.rows_of({rows}, @RESULT)")
            self.put(f"@at = pid * {2 * ROWS} + @WHO * {ROWS} + @rows % {ROWS}")
            self.put(f"warps.mark(@marks_ptr + @at, {o}, @rows < {end})")
        self.finish()
        self.level = 1
        self.put("warps.put_all()")
        self.multiplying = False

    def first_product(self, keys: str) -> None:
        form = self.form
        s, rows = form.first.var.name, form.held.var.name
        self.put("warps.await_filled(@first_filled, @slot, @phase)")
        self.tile(form.streamed[0], "@slot", form.first.b)
        self.put(f"{s} = warps.product({rows}, {keys}, {s}, @never)")

    def second_product(self, values: str, total: str) -> None:
        self.put("warps.await_filled(@second_filled, @last, @before)")
        self.tile(self.form.streamed[1], "@last", self.form.second.b)
        self.put(f"{total} = warps.add_product(@made, {values}, {total})")

    def tile(self, s: Fetch, slot: str, o: Operand, *, rows: bool = False) -> None:
        """A tile in its slot, with its dimensions in order; of rows those of this group."""
        text, kept = self.slot_of(s.tensor, slot)
        if rows and kept == o.axes:
            text += f".slice(@WHO * {ROWS}, {ROWS})"
        elif rows:
            text += f".slice(@WHO * {ROWS}, {ROWS}, 1).permute((1, 0))"
        elif kept != o.axes:
            text += ".permute((1, 0))"
        self.put(f"{s.var.name} = {text}")

    def move(self) -> None:
        """What brings the sum to the new state."""
        states = {n: self.word(f"{n}_moves") for n in self.form.states if n in self.factors_read}
        for s in self.form.moved:
            mark = len(self.lines)
            self.statement(s)
            for k in range(mark, len(self.lines)):
                for name, own in states.items():
                    self.lines[k] = re.sub(rf"\b{name}\b", own, self.lines[k])

    # what a tile becomes ---------------------------------------------------------
    def finish(self) -> None:
        """What stands behind the loop, of the rows of this group."""
        form, mark = self.form, len(self.lines)
        self.ending = True
        for s in form.behind:
            self.statement(s)
        self.ending = False
        behind = self.lines[mark:]
        del self.lines[mark:]
        words = words_of("\n".join(behind))
        rows = [self.names[form.rows], *form.states]
        rows += [v.name for s in form.before for v in assigned(s) if v.axes == (form.rows,)]
        for name in dict.fromkeys(rows):
            if name in words:
                self.put(f"@{name}_rows = warps.rows_of({name}, @RESULT)")
                own = self.word(f"{name}_rows")
                behind = [
                    line if line.lstrip().startswith("#") else re.sub(rf"\b{name}\b", own, line)
                    for line in behind
                ]
        self.lines += behind

    def write(self, s: Write) -> None:
        """A store of a tile through its descriptor; of rows alone, by address."""
        if s.tensor not in self.form.results:
            super().write(s)
            return
        self.put_result(s)
