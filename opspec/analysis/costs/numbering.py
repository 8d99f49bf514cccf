"""Value numbering: structurally equal expressions get one number.

A node is ``(number, arguments)``: the number names a closed structure whose free
indices are positions, the arguments fill them. ``x[i, j] * w[j]`` and
``x[m, n] * w[n]`` have one number and different arguments. Reads of another
statement are looked through, so that naming a value changes no count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from opspec.ir.integers import Index, Int, index
from opspec.ir.program import Define, Op
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Read,
    Reduce,
    Scalar,
    Scan,
    Select,
    Unary,
    Value,
    operands,
)


@dataclass(frozen=True, slots=True)
class Node:
    """A numbered expression. ``args``: the indices that it depends on, by first occurrence.

    ``fixed``: made of literals and dims (and indices, if an integer) alone, so that it costs nothing.
    """

    number: int
    args: tuple[str, ...]
    fixed: bool = False


@dataclass(slots=True)
class Numbering:
    """Numbers the expressions of one op. Statements become readable, in order, with ``enter``."""

    op: Op
    numbers: dict[Hashable, int] = field(default_factory=dict)
    entered: dict[str, tuple[Define, Node]] = field(default_factory=dict)
    memo: dict[int, tuple[Value, Node]] = field(default_factory=dict)

    def enter(self, define: Define) -> None:
        """Make a statement's value readable under its name; an update reads the old value until then."""
        self.entered[define.name] = (define, self.number(define.value))
        self.memo.clear()

    def number(self, value: Value) -> Node:
        """The node of an expression in the statement being entered."""
        known = self.memo.get(id(value))
        if known is None:
            known = (value, self._number(value))
            self.memo[id(value)] = known
        return known[1]

    def make(self, kind: Hashable, children: Iterable[Node], integers: Iterable[Int] = ()) -> Node:
        """A node from its kind, its children and its own integer expressions."""
        children, integers = tuple(children), tuple(integers)
        names = dict.fromkeys(a for c in children for a in c.args)
        for integer in integers:
            names.update(dict.fromkeys(indices_in_order(integer)))
        return self._intern(kind, children, integers, tuple(names))

    def _intern(
        self, kind: Hashable, children: tuple[Node, ...], integers: tuple[Int, ...], names: tuple[str, ...]
    ) -> Node:
        at = {x: k for k, x in enumerate(names)}
        spelled = {x: f"#{k}" for x, k in at.items()}
        key = (
            kind,
            tuple((c.number, tuple(at[a] for a in c.args)) for c in children),
            tuple(str(i.rename(spelled)) for i in integers),
        )
        return Node(self.numbers.setdefault(key, len(self.numbers)), names)

    def _number(self, value: Value) -> Node:
        match value:
            case Literal(value=v, dtype=dtype):
                return Node(self.make(("literal", repr(v), dtype.name), ()).number, (), fixed=True)
            case Extent(value=v, dtype=dtype):
                node = self.make(("extent", dtype.name), (), (v,))
                return Node(node.number, node.args, fixed=not v.tensors())
            case Scalar(name=name):
                return self.make(("scalar", name), ())
            case Read():
                return self._read(value)
            case Unary(op=op, x=x):
                return self._pure(("unary", op), (x,))
            case Binary(op=op, a=a, b=b):
                return self._pure(("binary", op), (a, b))
            case Compare(op=op, a=a, b=b):
                return self._pure(("compare", op), (a, b))
            case Select(condition=condition, a=a, b=b):
                return self.make("select", map(self.number, (condition, a, b)))
            case Cast(to=to, mode=mode, x=x):
                inner = self.number(x)
                node = self.make(("cast", to.name, mode), (inner,))
                return Node(node.number, node.args, fixed=inner.fixed and not inner.args)
            case Reduce():
                return self._reduce(value)
            case Scan(monoid=monoid, index=along, reverse=reverse):
                parts = tuple(map(self.number, operands(value)))
                return self.make(("scan", monoid, reverse), parts, (index(along),))

    def _pure(self, kind: Hashable, parts: tuple[Value, ...]) -> Node:
        children = tuple(map(self.number, parts))
        node = self.make(kind, children)
        integer = all(o.dtype.kind != "float" for o in parts)
        fixed = all(c.fixed and (integer or not c.args) for c in children)
        return Node(node.number, node.args, fixed)

    def _read(self, value: Read) -> Node:
        inside = () if value.otherwise is None else (self.number(value.otherwise),)
        known = self.entered.get(value.name)
        if known is None:
            return self.make(("read", value.name), inside, value.indices)
        define, node = known
        filled = dict(zip(define.indices, value.indices, strict=False))
        used = tuple(filled[a] for a in node.args)
        if value.otherwise is None and all(u.index is not None for u in used):
            names = tuple(str(u.index) for u in used)
            if len(set(names)) == len(names):
                return Node(node.number, names, node.fixed)
        return self.make(("at", node.number), inside, used)

    def _reduce(self, value: Reduce) -> Node:
        body = self.number(value.body)
        bound = tuple(r.index for r in value.ranges)
        children = (body,) if value.empty is None else (body, self.number(value.empty))
        integers = [*(r.lower for r in value.ranges), *(r.upper for r in value.ranges), *value.constraints]
        names = dict.fromkeys(a for c in children for a in c.args if a not in bound)
        for integer in integers:
            names.update(dict.fromkeys(a for a in indices_in_order(integer) if a not in bound))
        free = tuple(names)
        using = value.using or ""
        whole = self._intern(
            ("reduce", value.monoid, using, len(free)), children, tuple(integers), (*free, *bound)
        )
        return Node(whole.number, free)


def indices_in_order(value: Int) -> tuple[str, ...]:
    """Names of the indices in an integer, by first occurrence."""
    return tuple(dict.fromkeys(a.name for a in value.atoms() if isinstance(a, Index)))
