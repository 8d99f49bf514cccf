"""Windows in registers: of a few taps beside a place in parallel (``x[t + r]``) each element is loaded once.

A tile of places that walks the taps one at a time loads, masks and converts a whole tile for each of them. Where it is
known that they are few, each place of the tile stands for several neighbours instead, which a thread takes one by
one: what it loads for one of them serves the next, and all of it is on its way at once. Nothing is kept
from step to step but what a loop that is written out when the kernel compiles knows by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opspec.ir.bounds import prove
from opspec.ir.dtypes import BOOL, F32, I64
from opspec.ir.facts import facts_of
from opspec.ir.integers import ZERO, Int, index
from opspec.ir.values import Compare, Extent, Literal, Read, Value, integers, map_integers, walk
from opspec.schedule.names import Names
from opspec.schedule.tile import (
    AxisPlan,
    Combine,
    Fetch,
    Let,
    Loop,
    Remark,
    Statement,
    Take,
    TileProgram,
    Unroll,
    Write,
    assigned,
    inside,
    integers_of,
    statements,
    values_of,
)

MOST = 8  # taps whose weights and rows a thread holds


def row(axis: str) -> Int:
    """Which of the neighbours that a place stands for."""
    return index(f"{axis}.row")


def rows(axis: str) -> Int:
    """How many neighbours a place stands for; a constant of a compiled kernel."""
    return index(f"{axis}.step")


def first(axis: str) -> Int:
    """The first of the neighbours that a place stands for."""
    return index(f"{axis}.place")


def taps(axis: AxisPlan) -> Int:
    """How many taps there are; a constant of a compiled kernel."""
    return axis.extent if axis.extent.constant is not None else index(f"{axis.name}.count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How far apart, in what a load reads, two neighbouring places are and two neighbouring taps."""

    places: int
    taps: int


def hold_windows(program: TileProgram, names: Names) -> TileProgram:
    """The program with the rows of its window in registers, if it has a window of a few taps."""
    loops = [s for s in program.body if isinstance(s, Loop)]
    if len(loops) != 1 or not _short(program, loops[0]):
        return program
    for axis in program.axes:
        if axis.role == "grid" and len(axis.dims) == 1 and not _along_memory(program, axis.name):
            held = _Rows(program, loops[0], axis.name, names).held()
            if held is not None:
                return held
    return program


def _short(program: TileProgram, loop: Loop) -> bool:
    """Whether a loop walks all of a few taps, one at a time and in order."""
    axis = program.axis(loop.axis)
    whole = isinstance(loop.start, Extent) and loop.start.value == ZERO
    whole = whole and isinstance(loop.stop, Extent) and loop.stop.value == axis.extent
    plain = not axis.blocked and loop.segments is None and not loop.reverse and loop.inner is None
    return whole and plain and prove(Int.of(MOST) - axis.extent, facts_of(program.op))


def _along_memory(program: TileProgram, axis: str) -> bool:
    """Whether an axis is the one along memory in some access, where neighbours are a thread's already."""
    for s in _accesses(program.body):
        dims = s.var.axes if isinstance(s, Fetch) else s.axes
        if dims[-1:] == (axis,) or (s.at and axis in s.at[-1].free_indices()):
            return True
    return False


def _accesses(body: tuple[Statement, ...]) -> Iterator[Fetch | Write]:
    for s in body:
        if isinstance(s, Fetch | Write):
            yield s
        elif isinstance(s, Loop):
            yield from _accesses(s.body)


class _Rows:
    """One window: the loop over its ``taps`` and the axis of its places."""

    def __init__(self, program: TileProgram, loop: Loop, axis: str, names: Names) -> None:
        self.program, self.loop, self.axis, self.names = program, loop, axis, names
        self.tap = loop.axis
        self.facts = facts_of(program.op)

    def held(self) -> TileProgram | None:
        """The program with this window in registers; None where what it does says nothing of a window."""
        fetches = [s for s in self.loop.body if isinstance(s, Fetch)]
        rest = [s for s in self.loop.body if not isinstance(s, Fetch)]
        if not all(isinstance(s, Let | Combine | Remark) for s in rest) or self._mentions(rest):
            return None
        if not all(self.axis in s.var.axes for s in rest if isinstance(s, Combine)):
            return None
        windows = [(s, self._window(s)) for s in fetches]
        if any(w is None for _, w in windows) or not any(w is not None and w.places for _, w in windows):
            return None
        outside, within = self._parted()
        if self.loop not in within:
            return None
        ahead: list[Statement] = []
        takes: list[Statement] = []
        for fetch, window in windows:
            assert window is not None
            load = self._row(fetch, window) if window.places else self._tap(fetch)
            if load is None:
                return None
            ahead.append(load)
            at = window.places * row(self.axis) + window.taps * index(self.tap)
            takes.append(Take(var=fetch.var, kept=load.kept[0][1], at=at))
        count = taps(self.program.axis(self.tap))
        inner = Unroll(index=self.tap, count=count, body=(*takes, *rest))
        body = tuple(inner if s is self.loop else s for s in within)
        place = (self.axis, first(self.axis) + row(self.axis))
        all_rows = Unroll(index=f"{self.axis}.row", count=rows(self.axis), body=body, place=place)
        close = all(w is not None and (not w.places or (w.places, w.taps) == (1, 1)) for _, w in windows)
        axes = tuple(
            replace(a, rows=a.name == self.axis, walked=close and a.name == self.axis)
            for a in self.program.axes
        )
        return replace(self.program, axes=axes, body=(*outside, *ahead, all_rows))

    def _mentions(self, body: Sequence[Statement]) -> bool:
        """Whether anything but a load asks which tap it is."""
        return any(self.tap in i.free_indices() for s in body for i in integers_of(s))

    def _window(self, s: Fetch) -> Window | None:
        """How a load moves with the places and with the taps; None where it does not do so evenly."""
        values = [v for v in values_of(s) if v is not s.other]
        if s.other is not None and not isinstance(s.other, Literal):
            return None
        if any(isinstance(part, Read) for v in values for part in walk(v)):
            return None
        moving = [i for i in s.at if i.free_indices() & {self.axis, self.tap}]
        masked = {n for v in values for part in walk(v) for i in integers(part) for n in i.free_indices()}
        if not any(self.axis in i.free_indices() for i in moving) and self.axis not in s.var.axes:
            return None if masked & {self.axis, self.tap} else Window(places=0, taps=1)
        found: set[tuple[int, int]] = set()
        for i in moving:
            split = None if i.tensors() else i.affine((self.axis, self.tap))
            if split is None:
                return None
            places, step = (split[0].get(n, ZERO).constant for n in (self.axis, self.tap))
            if places is None or step is None:
                return None
            found.add((places, step))
        if len(found) != 1:
            return None
        places, step = found.pop()
        return Window(places=places, taps=step) if places > 0 and step > 0 else None

    def _tap(self, s: Fetch) -> Unroll:
        """A load that only taps tell apart: once for each."""
        name = self.names.fresh(f"{s.var.name}_taps")
        count = taps(self.program.axis(self.tap))
        return Unroll(index=self.tap, count=count, body=(s,), kept=((s.var.name, name),))

    def _row(self, s: Fetch, window: Window) -> Unroll | None:
        """A load of every row that some tap of some neighbour reads; other rows are as outside the tensor."""
        masks: list[Value] = []
        known: set[Int] = set()
        for mask in s.masks:
            if mask == inside(self.axis, self.program.axis(self.axis).extent):
                continue  # rows behind the last place are read for places in front of it
            sides = [i for part in walk(mask) for i in integers(part)]
            if any(self._moved(i, window) is None for i in sides):
                return None
            masks.append(map_integers(mask, lambda i: self._moved(i, window) or i))
            slack = _slack(masks[-1])
            known |= set() if slack is None else {slack}
        tensor = next(t for t in self.program.tensors if t.name == s.tensor)
        places = tuple(self._moved(i, window) or i for i in s.at)
        for i, own, extent in zip(places, s.at, tensor.extents, strict=True):
            if i != own:
                masks += [m for m in _inside(i, extent) if _slack(m) not in known]
        zero = Literal(value=0.0 if s.var.dtype is F32 else 0, dtype=s.var.dtype)
        fetch = replace(s, at=places, masks=tuple(masks), other=zero if s.other is None else s.other)
        last = window.places * (rows(self.axis) - 1) + window.taps * (taps(self.program.axis(self.tap)) - 1)
        name = self.names.fresh(f"{s.var.name}_rows")
        return Unroll(index=f"{self.axis}.at", count=last + 1, body=(fetch,), kept=((s.var.name, name),))

    def _moved(self, value: Int, window: Window) -> Int | None:
        """An index as what the window reads says it, with places and taps gone; None where they move it otherwise."""
        if not value.free_indices() & {self.axis, self.tap}:
            return value
        split = value.affine((self.axis, self.tap))
        if split is None:
            return None
        places, step = (split[0].get(n, ZERO).constant for n in (self.axis, self.tap))
        if places is None or step is None or places % window.places:
            return None
        factor = places // window.places
        if step != factor * window.taps:
            return None
        return factor * (window.places * first(self.axis) + index(f"{self.axis}.at")) + split[1]

    def _parted(self) -> tuple[list[Statement], list[Statement]]:
        """The statements that say nothing of a place, and all others."""
        outside: list[Statement] = []
        within: list[Statement] = []
        touched: set[str] = set()
        remarks: list[Statement] = []
        for s in self.program.body:
            if isinstance(s, Remark):
                remarks.append(s)
                continue
            here = within if self._touches(s, touched) else outside
            here += [*remarks, s]
            remarks = []
            if here is within:
                touched |= {v.name for x in statements((s,)) for v in assigned(x)}
        return outside, [*within, *remarks]

    def _touches(self, s: Statement, touched: set[str]) -> bool:
        if isinstance(s, Loop):
            return any(self._touches(x, touched) for x in s.body)
        if isinstance(s, Write) or any(self.axis in v.axes or v.name in touched for v in assigned(s)):
            return True
        reads = {part.name for v in values_of(s) for part in walk(v) if isinstance(part, Read)}
        data = {t for i in integers_of(s) for t in i.tensors()}
        return bool(reads & touched or data) or any(self.axis in i.free_indices() for i in integers_of(s))


def _slack(mask: Value) -> Int | None:
    """A comparison of integers as what is not negative where it holds."""
    match mask:
        case Compare(op="lt", a=Extent(value=a), b=Extent(value=b)):
            return b - a - 1
        case Compare(op="gt", a=Extent(value=a), b=Extent(value=b)):
            return a - b - 1
        case Compare(op="le", a=Extent(value=a), b=Extent(value=b)):
            return b - a
        case Compare(op="ge", a=Extent(value=a), b=Extent(value=b)):
            return a - b
    return None


def _inside(at: Int, extent: Int) -> tuple[Value, ...]:
    """The masks that keep an index inside a tensor; without the first where the index is never negative."""
    zero, place, end = (Extent(value=v, dtype=I64) for v in (ZERO, at, extent))
    below = Compare(op="lt", a=place, b=end, dtype=BOOL)
    if all(c > 0 for _, c in at.terms):
        return (below,)
    return (Compare(op="ge", a=place, b=zero, dtype=BOOL), below)
