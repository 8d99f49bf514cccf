"""A block as a flat list of nodes: loads, points, folds, prefixes and stores.

Every tensor element is loaded by a ``Load`` node, once per distinct access; every
statement becomes a ``Point`` (pointwise), a ``Fold`` (reduction) or a ``Prefix`` (scan)
over other nodes; every element that leaves the block leaves through a ``Store``. In node values a
``Read`` names a node, and integers read from tensors (``label[m]``) are looked up in
``Graph.data``. What a node depends on is then a matter of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opspec.ir.dtypes import DType, Storage
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Define
from opspec.ir.values import (
    Monoid,
    Read,
    Value,
    integers,
    walk,
)
from opspec.schedule.block import Block

Axes = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """``tensor[at]`` where all of ``guard`` hold and all ``constraints`` are ``>= 0``.

    ``checked``: positions whose index may lie outside the tensor; there the load gives ``otherwise``.
    """

    name: str
    tensor: str
    at: tuple[Int, ...]
    axes: Axes
    guard: tuple[Value, ...] = ()
    constraints: tuple[Int, ...] = ()
    otherwise: Value | None = None
    dtype: DType
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One pointwise value; ``axes`` are those that it really depends on."""

    name: str
    value: Value
    axes: Axes
    define: Define


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """``body`` combined over the axes ``over`` where all ``constraints`` are ``>= 0``.

    ``extreme``: of an arg-reduction, the fold of the same body that says which value it looks for.
    """

    name: str
    monoid: Monoid
    over: tuple[str, ...]
    body: Value
    constraints: tuple[Int, ...] = ()
    using: str | None = None
    empty: Value | None = None
    extreme: Value | None = None
    dtype: DType
    axes: Axes
    define: Define


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """``body`` combined along ``along`` up to each point, where all ``constraints`` are ``>= 0``.

    ``reverse``: from the last point on. ``exclusive``: without the point itself. ``decay``: what is
    combined so far is multiplied by it before the point is added. ``axes`` contains ``along``.
    """

    name: str
    monoid: Monoid
    along: str
    reverse: bool = False
    exclusive: bool = False
    body: Value
    decay: Value | None = None
    constraints: tuple[Int, ...] = ()
    dtype: DType
    axes: Axes
    define: Define


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """``tensor[at] = value`` over ``axes`` where all ``constraints`` are ``>= 0``."""

    name: str
    tensor: str
    at: tuple[Int, ...]
    value: Value
    axes: Axes
    constraints: tuple[Int, ...] = ()
    define: Define


Node = Load | Point | Fold | Prefix | Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes in dependency order. ``data``: integer reads inside index expressions → load node."""

    block: Block
    nodes: tuple[Node, ...]
    data: dict[Datum, str]

    def node(self, name: str) -> Node:
        """The node of that name."""
        return next(n for n in self.nodes if n.name == name)

    @property
    def by_name(self) -> dict[str, Node]:
        """All nodes by name."""
        return {n.name: n for n in self.nodes}

    def ordered(self, roots: Iterable[str]) -> tuple[Node, ...]:
        """The nodes that ``roots`` need and these themselves, each behind what it needs."""
        nodes, kept = self.by_name, dict[str, None]()

        def visit(name: str) -> None:
            if name not in kept:
                for dep in self.deps(nodes[name]):
                    visit(dep)
                kept[name] = None

        for name in roots:
            visit(name)
        return tuple(nodes[n] for n in kept)

    def deps(self, node: Node) -> tuple[str, ...]:
        """Names of the nodes that this one uses directly, each once, in order."""
        names: dict[str, None] = {}
        for value in node_values(node):
            for part in walk(value):
                if isinstance(part, Read):
                    names[part.name] = None
                for integer in integers(part):
                    names.update(dict.fromkeys(self._data_names(integer)))
        for integer in node_integers(node):
            names.update(dict.fromkeys(self._data_names(integer)))
        return tuple(names)

    def reached(self, node: Node) -> set[str]:
        """Names of the nodes that this one uses, directly or not."""
        nodes, found = self.by_name, set[str]()
        stack = list(self.deps(node))
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += self.deps(nodes[name])
        return found

    def _data_names(self, integer: Int) -> list[str]:
        return [self.data[a] for a in integer.atoms() if isinstance(a, Datum)]

    def axes_of(self, value: Value) -> Axes:
        """Axes that a node value depends on."""
        found: set[str] = set()
        nodes = self.by_name
        for part in walk(value):
            if isinstance(part, Read):
                found |= nodes[part.name].axes
            for integer in integers(part):
                found |= self.axes_of_int(integer) if not isinstance(part, Read) else set()
        return frozenset(found)

    def axes_of_int(self, integer: Int) -> Axes:
        """Axes that an integer expression depends on, through data too."""
        return integer.free_indices()


def node_values(node: Node) -> Iterator[Value]:
    """The values inside a node."""
    match node:
        case Load(guard=guard, otherwise=otherwise):
            yield from guard
            if otherwise is not None:
                yield otherwise
        case Point(value=value) | Store(value=value):
            yield value
        case Fold(body=body, empty=empty, extreme=extreme):
            yield body
            if empty is not None:
                yield empty
            if extreme is not None:
                yield extreme
        case Prefix(body=body, decay=decay):
            yield body
            if decay is not None:
                yield decay


def node_integers(node: Node) -> Iterator[Int]:
    """The integer expressions directly in a node."""
    match node:
        case Load(at=at, constraints=constraints) | Store(at=at, constraints=constraints):
            yield from at
            yield from constraints
        case Fold(constraints=constraints) | Prefix(constraints=constraints):
            yield from constraints
        case Point():
            return


def storage_of(graph: Graph, load: Load) -> Storage:
    """The storage dtype of what a load reads."""
    return graph.block.tensor(load.tensor).dtype
