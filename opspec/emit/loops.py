"""Loops over streams as text: chunks, lanes, segments, and the parts that need masks apart."""

from __future__ import annotations

import re
from dataclasses import replace

from opspec.emit.accesses import Accesses, segment_places
from opspec.emit.expressions import wrap
from opspec.emit.odd_rows import first_of_row
from opspec.emit.running import across_memory, loop_range
from opspec.emit.signature import pointer, stride
from opspec.emit.turns import NEXT, in_turns
from opspec.ir.integers import FloorDiv, Greatest, Int, Least, index
from opspec.ir.values import Extent, free_indices
from opspec.schedule.tile import Ahead, Fetch, Inner, Let, Loop, Multiply, Remark, Statement, Unroll

AHEAD = 4  # chunks of a scan across memory: one that is scanned, the others on their way


class Loops(Accesses):
    """A kernel's loops."""

    def block(self, body: tuple[Statement, ...]) -> None:
        """Print statements in order; what prints one stands in the printer."""
        raise NotImplementedError

    def loop(self, s: Loop) -> None:
        """A walk over a stream, in chunks or one index at a time."""
        if s is self.fitted:
            self.inside(s)
            return
        axis = self.names[s.axis]
        implied, edge = self.implied, self.edge
        start, stop = (
            (self.x.integer(v.value, ()) if isinstance(v, Extent) else self.x.value(v, ()))[0]
            for v in (s.start, s.stop)
        )
        if s.sweeps > 1:
            self.put(f"# sweep {s.sweep} of {s.sweeps} over {s.axis}")
        dims, turned = self.x.dims[s.axis], False
        if s.segments is not None:
            start, stop = self.segments(s, s.segments, start, stop)
        if len(dims) == 3:
            lanes, steps, near = (self.blocks[d] for d in dims)
            assert not s.reverse
            if self.odd_row is not None:
                start = first_of_row(self, self.odd_row)
            self.put(f"for {axis}_start in range({start}, {stop}, {lanes} * {steps} * {near}):")
            self.level += 1
            self.put(
                f"{axis} = ({axis}_start + {self.x.call('lane_places', lanes, steps, near)[0]}).to(INDEX)"
            )
        elif self.program.axis(s.axis).rows:
            rows = self.blocks[f"{s.axis}.step"]
            chunk, place = f"{self.blocks[s.axis]} * {rows}", self.names[f"{s.axis}.place"]
            places = f"{self.places(s.axis)} * {rows}"
            if s.ahead is not None:
                self.put("# what the first step reads; the next one's is on its way while a step is computed")
                self.coming(s.ahead, place, places if start == "0" else f"{start} + {places}")
            self.put(f"for {axis}_start in {loop_range(s, start, stop, chunk)}:")
            self.level += 1
            if s.ahead is not None:
                for (_, coming), now in zip(s.ahead.loads.kept, s.ahead.now, strict=True):
                    self.put(f"{now} = {coming}")
                # where all chunks are full, so that no load has a mask, the last one is loaded again behind it
                end = stop if stop.isidentifier() else f"({stop})"
                last = f"tl.minimum({axis}_start, {end} - 2 * {chunk}) + {chunk}"
                coming = self.fresh(f"{axis}_coming")
                self.put(f"{coming} = {last} if FULL else {axis}_start + {chunk}")
                self.coming(s.ahead, place, f"{coming} + {places}")
            self.put(f"{place} = ({axis}_start + {places}).to(INDEX)")
        elif dims:
            block = self.blocks[s.axis]
            if self.whole_steps(s):
                self.started[s.axis] = f"{axis}_start"
            turned = self.packed_axis == s.axis and self.turns(s, start, stop)
            if s.inner is not None:
                start, stop = self.parts(s, s.inner, start, stop)
            walk = loop_range(s, start, stop, block)
            if s.axis in across_memory(self.program):
                walk = f"tl.{walk[:-1]}, num_stages={AHEAD})"
            self.put(f"for {axis}_start in {walk}:")
            self.level += 1
            self.put(f"{axis} = ({axis}_start + {self.places(s.axis)}).to(INDEX)")
        else:
            self.put(f"for {axis} in {loop_range(s, start, stop, None)}:")
            self.level += 1
            if s.segments is not None:
                bounds = [
                    f"{pointer(s.segments)} + {at} * {stride(self.tensor(s.segments), 0)}"
                    for at in (axis, f"({axis} + 1)")
                ]
                self.put("# a segment without places has nothing to do")
                self.put(f"if tl.load({bounds[0]}) < tl.load({bounds[1]}):")
                self.level += 1
        self.scopes.append({})
        outer, self.sweep = self.sweep, (s.axis, s.sweep, s.sweeps)
        self.open = (*self.open, s.axis)
        around, self.step = self.step, s
        head = len(self.lines) - 1
        self.block(s.body)
        code = "\n".join(line for line in self.lines[head + 1 :] if not line.lstrip().startswith("#"))
        if self.odd_row is not None and not re.search(rf"\b{axis}\b", code):
            del self.lines[head]  # the load says where it is by itself
            self.x.used.discard("lane_places")
        self.open, self.step = self.open[:-1], around
        self.started.pop(s.axis, None)
        self.sweep = outer
        self.scopes.pop()
        self.level -= 1 if s.segments is None else 2
        if s.inner is not None:
            self.level -= 1
            self.implied, self.edge = implied, edge
        if turned:
            self.level -= 1

    def coming(self, ahead: Ahead, place: str, places: str) -> None:
        """Load what a chunk at some places needs, which waits as it is stored."""
        self.put(f"{place} = ({places}).to(INDEX)")
        self.as_stored = True
        self.unroll(ahead.loads)
        self.as_stored = False

    def turns(self, s: Loop, start: str, stop: str) -> bool:
        """Print what takes two steps of a stream at once, in a branch for where the host finds that they fit; whether
        it did, and the other branch is open. That is so where the rows of the only product are unpacked and scaled behind it."""
        if self.parted is None or any(not isinstance(x, Fetch | Let | Multiply | Remark) for x in s.body):
            return False
        axis, block = self.names[s.axis], self.blocks[s.axis]
        ahead = [
            f
            for x in s.body
            if isinstance(x, Fetch) and (f := self.groups_ahead(x, s.axis, start)) is not None
        ]
        mark, masks, implied = len(self.lines), self.masks, self.implied
        first = f"{axis}_start"
        self.level += 2
        self.scopes.append({})
        if s.inner is not None:
            self.implied = s.inner.implied
        self.part, (around, self.step) = False, (self.step, s)
        steps = []
        at = len(self.lines)
        self.put(f"{axis} = ({first} + {self.places(s.axis)}).to(INDEX)")
        # what comes by address is under way before the program waits for tiles
        for statement in sorted(s.body, key=lambda x: not self.by_address(x)):
            steps.append(self.lines[at:])
            at = len(self.lines)
            self.block((statement,))
        steps.append(self.lines[at:])
        self.part, self.step, self.implied = None, around, implied
        self.scopes.pop()
        self.level -= 2
        summed = frozenset(x.var.name for x in s.body if isinstance(x, Multiply))
        lines = in_turns(steps, first, summed)
        del self.lines[mark:]
        names = {w for line in lines for w in re.findall(rf"\w+_{NEXT}\b", line)}
        if not any("dot_behind(" in line for line in lines) or names & {*self.x.axes, *self.names.values()}:
            self.masks = masks
            return False
        for line in ahead:
            self.put(line)
        self.put("if STEPS == 2:")
        self.level += 1
        self.put("# two steps at once: both are unpacked, then multiplied one after the other")
        self.put(f"for {first} in range({start}, {stop}, 2 * {block}):")
        self.level += 1
        self.put(f"{first}_{NEXT} = {first} + {block}")
        self.lines += lines
        self.level -= 2
        self.put("else:")
        self.level += 1
        return True

    def by_address(self, s: Statement) -> bool:
        """Whether a statement is a load that needs nothing but places."""
        return isinstance(s, Fetch) and s.tensor not in self.tiles and not any(i.tensors() for i in s.at)

    def groups_ahead(self, s: Fetch, axis: str, start: str) -> str | None:
        """A line that fetches what places of a stream share in groups, before it is needed a piece at a time."""
        if len(s.var.axes) != 2 or s.var.axes[1] != axis or not self.few(s.at, s.var.axes):
            return None
        tensor, rows = self.tensor(s.tensor), s.var.axes[:1]
        text = pointer(s.tensor)
        for position, i in enumerate(s.at):
            if axis not in i.free_indices():
                text += f" + {wrap(self.x.integer(i, rows), 5)} * {stride(tensor, position)}"
                continue
            (quotient,) = (a for a in i.atoms() if isinstance(a, FloorDiv))
            if i != Int.of(quotient):
                return None
            if start != "0":
                divisor = wrap(self.x.integer(quotient.den, ()), 5)
                text += f" + ({start}) // {divisor} * {stride(tensor, position)}"
        inside = tuple(m for m in s.masks if axis not in free_indices(m))
        return self.x.call("fetch_ahead", text, self.mask(inside, rows) if inside else "True")[0]

    def inside(self, s: Loop) -> None:
        """What a walk over segments does with the only one in which the tile lies."""
        self.scopes.append({})
        outer, self.sweep = self.sweep, (s.axis, s.sweep, s.sweeps)
        self.open = (*self.open, s.axis)
        self.block(s.body)
        self.open, self.sweep = self.open[:-1], outer
        self.scopes.pop()

    def walks_rows(self, s: Statement) -> bool:
        """Whether a statement is the first that loads rows of a window which a thread walks."""
        walked = {f"{a.name}.at" for a in self.program.axes if a.walked}
        return isinstance(s, Unroll) and s.index in walked and not self.whole_rows

    def walk_rows(self, body: tuple[Statement, ...]) -> None:
        """The rows of a window a few at a time, from the first load on: those of the next step are on their way as
        they are stored, and the last ones stay at hand for it."""
        (axis,) = (a.name for a in self.program.axes if a.walked)
        name, place, at = self.names[axis], self.names[f"{axis}.place"], self.names[f"{axis}.at"]
        once, step = self.blocks[f"{axis}.once"], self.blocks[f"{axis}.step"]
        loads = [s for s in body if isinstance(s, Unroll) and s.index == f"{axis}.at"]
        rest = tuple(s for s in body if s not in loads)
        begin, walked = self.fresh(f"{name}_begin"), self.fresh(f"{name}_step")
        taps = self.x.integer(loads[0].count - index(f"{axis}.step"), ())[0]
        rows = [kept for s in loads for _, kept in s.kept]
        own: list[Unroll] = []
        for s in loads:
            fetches = [x for x in s.body if isinstance(x, Fetch)]
            names = {x.var.name: self.fresh(f"{x.var.name}_stored") for x in fetches}
            stored = tuple(replace(x, var=replace(x.var, name=names[x.var.name])) for x in fetches)
            own.append(replace(s, body=stored, kept=tuple((names[n], k) for n, k in s.kept)))
            self.whole_rows |= {k: x.tensor for x in fetches for n, k in s.kept if n == x.var.name}

        def load(last: str, *span: str) -> None:
            self.as_stored = True
            for s in own:
                kept = tuple((n, f"{k}_{last}") for n, k in s.kept)
                self.unroll(replace(s, kept=kept), f"{', '.join(span)}")
            self.as_stored = False

        self.put(f"{begin} = {place}")
        load("before", taps)
        load("next", taps, f"{taps} + {once}")
        self.put("# the next rows are on their way while these are computed, and the last ones stay")
        self.put(f"for {walked} in range(0, {step}, {once}):")
        self.level += 1
        self.scopes.append({})
        for kept in rows:
            self.put(f"{kept} = {kept}_before + {kept}_next")
        self.put(f"{place} = {begin} + tl.minimum({walked} + {once}, {step} - {once})")
        load("next", taps, f"{taps} + {once}")
        for kept in rows:
            self.put(f"{kept}_before = ()")
        self.put(f"for {at} in tl.static_range({taps}):")
        for kept in rows:
            self.put(f"    {kept}_before += ({kept}[{once} + {at}],)")
        self.put(f"{place} = {begin} + {walked}")
        around, self.names[f"{axis}.step"] = self.names[f"{axis}.step"], once
        self.block(rest)
        self.names[f"{axis}.step"] = around
        self.scopes.pop()
        self.level -= 1

    def unroll(self, s: Unroll, span: str = "") -> None:
        """A loop that is written out when the kernel compiles, and what its steps leave for others."""
        for _, kept in s.kept:
            self.put(f"{kept} = ()")
        own = self.names[s.index]
        self.put(f"for {own} in tl.static_range({span or self.x.integer(s.count, ())[0]}):")
        self.level += 1
        self.scopes.append({})
        if s.place is not None:
            axis, at = s.place
            self.put(f"{self.names[axis]} = {self.x.integer(at, self.x.dims[axis])[0]}")
        outer = self.sweep
        if s.raw:  # whatever it touches it touches once
            self.sweep = (s.index, 1, 1)
        self.block(s.body)
        self.sweep = outer
        for name, kept in s.kept:
            self.put(f"{kept} += ({self.stored.get(kept, name)},)")
        self.scopes.pop()
        self.level -= 1

    def whole_steps(self, s: Loop) -> bool:
        """Whether every chunk of a stream begins at a multiple of its extent: at 0, or at a part of whole chunks."""
        if s.segments is not None or s.reverse or not isinstance(s.start, Extent):
            return False
        start = s.start.value
        return start == Int.of(0) or (len(start.terms) == 1 and bool(set(self.program.sizes) & start.dims()))

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
        end = inner.end if self.nested is not None else None
        if end is None and known and inner.stop.value == bounds[1] and bounds[0] == Int.of(0):
            end = inner.stop.value
        if end is None:
            return "2"
        edge = self.blocks[s.axis].replace("BLOCK", "EDGE", 1)
        self.edges[edge] = (end, self.blocks[s.axis])
        return f"1 + {edge}"

    def fit(self, s: Loop, tensor: str) -> str:
        """How many tiles the segments have, each its own; before that, how many those up to each have."""
        places = segment_places(self.program, s)
        assert places is not None
        count = self.x.integer(self.program.axis(s.axis).extent, ())[0]
        ends, rows = self.fresh(f"{self.names[s.axis]}_ends"), self.fresh(f"tiles_{self.names[places]}")
        offsets = f"{pointer(tensor)}, {stride(self.tensor(tensor), 0)}"
        self.put("# tiles begin where segments do: how many of them there are up to the end of each")
        counted = self.x.call("segment_tiles", offsets, count, self.blocks[places], "SEGMENTS")[0]
        self.put(f"{ends} = {counted}")
        self.put(f"{rows} = tl.max({ends})")
        self.names |= {f"{s.axis}.ends": ends, f"{places}.tiles": rows}
        return places

    def take(self, s: Loop, tensor: str, places: str, tile: str) -> None:
        """The segment of a tile, and the places of the tile."""
        name, at = self.names[places], self.names[s.axis]
        first = f"{name}_first"
        self.names[f"{places}.first"] = first
        offsets = f"{pointer(tensor)}, {stride(self.tensor(tensor), 0)}"
        found = self.x.call("segment_tile", self.names[f"{s.axis}.ends"], tile, offsets, self.blocks[places])[
            0
        ]
        self.put(f"{at}, {first} = {found}")
        self.put(f"{name} = ({first} + {self.places(places)}).to(INDEX)")

    def segments(self, s: Loop, tensor: str, first: str, last: str) -> tuple[str, str]:
        """Look up which segments hold the places ``first`` to ``last``."""
        axis, count = self.names[s.axis], self.x.integer(self.program.axis(s.axis).extent, ())[0]
        self.x.used.add("segments")
        names = f"{axis}_first", f"{axis}_end"
        offsets = f"{pointer(tensor)}, {stride(self.tensor(tensor), 0)}"
        self.put(f"{', '.join(names)} = segments({offsets}, {count}, {first}, {last})")
        return names


def _picks(value: Int) -> bool:
    return any(isinstance(a, Least | Greatest) for a in value.atoms())
