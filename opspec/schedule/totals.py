"""Totals over everything: many programs leave partial results, a second launch combines them.

A reduction with no index left in parallel would run in one program. Where the workloads make it large, an
index that it reduces is split into runs: the first launch leaves a partial result of each in a
workspace, the second is the rest of the block, with the totals taken over the partial results. Nothing is
computed twice. A block is left alone where something behind a total goes along that index again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from opspec.diagnostics import Failure
from opspec.ir.dtypes import F32
from opspec.ir.integers import Index, Int, floor_div, index, least
from opspec.ir.program import Boundary, Define, Kernel, Op, Output, Workload
from opspec.ir.values import Extent, Range, Read, Reduce, Scan, Value, map_values, walk
from opspec.schedule.axis_order import axis_order, grid_axes
from opspec.schedule.block import Block, all_ranges, build_block
from opspec.schedule.centred import Centred, about_own_means, centred_totals, joined, points_of
from opspec.schedule.exact import identity, number
from opspec.schedule.flatten import build_graph

PARTS = 512  # programs of the first launch at most
LARGE = 1 << 18  # points below which one program does as well
UNIT = 1024  # a run along memory is a multiple of it
Typical = Callable[[Int], int | None]


def typical_of(workloads: Iterable[Workload]) -> Typical:
    """The largest extent that a workload gives an expression; None if none does."""
    cases = [dict(dims) for w in workloads for _, dims in w.cases]
    return lambda extent: max((extent.evaluate(c) for c in cases), default=None)


def split_totals(op: Op, boundary: Boundary, typical: Typical) -> Boundary:
    """The boundary with a launch for partial results before each block that needs one."""
    kernels: list[Kernel] = []
    for kernel in boundary.kernels:
        try:
            kernels += _split(op, boundary, kernel, typical) or (kernel,)
        except Failure:  # it is said where the block is scheduled
            kernels.append(kernel)
    return boundary if len(kernels) == len(boundary.kernels) else replace(boundary, kernels=tuple(kernels))


def _split(op: Op, boundary: Boundary, kernel: Kernel, typical: Typical) -> tuple[Kernel, Kernel] | None:
    name = f"{kernel.name}_parts"
    if name in {k.name for k in boundary.kernels} or not any(_is_large(d, typical) for d in kernel.body):
        return None
    block = build_block(op, boundary, kernel)
    graph = build_graph(block)
    order = axis_order(graph) if graph.nodes else ()
    if not order or grid_axes(graph, order) or block.exclusive:
        return None
    others = [d for k in boundary.kernels if k is not kernel for d in k.body]
    elsewhere = frozenset().union(*map(reads_in, others))
    for axis in sorted(order, key=lambda a: (typical(block.axis(a).extent) or 0) < PARTS):
        found = _statements(block, axis, elsewhere, typical, centred_totals(block, graph))
        if found is not None:
            first, second = found
            return replace(kernel, name=name, body=first), replace(kernel, body=second)
    return None


def _statements(
    block: Block, axis: str, elsewhere: frozenset[str], typical: Typical, centred: dict[str, Centred]
) -> tuple[tuple[Define, ...], tuple[Define, ...]] | None:
    """The statements of both launches if ``axis`` can be split, else None."""
    centred = {
        n: c for n, c in centred.items() if axis in bound_in(next(d for d in block.body if d.name == n))
    }
    body = without_unused(block.body, centred, elsewhere)
    totals = [d for d in body if axis in bound_in(d)]
    along = [d for d in body if axis in d.indices]
    if not totals or not all(map(is_total, totals)):
        return None
    if not any(_is_large(d, typical) for d in (*along, *totals)):
        return None
    early = {d.name for d in along}
    local = {d.name for d in block.body}
    for d in (*along, *totals):
        if isinstance(d.value, Scan) or needs(d, centred) & (local - early):
            return None
        if d in along and d.output is None and d.name in elsewhere:
            return None
    reads = [
        v for d in (*along, *totals) for v in walk(d.value) if isinstance(v, Read) and v.name not in local
    ]
    in_memory = any(v.indices and v.indices[-1].index == axis for v in reads)
    split = _Split(block, axis, UNIT if in_memory else 1)
    first, second = [], []
    for d in body:
        about = centred.get(d.name)
        if d in along:
            first.append(split.along(d))
        elif d in totals:
            first.append(split.part(d) if about is None else split.centred_part(d, about))
            second.append(split.total(d) if about is None else split.centred_total(d, about))
        else:
            second.append(d)
    return tuple(first), tuple(second)


def needs(define: Define, centred: dict[str, Centred]) -> frozenset[str]:
    """The names that a statement reads; of a total about means, those that its sides read."""
    about = centred.get(define.name)
    if about is None:
        return reads_in(define)
    return frozenset(v.name for side in about.sides for v in walk(side) if isinstance(v, Read))


def without_unused(
    body: tuple[Define, ...], centred: dict[str, Centred], elsewhere: frozenset[str]
) -> tuple[Define, ...]:
    """The statements without those that only totals about means have read."""
    kept: list[Define] = []
    wanted = set(elsewhere)
    for d in reversed(body):
        if d.output is not None or d.name in wanted:
            kept.append(d)
            about = centred.get(d.name)
            wanted |= needs(d, centred)
            wanted |= (
                {v.name for m in about.means for v in walk(m) if isinstance(v, Read)} if about else set()
            )
            wanted |= set(about.sums) if about else set()
    return tuple(reversed(kept))


def bound_in(define: Define) -> set[str]:
    """The indices that a statement reduces."""
    return {r.index for r in define.value.ranges} if isinstance(define.value, Reduce) else set()


def reads_in(define: Define) -> frozenset[str]:
    """The names that a statement reads."""
    return frozenset(v.name for v in walk(define.value) if isinstance(v, Read))


def _is_large(define: Define, typical: Typical) -> bool:
    """Whether a statement walks so many points that one program is too few."""
    points = 1
    for r in all_ranges(define):
        points *= 0 if r.upper.tensors() or r.upper.free_indices() else typical(r.upper) or 0
    return points >= LARGE


def is_total(define: Define) -> bool:
    """Whether the partial results of a reduction are of its own kind."""
    value = define.value
    assert isinstance(value, Reduce)
    if value.monoid in ("max", "min") and value.empty is not None:
        # a part may be empty where the whole is not
        return number(value.empty) == identity(value.monoid, value.dtype)
    return value.monoid in ("sum", "prod")


class _Split:
    """An axis as a part and a step within it: ``axis = part * run + step``."""

    def __init__(self, block: Block, axis: str, unit: int) -> None:
        op = block.op
        taken = {*op.dims, *(t.name for t in block.tensors), *(s.name for s in op.scalars)}
        taken |= {*(a.name for a in block.axes), *(d.name for d in block.body)}
        name = "part"
        while name in taken:
            name += "_"
        extent = block.axis(axis).extent
        run = floor_div(extent + (unit * PARTS - 1), Int.of(unit * PARTS)) * unit
        self.block, self.axis, self.name = block, axis, name
        self.indices = {d.name: d.indices for d in block.body}
        count = least(Int.of(PARTS), floor_div(extent + (unit - 1), Int.of(unit)))
        self.parts, self.steps = Range(index=name, upper=count), Range(index=axis, upper=run)
        self.place = index(name) * run + index(axis)
        self.inside = extent - 1 - self.place
        self.moved = {d.name: d.indices for d in block.body if axis in d.indices}

    def integer(self, value: Int) -> Int:
        """An integer expression over part and step."""
        return value.substitute(lambda a: self.place if a == Index(self.axis) else None)

    def value(self, value: Value) -> Value:
        """A value over part and step; statements along the axis have both as indices."""
        value = map_values(value, self.value)
        match value:
            case Read(name=name, indices=at) if name in self.moved:
                k = self.moved[name].index(self.axis)
                return replace(value, indices=(*at[:k], index(self.name), index(self.axis), *at[k + 1 :]))
            case Read(indices=at):
                return replace(value, indices=tuple(map(self.integer, at)))
            case Extent(value=v):
                return replace(value, value=self.integer(v))
            case Reduce(constraints=constraints):
                return replace(value, constraints=tuple(map(self.integer, constraints)))
        return value

    def along(self, define: Define) -> Define:
        """A statement along the axis, as the first launch has it."""
        k = define.indices.index(self.axis)
        output = define.output
        if output is not None:
            output = Output(tensor=output.tensor, at=tuple(map(self.integer, output.at)))
        return replace(
            define,
            ranges=(*define.ranges[:k], self.parts, self.steps, *define.ranges[k + 1 :]),
            constraints=(*map(self.integer, define.constraints), self.inside),
            value=self.value(define.value),
            output=output,
        )

    def part(self, define: Define) -> Define:
        """The partial results of a total."""
        value = self.value(define.value)
        assert isinstance(value, Reduce)
        return replace(
            define,
            name=f"{define.name}.parts",
            kind="temp",
            ranges=(self.parts, *define.ranges),
            value=replace(
                value,
                ranges=tuple(self.steps if r.index == self.axis else r for r in value.ranges),
                constraints=(*value.constraints, self.inside),
            ),
            storage=None if value.dtype is F32 else value.dtype,
            output=None,
        )

    def centred_part(self, define: Define, about: Centred) -> Define:
        """A part of a total about means, about the part's own."""
        part = self.part(define)
        value = part.value
        assert isinstance(value, Reduce)
        x, y = (self.value(side) for side in about.sides)
        body = about_own_means((x, y), self._own(about), self._points(define))
        return replace(part, value=replace(value, body=body))

    def centred_total(self, define: Define, about: Centred) -> Define:
        """A total about means, of what the parts have about their own."""
        total = self.total(define)
        value = total.value
        assert isinstance(value, Reduce)
        return replace(
            total,
            value=replace(value, body=joined(about, value.body, self._own(about), self._points(define))),
        )

    def _own(self, about: Centred) -> tuple[Value, Value]:
        """The sums of a part."""
        first, second = (
            Read(
                name=f"{name}.parts",
                indices=(index(self.name), *map(index, self.indices[name])),
                dtype=F32,
            )
            for name in about.sums
        )
        return first, second

    def _points(self, define: Define) -> Int:
        value = define.value
        assert isinstance(value, Reduce)
        others = tuple(r for r in value.ranges if r.index != self.axis)
        return points_of(self.block, self.parts, self.steps, self.inside, others)

    def total(self, define: Define) -> Define:
        """A total over the partial results."""
        value = define.value
        assert isinstance(value, Reduce)
        at = (index(self.name), *map(index, define.indices))
        read = Read(name=f"{define.name}.parts", indices=at, dtype=value.dtype, span=value.span)
        whole = replace(value, ranges=(self.parts,), constraints=(), body=read, using=None)
        return replace(define, value=whole)
