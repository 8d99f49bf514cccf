"""Totals of a few groups: more programs leave partial results of each, a second launch joins them.

A norm over a group of channels and all of space has as many programs as there are groups, however large these are,
and channels that lie along memory reach a program a few bytes at a time. Where workloads make the groups few and
large, three launches replace the block: the first leaves a partial result of each total for every channel, or
every run of rows, in a workspace; the second joins them, and computes what depends on them alone; the third is
the rest, a map. Every launch walks tensors in the order of memory: where all of it reads ``g * K + k`` together, g and
k are one axis there (``joint``). What the map reads again, the first launch has left in L2 or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from opspec.diagnostics import Failure
from opspec.ir.dtypes import F32, DType, choices
from opspec.ir.integers import ONE, ZERO, Index, Int, floor_div, index
from opspec.ir.program import Boundary, Define, Kernel, Op
from opspec.ir.values import Range, Read, Reduce, Scan, Value, map_values
from opspec.schedule.block import Block, build_block
from opspec.schedule.centred import Centred, about_own_means, centred_totals, joined, points_of
from opspec.schedule.graph import Graph, Load, build_graph
from opspec.schedule.joint import Joint, at_place, find_joint, join_axes, over
from opspec.schedule.plan import schedule_kernel
from opspec.schedule.roles import HELD, KEPT, assign_roles, axis_order, fast_axes, find_products, grid_axes
from opspec.schedule.totals import bound_in, is_total, needs, reads_in, split_totals, without_unused

PROGRAMS = 4 * 132  # fewer of them leave a device idle where each has much to do
COLUMNS = 64  # of a program, along memory
ROWS = 64  # of a part of a column
PARTS = 2048  # of a total at most, where they are columns
RUN = 4096  # points along memory of a part of a row
Typical = Callable[[Int], int | None]


def with_parts(op: Op, typical: Typical) -> Op:
    """The op with the launches for partial results as kernels of its boundaries: what is launched."""
    boundaries = []
    for boundary in op.boundaries:
        if not boundary.analysis:
            boundary = split_groups(op, split_totals(op, boundary, typical), typical)  # noqa: PLW2901
        boundaries.append(boundary)
    return replace(op, boundaries=tuple(boundaries))


def split_groups(op: Op, boundary: Boundary, typical: Typical) -> Boundary:
    """The boundary with each block of few and large totals as two or three launches."""
    kernels: list[Kernel] = []
    for kernel in boundary.kernels:
        try:
            made = _split(op, boundary, kernel, typical)
            if made is not None:
                whole = replace(boundary, kernels=tuple(k for b in boundary.kernels for k in (made if b is kernel else (b,))))  # fmt: skip
                for k in made:
                    schedule_kernel(op, whole, k, typical=typical)
        except Failure:  # what is wrong with the block itself is said where it is scheduled
            made = None
        kernels += made or (kernel,)
    return boundary if len(kernels) == len(boundary.kernels) else replace(boundary, kernels=tuple(kernels))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """The statements of a block around its totals, all over the axes ``over``.

    ``before``: what totals need; ``middle``: what depends on them alone; ``after``: what goes along their axes again.
    """

    over: tuple[str, ...]
    before: tuple[Define, ...]
    totals: tuple[Define, ...]
    middle: tuple[Define, ...]
    after: tuple[Define, ...]


def _split(op: Op, boundary: Boundary, kernel: Kernel, typical: Typical) -> tuple[Kernel, ...] | None:
    names = {k.name for k in boundary.kernels}
    own = (f"{kernel.name}_parts", f"{kernel.name}_totals")
    if names & set(own) or not any(isinstance(d.value, Reduce) for d in kernel.body):
        return None
    block = _without_twins(build_block(op, boundary, kernel))
    graph = build_graph(block)
    order = axis_order(graph) if graph.nodes else ()
    grid = grid_axes(graph, order) if order else ()
    if not grid or block.exclusive or find_products(graph, grid, tuple(a for a in order if a not in grid)):
        return None
    others = [d for k in boundary.kernels if k is not kernel for d in k.body]
    elsewhere = frozenset[str]().union(*map(reads_in, others))
    centred = centred_totals(block, graph)
    groups = _groups(block, centred, elsewhere)
    if groups is None:
        return None
    cut = _cut(block, graph, order, grid, groups, typical)
    if cut is None:
        return None
    bodies = _Parts(block, groups, cut, centred, elsewhere).bodies()
    labels = (*own, kernel.name) if len(bodies) == 3 else (own[0], kernel.name)
    made = [replace(kernel, name=n, body=body) for n, body in zip(labels, bodies, strict=True)]
    return replace(made[0], whole=kernel), *made[1:]


def _without_twins(block: Block) -> Block:
    """The block with equal totals as one."""
    first: dict[tuple[tuple[Range, ...], Value], str] = {}
    same: dict[str, str] = {}
    body: list[Define] = []

    def change(value: Value) -> Value:
        value = map_values(value, change)
        return replace(value, name=same.get(value.name, value.name)) if isinstance(value, Read) else value

    for d in block.body:
        d = replace(d, value=change(d.value))  # noqa: PLW2901
        if isinstance(d.value, Reduce) and d.output is None and d.kind == "temp" and not d.constraints:
            known = first.setdefault((d.ranges, d.value), d.name)
            if known != d.name:
                same[d.name] = known
                continue
        body.append(d)
    return replace(block, body=tuple(body)) if same else block


def _groups(block: Block, centred: dict[str, Centred], elsewhere: frozenset[str]) -> _Groups | None:
    """The statements by where they stand; None where a launch of partial results can't take the totals."""
    body = without_unused(block.body, centred, elsewhere)
    totals = [d for d in block.body if isinstance(d.value, Reduce)]
    over = tuple(r.index for r in totals[0].value.ranges) if isinstance(totals[0].value, Reduce) else ()
    names = {d.name for d in totals}
    if any(d.output is not None and block.tensor(d.output.tensor).role == "inout" for d in block.body):
        return None
    down: set[str] = set()
    for d in block.body:
        if (
            d.constraints
            or isinstance(d.value, Scan)
            or (isinstance(d.value, Reduce) and d.value.constraints)
        ):
            return None
        if d.name not in names and reads_in(d) & (names | down):
            down.add(d.name)
    if any(not is_total(d) or bound_in(d) != set(over) or needs(d, centred) & (names | down) for d in totals):
        return None
    if any(isinstance(d.value, Reduce) and d.value.using is not None for d in totals):
        return None
    along = {d.name for d in block.body if set(d.indices) & set(over)}
    before = [d for d in body if d.name not in names | down]
    if elsewhere & along or any(d.output is not None and d.name not in along for d in before):
        return None
    middle = [d for d in block.body if d.name in down - along]
    after = [d for d in block.body if d.name in down & along]
    used = frozenset[str]().union(*map(reads_in, after))
    if any(d.name in used and _rounds(block, d) for d in (*totals, *middle)):
        return None
    return _Groups(
        over=over, before=tuple(before), totals=tuple(totals), middle=tuple(middle), after=tuple(after)
    )


def _rounds(block: Block, define: Define) -> bool:
    """Whether a result is stored in fewer bits than it has where its block uses it."""
    if define.output is None:
        return False
    return choices(block.tensor(define.output.tensor).dtype) != (define.value.dtype,)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """How totals are taken apart: axes of which each index is a part, one that goes in runs of ``rows``, and a joint
    axis. ``along``: they are folded along memory."""

    whole: tuple[str, ...]
    run: str | None
    rows: int
    joint: Joint | None
    along: bool


def _cut(
    block: Block,
    graph: Graph,
    order: tuple[str, ...],
    grid: tuple[str, ...],
    groups: _Groups,
    typical: Typical,
) -> _Cut | None:
    size = {a: typical(block.axis(a).extent) or 0 for a in order}
    fast = set(fast_axes(graph)) or _last(graph)
    # a program has the points of a group, or of as many as lie side by side in memory
    points = _product(size[a] for a in groups.over)
    points *= min(_product(size[a] for a in set(grid) & fast), COLUMNS)
    held = KEPT if any(r.kept for r in assign_roles(graph, typical)) else HELD
    if points <= held or _programs(size, grid, fast) >= PROGRAMS:
        return None
    joint = find_joint(block, graph, grid, groups.over)
    whole = [] if joint is None else [joint.inner]
    left = [a for a in order if a in groups.over and a not in whole]
    own = [*grid, *whole]
    run, rows = None, RUN
    along = [a for a in left if a in fast]
    if along:
        for a in left:
            if a not in along and _programs(size, own, fast) < PROGRAMS:
                whole.append(a)
                own.append(a)
        if (
            _programs(size, own, fast) < PROGRAMS
            and len(set(left) - set(whole)) == 1
            and size[along[0]] > RUN
        ):
            run = along[0]
    elif left:
        run, rows = max(left, key=lambda a: size[a]), ROWS
        whole += [a for a in left if a != run]
        beside = _product(size[a] for a in whole if joint is None or a != joint.inner)
        while rows < size[run] and beside * -(-size[run] // rows) > PARTS:
            rows *= 2
    many = _programs(size, [*grid, *whole], fast) * (-(-size[run] // rows) if run is not None else 1)
    better = many > _programs(size, grid, fast)
    if not better:
        return None
    return _Cut(whole=tuple(whole), run=run, rows=rows, joint=joint, along=bool(along))


def _last(graph: Graph) -> set[str]:
    return {a for n in graph.nodes if isinstance(n, Load) and n.at for a in n.at[-1].free_indices()}


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _programs(size: dict[str, int], axes: Iterable[str], fast: set[str]) -> int:
    """Programs that axes in parallel give, those along memory in blocks."""
    axes = set(axes)
    beside = _product(size[a] for a in axes - fast)
    along = _product(size[a] for a in axes & fast)
    return beside * (-(-along // COLUMNS))


class _Parts:
    """The bodies of the launches."""

    def __init__(
        self,
        block: Block,
        groups: _Groups,
        cut: _Cut,
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
        """The totals, and what depends on them alone."""
        own = tuple(d for d in self.groups.before if not set(d.indices) & set(self.groups.over))
        own = tuple(replace(d, output=None) for d in own)
        body = (*own, *map(self._total, self.groups.totals), *self.groups.middle)
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
