"""A block flattened to a graph: reads become loads, reductions folds, and equal values one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from opspec.ir.dtypes import BOOL, I4, I64, DType, DTypeParam, choices, compute_dtype
from opspec.ir.integers import Datum, Index, Int, index
from opspec.ir.program import Define
from opspec.ir.values import (
    Binary,
    Compare,
    Extent,
    Read,
    Reduce,
    Scan,
    Select,
    Unary,
    Value,
    map_values,
    walk,
)
from opspec.schedule.block import Block, reads_of
from opspec.schedule.graph import Fold, Graph, Load, Node, Point, Prefix, Store
from opspec.schedule.refuse import unsupported


def build_graph(block: Block) -> Graph:
    """Flatten a block."""
    return _Builder(block).build()


_Access = tuple[str, tuple[Int, ...], tuple[Value, ...], tuple[Int, ...], Value | None]


class _Builder:
    def __init__(self, block: Block) -> None:
        self.block = block
        self.nodes: dict[str, Node] = {}
        self.data: dict[Datum, str] = {}
        self.loads: dict[_Access, str] = {}
        self.local = {d.name for d in block.body}
        self.define: Define = block.body[0]
        self.defines = {d.name: d for d in block.op.defines} | {d.name: d for d in block.body}
        crossing = {t.name for t in block.tensors} - {t.name for t in block.op.tensors}
        self.crossing = crossing & self.local

    def build(self) -> Graph:
        for tensor in self.block.tensors:
            generic = isinstance(tensor.dtype, DTypeParam)
            if generic and any(d is I4 for d in choices(tensor.dtype)) and self._touches(tensor.name):
                raise unsupported(
                    f"`{tensor.name}` may be stored in i4 or not, which has no emitter yet", tensor.span
                )
        for define in self.block.body:
            self.define = define
            self._add(define)
            if define.output is not None:
                self._store(define, define.output.tensor, define.output.at)
            elif define.name in self.crossing:
                self._store(define, define.name, tuple(index(r.index) for r in define.ranges))
        return self._prune(Graph(block=self.block, nodes=tuple(self.nodes.values()), data=self.data))

    def _touches(self, tensor: str) -> bool:
        """Whether the block loads or stores a tensor."""
        return any(
            (d.output is not None and d.output.tensor == tensor)
            or d.name == tensor
            or any(name == tensor for name, _ in reads_of(d.value))
            for d in self.block.body
        )

    def _prune(self, graph: Graph) -> Graph:
        """Keep only what a store needs, in dependency order."""
        stores = [n.name for n in graph.nodes if isinstance(n, Store)]
        return replace(graph, nodes=graph.ordered(stores))

    def _add(self, define: Define) -> None:
        value = define.value
        if isinstance(value, Scan):
            self._prefix(define, value)
            return
        if not isinstance(value, Reduce):
            converted = self._convert(value, (), define.constraints)
            self.nodes[define.name] = Point(
                name=define.name, value=converted, axes=self._axes(converted), define=define
            )
            return
        constraints = (*define.constraints, *(c for c in value.constraints if c not in define.constraints))
        body = self._convert(value.body, (), constraints)
        empty = None if value.empty is None else self._convert(value.empty, (), define.constraints)
        over = tuple(r.index for r in value.ranges)
        used = self._axes(body)
        for c in constraints:
            self._data_of(c, (), ())
            used |= c.free_indices()
        kept = tuple(c for c in constraints if c.free_indices() & set(over))
        self.nodes[define.name] = Fold(
            name=define.name,
            monoid=value.monoid,
            over=over,
            body=body,
            constraints=kept,
            using=value.using,
            empty=empty,
            dtype=value.dtype,
            axes=frozenset(used) - frozenset(over),
            define=define,
        )

    def _prefix(self, define: Define, value: Scan) -> None:
        body = self._convert(value.body, (), define.constraints)
        decay = None if value.decay is None else self._convert(value.decay, (), define.constraints)
        used = self._axes(body) | {value.index}
        used |= frozenset() if decay is None else self._axes(decay)
        kept = tuple(c for c in define.constraints if value.index in c.free_indices())
        for c in kept:
            self._data_of(c, (), ())
            used |= c.free_indices()
        self.nodes[define.name] = Prefix(
            name=define.name,
            monoid=value.monoid,
            along=value.index,
            reverse=value.reverse,
            exclusive=define.name in self.block.exclusive,
            body=body,
            decay=decay,
            constraints=kept,
            dtype=value.dtype,
            axes=frozenset(used),
            define=define,
        )

    def _store(self, define: Define, tensor: str, at: tuple[Int, ...]) -> None:
        for i in (*at, *define.constraints):
            self._data_of(i, (), ())
        node = self.nodes[define.name]
        dtype = node.dtype if isinstance(node, Fold | Prefix) else node.value.dtype  # type: ignore[union-attr]
        self.nodes[f"{define.name}.store"] = Store(
            name=f"{define.name}.store",
            tensor=tensor,
            at=at,
            value=Read(name=define.name, indices=tuple(index(r.index) for r in define.ranges), dtype=dtype),
            axes=frozenset(define.indices),
            constraints=define.constraints,
            define=define,
        )

    def _convert(self, value: Value, guard: tuple[Value, ...], constraints: tuple[Int, ...]) -> Value:
        match value:
            case Select(condition=condition, a=a, b=b):
                test = self._convert(condition, guard, constraints)
                other = Unary(op="not", x=test, dtype=BOOL)
                return replace(
                    value,
                    condition=test,
                    a=self._convert(a, (*guard, test), constraints),
                    b=self._convert(b, (*guard, other), constraints),
                )
            case Read() if value.name not in self.local:
                return self._load(value, guard, constraints)
            case Read(otherwise=otherwise) if otherwise is not None:
                # what is computed here has no edge of its own: outside its domain `else` takes over
                read = replace(value, otherwise=None)
                tests = self._domain(value, guard, constraints)
                if not tests:
                    return read
                outside = self._convert(otherwise, guard, constraints)
                return Select(condition=_all_of(tests), a=read, b=outside, dtype=value.dtype, span=value.span)
            case Extent(value=v):
                self._data_of(v, guard, constraints)
                return value
            case _:
                return map_values(value, lambda v: self._convert(v, guard, constraints))

    def _load(self, read: Read, guard: tuple[Value, ...], constraints: tuple[Int, ...]) -> Value:
        otherwise = None
        for i in read.indices:
            # integers that say where are read before it is known whether that is inside
            self._data_of(i, guard, constraints)
        if read.otherwise is not None:
            otherwise = self._convert(read.otherwise, guard, constraints)
            guard = (*guard, *self._inside(read), *self._domain(read, guard, constraints))
        name = self._intern(read.name, read.indices, guard, constraints, otherwise, read.dtype)
        node = self.nodes[name]
        return replace(read, name=name, indices=tuple(index(a) for a in sorted(node.axes)), otherwise=None)

    def _inside(self, read: Read) -> Iterator[Value]:
        """Conditions under which an access with ``else`` lies inside the tensor."""
        tensor = self.block.tensor(read.name)
        for i, extent in zip(read.indices, tensor.extents, strict=True):
            name = i.index
            if name is not None and self.block.axis(name).extent == extent:
                continue
            zero, bound, at = (Extent(value=v, dtype=I64) for v in (Int.of(0), extent, i))
            yield Compare(op="ge", a=at, b=zero, dtype=BOOL)
            yield Compare(op="lt", a=at, b=bound, dtype=BOOL)

    def _domain(
        self, read: Read, guard: tuple[Value, ...], constraints: tuple[Int, ...]
    ) -> tuple[Value, ...]:
        """Conditions under which a value of the op is defined at the point that is read."""
        define = self.defines.get(read.name)
        if define is None or (define.output is not None and define.name not in self.local):
            return ()
        at = dict(zip(define.indices, read.indices, strict=True))
        tests: list[Value] = []
        zero = Extent(value=Int.of(0), dtype=I64)
        for c in define.constraints:
            moved = c.substitute(lambda a: at.get(a.name) if isinstance(a, Index) else None)
            self._data_of(moved, guard, constraints)
            tests.append(Compare(op="ge", a=Extent(value=moved, dtype=I64), b=zero, dtype=BOOL))
        return tuple(tests)

    def _data_of(self, integer: Int, guard: tuple[Value, ...], constraints: tuple[Int, ...]) -> None:
        for atom in integer.atoms():
            if isinstance(atom, Datum) and atom not in self.data:
                for i in atom.indices:
                    self._data_of(i, guard, constraints)
                dtype = compute_dtype(self.block.tensor(atom.tensor).dtype)
                before = takewhile(lambda c: atom not in c.atoms(), constraints)  # noqa: B023 - taken at once
                self.data[atom] = self._intern(atom.tensor, atom.indices, guard, tuple(before), None, dtype)

    def _intern(
        self,
        tensor: str,
        at: tuple[Int, ...],
        guard: tuple[Value, ...],
        constraints: tuple[Int, ...],
        otherwise: Value | None,
        dtype: DType,
    ) -> str:
        axes: set[str] = set()
        for i in at:
            axes |= i.free_indices()
        for g in guard:
            axes |= self._axes(g)
        if otherwise is not None:
            axes |= self._axes(otherwise)
        own = tuple(c for c in constraints if c.free_indices() and c.free_indices() <= axes)
        key = (tensor, at, guard, own, otherwise)
        for known, name in self.loads.items():
            # a load that is made anyway, under weaker conditions, serves this access too
            if (
                known[:2] == key[:2]
                and known[4] == otherwise
                and set(known[2]) <= set(guard)
                and set(known[3]) <= set(own)
            ):
                return name
        if key not in self.loads:
            count = sum(n == tensor or n.startswith(f"{tensor}.load") for n in self.nodes)
            name = f"{tensor}.load" + (f".{count + 1}" if count else "")
            self.loads[key] = name
            self.nodes[name] = Load(
                name=name,
                tensor=tensor,
                at=at,
                axes=frozenset(axes),
                guard=guard,
                constraints=own,
                otherwise=otherwise,
                dtype=dtype,
                origin=self.define.origin,
            )
        return self.loads[key]

    def _axes(self, value: Value) -> frozenset[str]:
        found: set[str] = set()
        for part in walk(value):
            if isinstance(part, Read):
                found |= self.nodes[part.name].axes
            elif isinstance(part, Extent):
                found |= part.value.free_indices()
        return frozenset(found)


def _all_of(tests: tuple[Value, ...]) -> Value:
    result = tests[0]
    for test in tests[1:]:
        result = Binary(op="and", a=result, b=test, dtype=BOOL)
    return result
