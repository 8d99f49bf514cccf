"""One set of axes for a kernel block.

Statements of a block write their indices in their own letters. Here the letters of
all statements are joined into block *axes*: two indices are one axis when a value is
handed over between them, when they carry the same letter over the same range, or
when they run along the same axis of the same tensor. The first kind is forced; the
others only let statements share a loop, and are skipped where a statement would
need both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from opspec.diagnostics import Note
from opspec.ir.dtypes import F32
from opspec.ir.integers import Datum, FloorDiv, Int, index
from opspec.ir.program import Boundary, Define, Kernel, Op, Tensor
from opspec.ir.values import Range, Read, Reduce, Scan, Value, integers, map_integers, map_values, walk
from opspec.schedule.refuse import unfusable
from opspec.schedule.scans import split_exclusive


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A loop of the block: ``0 <= name < extent``; ``extent`` is free of indices."""

    name: str
    extent: Int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A kernel block over common axes.

    ``tensors``: everything it may load or store, workspace of crossing values included.
    ``body``: statements in order, over axis names; local reads are bare.
    ``stored``: statement → the tensor that receives it. ``exclusive``: scans that leave their own point out.
    """

    op: Op
    name: str
    boundary: str
    axes: tuple[Axis, ...]
    body: tuple[Define, ...]
    tensors: tuple[Tensor, ...]
    schedule: tuple[tuple[str, str], ...] = ()
    exclusive: frozenset[str] = frozenset()

    def axis(self, name: str) -> Axis:
        """The axis of that name."""
        return next(a for a in self.axes if a.name == name)

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        return next(t for t in self.tensors if t.name == name)


Slot = tuple[str, str]  # (statement, index)


def build_block(op: Op, boundary: Boundary, kernel: Kernel) -> Block:
    """Join the indices of ``kernel`` into axes and resolve what crosses its edge."""
    body, exclusive = split_exclusive(tuple(_normal_ranges(d) for d in _from_memory(kernel.body, boundary)))
    local = {d.name: d for d in body}
    groups = _Groups(body)
    for define in body:
        for read in _local_reads(define, local):
            for position, (at, own) in enumerate(zip(read.indices, local[read.name].indices, strict=True)):
                name, source = at.index, local[read.name]
                said = _said(source)
                where = Note(f"{said} is computed here", source.span)
                if name is None:
                    raise unfusable(
                        f"{said} is read at `{at}` in the block that computes it",
                        read.span or define.span,
                        where,
                        help=f"put the statement that reads axis {position + 1} of {said} elsewhere "
                        f"into a `kernel` block of its own{_walked(at, own) or _inlined(source)}",
                    )
                if not groups.join((define.name, name), (read.name, own)):
                    raise unfusable(
                        f"`{define.origin}` needs {said} at two different points of one axis",
                        read.span or define.span,
                        where,
                        help=f"split the block in two where {said} is handed over, or write its value out "
                        "at one of the points: the launch then computes it twice",
                    )
    _join_letters(groups)
    _join_tensor_axes(groups, body, local)
    names = groups.names()
    crossing = _crossing(boundary)
    axes: dict[str, Axis] = {}
    for slot, name in names.items():
        axes.setdefault(name, Axis(name=name, extent=groups.widest(slot)))
    renamed = tuple(_rename(d, names, axes) for d in body)
    return Block(
        op=op,
        name=kernel.name,
        boundary=boundary.name,
        axes=tuple(axes.values()),
        body=renamed,
        tensors=(*op.tensors, *crossing),
        schedule=kernel.schedule,
        exclusive=exclusive,
    )


def _walked(at: Int, own: str) -> str:
    """How a statement that reads at a quotient of its index can have the index of what it reads."""
    match at.atom:
        case FloorDiv(num=num, den=den) if num.index is not None:
            step = str(den) if den.constant is not None or den.atom is not None else f"({den})"
            whole = f"`{own} * {step}` and an index for the rest"
            return f", or write `{num.index}` as {whole}, so that it is read at `{own}`"
    return ""


def _inlined(define: Define) -> str:
    """A value that takes no sum can as well be computed at both points, if that is written."""
    if isinstance(define.value, Reduce | Scan):
        return ""
    return f", or write what {_said(define)} is at both points (a `fn` says it once): the launch computes it twice"


def _said(define: Define) -> str:
    """What a statement computes, in words of the spec: temporaries have no name there."""
    if define.kind != "temp":
        return f"`{define.origin}`"
    kind = define.value.monoid if isinstance(define.value, Reduce | Scan) else "value"
    return f"the {kind} in `{define.origin}`"


def _from_memory(body: tuple[Define, ...], boundary: Boundary) -> tuple[Define, ...]:
    """Statements that read what another kernel has updated in place from the tensor itself."""
    here = {d.name for d in body}
    stored = {
        d.name: d.output.tensor
        for k in boundary.kernels
        for d in k.body
        if d.output is not None and d.name not in here and d.name != d.output.tensor
    }

    def change(value: Value) -> Value:
        value = map_values(value, change)
        return replace(value, name=stored.get(value.name, value.name)) if isinstance(value, Read) else value

    return tuple(replace(d, value=change(d.value)) for d in body) if stored else body


def _crossing(boundary: Boundary) -> tuple[Tensor, ...]:
    """Workspace tensors for values that another kernel of the boundary defines or uses."""
    found: dict[str, Tensor] = {}
    owner = {d.name: k.name for k in boundary.kernels for d in k.body}
    defines = {d.name: d for k in boundary.kernels for d in k.body}
    for k in boundary.kernels:
        for d in k.body:
            for node in walk(d.value):
                if isinstance(node, Read) and owner.get(node.name, k.name) != k.name:
                    source = defines[node.name]
                    if source.output is not None:
                        continue
                    found[node.name] = Tensor(
                        name=node.name,
                        dtype=source.storage or F32,
                        extents=tuple(r.upper for r in source.ranges),
                        role="out",
                        span=source.span,
                    )
    return tuple(found.values())


def _normal_ranges(define: Define) -> Define:
    """Ranges that start at 0 and end at an extent free of indices and data; the rest as constraints."""
    ranges, extra = _split_ranges(define.ranges)
    value = define.value
    if isinstance(value, Reduce):
        inner, more = _split_ranges(value.ranges)
        value = replace(value, ranges=inner, constraints=(*value.constraints, *more))
    return replace(define, ranges=ranges, constraints=(*define.constraints, *extra), value=value)


def _split_ranges(ranges: tuple[Range, ...]) -> tuple[tuple[Range, ...], tuple[Int, ...]]:
    out, extra = [], []
    for r in ranges:
        if r.lower.constant != 0:
            extra.append(index(r.index) - r.lower)
        out.append(replace(r, lower=Int.of(0)))
    return tuple(out), tuple(extra)


def _local_reads(define: Define, local: dict[str, Define]) -> Iterator[Read]:
    for node in walk(define.value):
        if isinstance(node, Read) and node.name in local:
            yield node


def all_ranges(define: Define) -> tuple[Range, ...]:
    """Free and bound ranges of a statement."""
    bound = tuple(r for n in walk(define.value) if isinstance(n, Reduce) for r in n.ranges)
    return (*define.ranges, *bound)


class _Groups:
    """Union-find over (statement, index) slots that never joins two slots of one statement."""

    def __init__(self, body: tuple[Define, ...]) -> None:
        self.ranges: dict[Slot, Range] = {(d.name, r.index): r for d in body for r in all_ranges(d)}
        self.parent: dict[Slot, Slot] = {s: s for s in self.ranges}
        self.members: dict[Slot, set[Slot]] = {s: {s} for s in self.ranges}

    def find(self, slot: Slot) -> Slot:
        while self.parent[slot] != slot:
            slot = self.parent[slot]
        return slot

    def join(self, a: Slot, b: Slot) -> bool:
        """Join two slots; False if some statement would then need one axis twice."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if {s for s, _ in self.members[a]} & {s for s, _ in self.members[b]}:
            return False
        self.parent[b] = a
        self.members[a] |= self.members.pop(b)
        return True

    def widest(self, slot: Slot) -> Int:
        """The extent that covers every member: that of the earliest statement."""
        members = self.members[self.find(slot)]
        return next(r.upper for s, r in self.ranges.items() if s in members)

    def names(self) -> dict[Slot, str]:
        """One readable name per group: the first letter written, made unique."""
        taken: dict[str, Slot] = {}
        out: dict[Slot, str] = {}
        for slot in self.ranges:
            root = self.find(slot)
            name, k = slot[1].rsplit(".", 1)[-1], 1
            known = [n for n, r in taken.items() if r == root]
            if not known:
                fresh = name
                while fresh in taken:
                    k += 1
                    fresh = f"{name}{k}"
                taken[fresh] = root
                known = [fresh]
            out[slot] = known[0]
        return out


def _join_letters(groups: _Groups) -> None:
    """Same letter over the same range: the author meant one loop."""
    first: dict[tuple[str, Int], Slot] = {}
    for slot, r in groups.ranges.items():
        groups.join(first.setdefault((r.index, r.upper), slot), slot)


def _join_tensor_axes(groups: _Groups, body: tuple[Define, ...], local: dict[str, Define]) -> None:
    """Bare indices over the same range along the same axis of the same tensor share a loop."""
    first: dict[tuple[str, int, Int], Slot] = {}
    for define in body:
        accesses = [
            (n.name, n.indices) for n in walk(define.value) if isinstance(n, Read) and n.name not in local
        ]
        if define.output is not None:
            accesses.append((define.output.tensor, define.output.at))
        for tensor, at in accesses:
            for position, i in enumerate(at):
                slot = (define.name, i.index or "")
                if i.index is None or slot not in groups.ranges:
                    continue
                key = (tensor, position, groups.ranges[slot].upper)
                groups.join(first.setdefault(key, slot), slot)


def _rename(define: Define, names: dict[Slot, str], axes: dict[str, Axis]) -> Define:
    mapping = {r.index: names[define.name, r.index] for r in all_ranges(define)}
    extra: list[Int] = []
    inner: list[Int] = []

    def rename_range(r: Range, into: list[Int]) -> Range:
        axis = axes[mapping[r.index]]
        if axis.extent != r.upper:
            into.append(r.upper - 1 - index(axis.name))
        return Range(index=axis.name, upper=axis.extent)

    def change(value: Value) -> Value:
        value = map_values(value, change)
        if isinstance(value, Reduce):
            ranges = tuple(rename_range(r, inner) for r in value.ranges)
            kept = tuple(c.rename(mapping) for c in value.constraints)
            return replace(value, ranges=ranges, constraints=(*kept, *(c.rename(mapping) for c in inner)))
        return value

    ranges = tuple(rename_range(r, extra) for r in define.ranges)
    body = define.value
    if isinstance(body, Reduce):
        head = replace(body, body=map_integers(body.body, lambda i: i.rename(mapping)))
        body = change(head)
    else:
        body = map_integers(body, lambda i: i.rename(mapping))
        if isinstance(body, Scan):
            body = replace(body, index=mapping[body.index])
    output = define.output
    if output is not None:
        output = replace(output, at=tuple(i.rename(mapping) for i in output.at))
    constraints = (*(c.rename(mapping) for c in define.constraints), *(c.rename(mapping) for c in extra))
    return replace(define, ranges=ranges, constraints=constraints, value=body, output=output)


def reads_of(value: Value) -> Iterator[tuple[str, tuple[Int, ...]]]:
    """All accesses of a value: reads and the integer tensors inside index expressions."""
    for node in walk(value):
        if isinstance(node, Read):
            yield node.name, node.indices
        for integer in integers(node):
            for atom in integer.atoms():
                if isinstance(atom, Datum):
                    yield atom.tensor, atom.indices
