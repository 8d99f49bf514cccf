"""The bodies of the launches that few and large totals are taken apart into (``parted`` says which and how).

The first leaves a partial result of each total in a workspace, the second joins these, the third is what goes along
the axes of the totals again. What the first computes for its totals and the third needs too, each has under its own name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from opspec.ir.dtypes import F32, DType
from opspec.ir.integers import ONE, ZERO, Index, Int, floor_div, index
from opspec.ir.program import Define
from opspec.ir.values import Range, Read, Reduce, Value, map_values
from opspec.schedule.block import Block
from opspec.schedule.centred import Centred, about_own_means, joined, points_of
from opspec.schedule.joint import Joint, at_place, join_axes, over
from opspec.schedule.totals import reads_in, without_unused


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The statements of a block around its totals, all over the axes ``over``.

    ``before``: what totals need; ``middle``: what depends on them alone; ``after``: what goes along their axes again.
    """

    over: tuple[str, ...]
    before: tuple[Define, ...]
    totals: tuple[Define, ...]
    middle: tuple[Define, ...]
    after: tuple[Define, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How totals are taken apart: axes of which each index is a part, one that goes in runs of ``rows``, and a joint
    axis. ``along``: they are folded along memory."""

    whole: tuple[str, ...]
    run: str | None
    rows: int
    joint: Joint | None
    along: bool


class Parting:
    """The bodies of the launches."""

    def __init__(
        self,
        block: Block,
        groups: Groups,
        cut: Cut,
        centred: dict[str, Centred],
        elsewhere: frozenset[str],
    ) -> None:
        taken = {*block.op.dims, *(t.name for t in block.tensors), *(s.name for s in block.op.scalars)}
        taken |= {*(a.name for a in block.axes), *(d.name for d in block.body)}
        self.part = "part"
        while self.part in taken:
            self.part += "_"
        self.block, self.groups, self.cut, self.centred, self.elsewhere = (
            block, groups, cut, centred, elsewhere,
        )  # fmt: skip
        self.indices = {d.name: d.indices for d in block.body}
        self.place = self.inside = ZERO
        self.parts: tuple[Range, ...] = ()
        if cut.run is not None:
            extent, rows = block.axis(cut.run).extent, Int.of(cut.rows)
            self.parts = (Range(index=self.part, upper=floor_div(extent + (rows - 1), rows)),)
            self.steps = Range(index=cut.run, upper=rows)
            self.place = index(self.part) * rows + index(cut.run)
            self.inside = extent - 1 - self.place

    def bodies(self) -> tuple[tuple[Define, ...], ...]:
        """What each launch computes, two or three of them."""
        joint, third = self.cut.joint, self._third()
        first = self._renamed(self._first(keep=not third), "first")
        second = self._renamed(self._second(reads_in_all(third)), "second")
        along = None if joint is None else join_axes(first, joint)
        if joint is not None and along is not None:
            first, partial = along, {_of_parts(d.name) for d in self.groups.totals}
            second = tuple(replace(d, value=at_place(d.value, partial, joint)) for d in second)
        if not third:
            return first, second
        along = None if joint is None else join_axes(third, joint)
        return first, second, third if along is None else along

    def _renamed(self, body: tuple[Define, ...], label: str) -> tuple[Define, ...]:
        """Statements under names of this launch where others have them too."""
        names = {d.name: f"{d.name}.{label}" for d in self.groups.before}

        def change(value: Value) -> Value:
            value = map_values(value, change)
            return (
                replace(value, name=names.get(value.name, value.name)) if isinstance(value, Read) else value
            )

        return tuple(replace(d, name=names.get(d.name, d.name), value=change(d.value)) for d in body)

    def _first(self, *, keep: bool) -> tuple[Define, ...]:
        """What totals need, and the partial results of each."""
        before = [d if keep else replace(d, output=None) for d in self.groups.before]
        body = tuple([self._early(d) for d in before] + [self._partial(d) for d in self.groups.totals])
        return without_unused(body, {}, frozenset(_of_parts(d.name) for d in self.groups.totals))

    def _second(self, later: frozenset[str]) -> tuple[Define, ...]:
        """The totals, and what depends on them alone; in the order of the block, as a total about a mean needs it."""
        before, totals, middle = self.groups.before, self.groups.totals, self.groups.middle
        own = [replace(d, output=None) for d in before if not set(d.indices) & set(self.groups.over)]
        made = {d.name: d for d in (*own, *map(self._total, totals), *middle)}
        body = tuple(made[d.name] for d in self.block.body if d.name in made)
        kept = without_unused(body, {}, (later | self.elsewhere) - {d.name for d in own})
        plain = {d.name for d in kept if d.storage is None and d.output is None and d.value.dtype is not F32}
        return tuple(replace(d, storage=d.value.dtype) if d.name in plain else d for d in kept)

    def _third(self) -> tuple[Define, ...]:
        """What goes along the axes of the totals again."""
        if not self.groups.after:
            return ()
        here = {d.name for d in (*self.groups.before, *self.groups.after)}
        return without_unused(tuple(d for d in self.block.body if d.name in here), {}, frozenset())

    def _integer(self, value: Int) -> Int:
        """An integer expression over part and step."""
        run = self.cut.run
        if run is None:
            return value
        return value.substitute(lambda a: self.place if a == Index(run) else None)

    def _names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Indices of a statement of the first launch: that of the part comes first."""
        return (self.part, *names) if self.cut.run in names else names

    def _value(self, value: Value) -> Value:
        return over(value, self._integer, self._names, {d.name for d in self.groups.before})

    def _ranges(self, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple(self.steps if r.index == self.cut.run else r for r in ranges)

    def _early(self, define: Define) -> Define:
        """A statement that totals need, as the first launch has it."""
        if self.cut.run not in define.indices:
            return replace(define, value=self._value(define.value))
        output = define.output
        if output is not None:
            output = replace(output, at=tuple(map(self._integer, output.at)))
        return replace(
            define,
            ranges=(*self.parts, *self._ranges(define.ranges)),
            constraints=(self.inside,),
            value=self._value(define.value),
            output=output,
        )

    def _partial(self, define: Define) -> Define:
        """The partial results of a total; of one about means, about its own."""
        value = self._value(define.value)
        about = self.centred.get(define.name)
        assert isinstance(value, Reduce)
        if about is not None:
            x, y = (self._value(side) for side in about.sides)
            value = replace(value, body=about_own_means((x, y), self._own(about), self._points(define)))
        left = tuple(r for r in value.ranges if r.index not in self.cut.whole)
        ranges = self._places(define)
        common = replace(
            define,
            name=_of_parts(define.name),
            kind="temp",
            ranges=ranges,
            storage=None if value.dtype is F32 else value.dtype,
            output=None,
        )
        if not left:
            return replace(common, value=value.body)
        inside = (self.inside,) if self.parts else ()
        return replace(common, value=replace(value, ranges=self._ranges(left), constraints=inside))

    def _total(self, define: Define) -> Define:
        """A total over the partial results; of one about means, each joined to the mean of all."""
        value = define.value
        assert isinstance(value, Reduce)
        read = self._read(define.name, value.dtype)
        about = self.centred.get(define.name)
        body = read if about is None else joined(about, read, self._own(about), self._points(define))
        ranges = (*self.parts, *self._whole(define))
        return replace(define, value=replace(value, ranges=ranges, constraints=(), body=body, using=None))

    def _whole(self, define: Define) -> tuple[Range, ...]:
        """The axes of which each index is a part of a total."""
        value = define.value
        assert isinstance(value, Reduce)
        return tuple(r for r in value.ranges if r.index in self.cut.whole)

    def _own(self, about: Centred) -> tuple[Value, Value]:
        first, second = (self._read(name, F32) for name in about.sums)
        return first, second

    def _read(self, total: str, dtype: DType) -> Read:
        """The partial results of a total, at the indices of a part."""
        define = next(d for d in self.groups.totals if d.name == total)
        at = tuple(index(r.index) for r in self._places(define))
        return Read(name=_of_parts(total), indices=at, dtype=dtype)

    def _places(self, define: Define) -> tuple[Range, ...]:
        """Where the partial results of a total lie: those of neighbours in memory side by side."""
        whole = self._whole(define)
        beside = (*define.ranges, *whole) if self.cut.along else (*whole, *define.ranges)
        return (*self.parts, *beside)

    def _points(self, define: Define) -> Int:
        """The number of points of a part."""
        value = define.value
        assert isinstance(value, Reduce)
        others = tuple(r for r in value.ranges if r.index not in (*self.cut.whole, self.cut.run))
        if self.parts:
            return points_of(self.block, self.parts[0], self.steps, self.inside, others)
        points = ONE
        for r in others:
            points = points * r.upper
        return points


def _of_parts(name: str) -> str:
    return f"{name}.parts"


def reads_in_all(body: Iterable[Define]) -> frozenset[str]:
    """The names that statements read."""
    return frozenset[str]().union(*map(reads_in, body))
