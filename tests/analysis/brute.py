"""The counting rules (semantics 15 to 19) by enumeration: loops over points, sets of addresses.

Shares nothing with ``opspec.analysis``: it is what the closed forms are held against.
Several shapes are enumerated side by side; two expressions are the same if they
have the same structure and, in every shape, the same points.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass, field

from opspec.ir.integers import Datum, Int
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
)

SFU = {"exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "reciprocal"}


@dataclass
class Shape:
    """Concrete dims and integer data (``data[name][index tuple]``)."""

    dims: dict[str, int]
    data: dict[str, dict[tuple[int, ...], int]] = field(default_factory=dict)

    def value(self, e: Int, point: dict[str, int]) -> int:
        return e.evaluate({**self.dims, **point}, lambda name, at: self.data[name][at])


def points(ranges, constraints, shape, start=None):
    """All points of a domain; a condition on data counts as met unless a length is declared."""
    start = [{}] if start is None else start
    for r in ranges:
        start = [
            {**p, r.index: v} for p in start for v in range(shape.value(r.lower, p), shape.value(r.upper, p))
        ]
    return [p for p in start if all(shape.value(c, p) >= 0 for c in constraints)]


# --- structure -------------------------------------------------------------------------------------


def spell(value, defines, rename):
    """A nested tuple of the expression with other statements written out."""

    def ints(e):
        return e.substitute(lambda a: rename.get(a.name) if type(a).__name__ == "Index" else None)

    def go(v):
        return spell(v, defines, rename)

    match value:
        case Literal():
            return ("lit", repr(value.value), value.dtype.name)
        case Extent():
            return ("ext", value.dtype.name, ints(value.value))
        case Scalar():
            return ("scalar", value.name)
        case Read() if value.name in defines:
            d = defines[value.name]
            if value.otherwise is None:
                at = dict(zip(d.indices, map(ints, value.indices), strict=True))
                return spell(d.value, {k: v for k, v in defines.items() if k != d.name}, at)
            return ("at", value.name, *map(ints, value.indices), go(value.otherwise))
        case Read():
            tail = () if value.otherwise is None else (go(value.otherwise),)
            return ("read", value.name, *map(ints, value.indices), *tail)
        case Unary():
            return (value.op, go(value.x))
        case Binary() | Compare():
            return (value.op, go(value.a), go(value.b))
        case Select():
            return ("select", go(value.condition), go(value.a), go(value.b))
        case Cast():
            return ("cast", value.to.name, value.mode, go(value.x))
        case Reduce():
            fresh = {r.index: _fresh(r.index) for r in value.ranges}
            inner = {**rename, **fresh}
            bound = tuple(
                (fresh[r.index].atom.name, _sub(r.lower, inner), _sub(r.upper, inner)) for r in value.ranges
            )
            return (
                "reduce", value.monoid, value.using, bound,
                tuple(_sub(c, inner) for c in value.constraints),
                spell(value.body, defines, inner),
            )  # fmt: skip
        case Scan():
            parts = tuple(go(v) for v in (value.body, value.decay) if v is not None)
            return ("scan", value.monoid, value.reverse, _sub(_index(value.index), rename), *parts)


_counter = itertools.count()


def _fresh(name):
    return _index(f"{name}'{next(_counter)}")


def _index(name):
    from opspec.ir.integers import index

    return index(name)


def _sub(e, rename):
    return e.substitute(lambda a: rename.get(a.name) if type(a).__name__ == "Index" else None)


def free_of(tree):
    """Free indices of a spelled tree by first occurrence, and the tree with canonical names."""
    order: dict[str, str] = {}
    bound: dict[str, str] = {}

    def name(x):
        if x in bound:
            return bound[x]
        return order.setdefault(x, f"@{len(order)}")

    def go(t):
        if isinstance(t, Int):
            for a in t.atoms():
                if type(a).__name__ == "Index":
                    name(a.name)
            return str(t.substitute(lambda a: _index(name(a.name)) if type(a).__name__ == "Index" else None))
        if isinstance(t, tuple):
            if t and t[0] == "reduce":
                for b, _, _ in t[3]:
                    bound[b] = f"%{len(bound)}"
                # body first, so that order of occurrence is that of writing
                body = go(t[5])
                return ("reduce", t[1], t[2], tuple((bound[b], go(lo), go(hi)) for b, lo, hi in t[3]),
                        tuple(go(c) for c in t[4]), body)  # fmt: skip
            return tuple(go(x) for x in t)
        return t

    done = go(tree)
    return tuple(order), done


def dims_only(value, defines):
    """Literals, expressions of dims alone, and integer arithmetic of indices."""
    names, _ = free_of(spell(value, defines, {}))
    return costless(value, defines) and not names


def costless(value, defines):
    match value:
        case Literal():
            return True
        case Extent():
            return not value.value.tensors()
        case Cast():
            return dims_only(value.x, defines)
        case Unary():
            parts = (value.x,)
        case Binary() | Compare():
            parts = (value.a, value.b)
        case Read() if value.name in defines and value.otherwise is None:
            return costless(defines[value.name].value, defines)
        case _:
            return False
    integer = all(p.dtype.kind != "float" for p in parts)
    return all(costless(p, defines) and (integer or dims_only(p, defines)) for p in parts)


# --- operations ------------------------------------------------------------------------------------


class Tally:
    """Occurrences of operations: (structure, unit, op) with their points per shape."""

    def __init__(self, op: Op, shapes: list[Shape]):
        self.op, self.shapes = op, shapes
        self.defines: dict[str, Define] = {}
        self.seen = set()
        self.totals = [defaultdict(int) for _ in shapes]

    def run(self):
        for d in self.op.defines:
            full = [points(d.ranges, d.constraints, s) for s in self.shapes]
            self.visit(d.value, full)
            self.defines[d.name] = d
        return self.totals

    def add(self, tree, bound, full, unit, op, scale=1):
        names, key = free_of(tree)
        chosen = (*names, *sorted(bound))
        sets = tuple(frozenset(tuple(p[n] for n in chosen) for p in pts) for pts in full)
        marker = (key, unit, op, sets)
        if marker in self.seen:
            return
        self.seen.add(marker)
        for total, s in zip(self.totals, sets, strict=True):
            total[unit] += scale * len(s)
            total[f"{unit}.{op}"] += scale * len(s)

    def spell(self, value):
        return spell(value, self.defines, {})

    def visit(self, value, full):
        if costless(value, self.defines):
            return
        match value:
            case Read():
                if value.otherwise is not None:
                    self.visit(value.otherwise, full)
            case Cast():
                self.visit(value.x, full)
            case Unary():
                self.visit(value.x, full)
                if value.op in SFU:
                    self.add((value.op, self.spell(value.x)), (), full, "sfu", value.op)
                elif value.op not in ("neg", "not"):
                    self.add(self.spell(value), (), full, "vector", value.op)
            case Binary() | Compare():
                self.visit(value.a, full)
                self.visit(value.b, full)
                name = value.op
                if value.op == "div":
                    name = "mul"
                    if not dims_only(value.b, self.defines):
                        self.add(("reciprocal", self.spell(value.b)), (), full, "sfu", "reciprocal")
                self.add(
                    self.spell(value), (), full, "vector", "compare" if isinstance(value, Compare) else name
                )
            case Select():
                for part in (value.condition, value.a, value.b):
                    self.visit(part, full)
                self.add(self.spell(value), (), full, "vector", "select")
            case Scan():
                self.visit(value.body, full)
                self.add(self.spell(value), (), full, "vector", value.monoid)
                if value.decay is not None:
                    self.visit(value.decay, full)
                    self.add(("decay", self.spell(value)), (), full, "vector", "mul")
            case Reduce():
                self.reduce(value, full)

    def reduce(self, value, outer):
        full = [
            points(value.ranges, value.constraints, s, pts) for s, pts in zip(self.shapes, outer, strict=True)
        ]
        bound = {r.index for r in value.ranges}
        factors = product(value.body)
        sets = [set(free_of(self.spell(f))[0]) for f, _ in factors]
        both = [k for k, s in enumerate(sets) if bound <= s]
        order = sorted(both, key=lambda k: (-len(sets[k]), k))
        pair = order[:1] + [k for k in order if sets[k] != sets[order[0]]][:1]
        tree = self.spell(value)
        if value.monoid == "sum" and len(pair) == 2:
            for f, divides in factors:
                self.visit(f, full)
                if divides and not dims_only(f, self.defines):
                    self.add(("reciprocal", self.spell(f)), (), full, "sfu", "reciprocal")
            self.add(tree, bound, full, "tensor", "contraction", 2)
            others = [s for k, s in enumerate(sets) if k not in pair]
            for k, s in enumerate(others):
                self.add(("further", k, tree), bound if s & bound else (), full, "vector", "mul")
        else:
            self.visit(value.body, full)
            self.add(tree, bound, full, "vector", value.monoid)


def product(value):
    match value:
        case Binary(op="mul"):
            return product(value.a) + product(value.b)
        case Binary(op="div"):
            return [*product(value.a), (value.b, True)]
        case Unary(op="neg"):
            return product(value.x)
    return [(value, False)]


# --- bytes -----------------------------------------------------------------------------------------


def addresses(op: Op, boundary: str, shape: Shape):
    """(kernel, tensor, direction) to the set of addresses touched."""
    kernels = next(b.kernels for b in op.boundaries if b.name == boundary)
    home = {d.name: k.name for k in kernels for d in k.body}
    defines = {d.name: d for k in kernels for d in k.body}
    found = defaultdict(set)
    for kernel in kernels:
        made, filled = set(), set()
        for d in kernel.body:
            here = points(d.ranges, d.constraints, shape)

            def touch(name, at, kernel=kernel, made=made, filled=filled):
                if name in made:
                    return
                tensor = op.tensor(name)
                if tensor is not None and tensor.role == "out" and name in filled:
                    return
                if name in defines and (tensor is None or name in home):
                    out = defines[name].output
                    if out is not None:
                        env = dict(zip(defines[name].indices, at, strict=True))
                        at = tuple(shape.value(e, env) for e in out.at)
                        name = out.tensor
                found[kernel.name, name, "read"].add(at)

            collect(op, d, here, shape, touch)
            made.add(d.name)
            if d.output is not None:
                filled.add(d.output.tensor)
                for p in here:
                    at = tuple(shape.value(e, p) for e in d.output.at)
                    found[kernel.name, d.output.tensor, "write"].add(at)
    for name in crossing(kernels, home, defines):
        d = defines[name]
        pts = points(d.ranges, d.constraints, shape)
        found[home[name], name, "write"] |= {tuple(p[x] for x in d.indices) for p in pts}
    return found


def crossing(kernels, home, defines):
    """Statements without an output that another block's text reads."""
    return {
        v.name
        for k in kernels
        for d in k.body
        for v in every(d.value)
        if isinstance(v, Read)
        and v.name in home
        and home[v.name] != k.name
        and defines[v.name].output is None
    }


def every(value):
    yield value
    for name in ("x", "a", "b", "condition", "body", "otherwise", "empty"):
        child = getattr(value, name, None)
        if child is not None and not isinstance(child, str):
            yield from every(child)


def collect(op, define, pts, shape, touch):
    def data(e, p):
        for a in e.atoms():
            if isinstance(a, Datum):
                touch(a.tensor, tuple(shape.value(i, p) for i in a.indices))

    for r in define.ranges:
        for p in pts:
            data(r.lower, p)
            data(r.upper, p)
    for c in define.constraints:
        for p in pts:
            data(c, p)
    if define.output is not None:
        for e in define.output.at:
            for p in pts:
                data(e, p)
    for p in pts:
        walk(op, define.value, p, shape, touch, data)


def walk(op, value, p, shape, touch, data):
    def go(v, q=p):
        walk(op, v, q, shape, touch, data)

    match value:
        case Read():
            for e in value.indices:
                data(e, p)
            at = tuple(shape.value(e, p) for e in value.indices)
            tensor = op.tensor(value.name)
            inside = tensor is None or all(
                0 <= a < shape.value(e, {}) for a, e in zip(at, tensor.extents, strict=True)
            )
            if value.otherwise is not None:
                go(value.otherwise)
            assert inside or value.otherwise is not None, (value.name, at)
            if inside:
                touch(value.name, at)
        case Select():
            go(value.condition)
            known = truth(value.condition, p, shape)
            if known is not False:
                go(value.a)
            if known is not True:
                go(value.b)
        case Reduce():
            for q in points(value.ranges, value.constraints, shape, [p]):
                for r in value.ranges:
                    data(r.lower, q)
                    data(r.upper, q)
                for c in value.constraints:
                    data(c, q)
                go(value.body, q)
        case Extent():
            data(value.value, p)
        case Unary() | Cast():
            go(value.x)
        case Binary() | Compare():
            go(value.a)
            go(value.b)
        case Scan():
            go(value.body)
            if value.decay is not None:
                go(value.decay)


def truth(value, p, shape):
    match value:
        case Compare() if isinstance(value.a, Extent) and isinstance(value.b, Extent):
            if value.a.value.tensors() or value.b.value.tensors():
                return None
            a, b = shape.value(value.a.value, p), shape.value(value.b.value, p)
            return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b}[
                value.op
            ]
        case Unary(op="not"):
            t = truth(value.x, p, shape)
            return None if t is None else not t
        case Binary(op="and" | "or"):
            a, b = truth(value.a, p, shape), truth(value.b, p, shape)
            stop = value.op == "or"
            if a is stop or b is stop:
                return stop
            return None if a is None or b is None else not stop
    return None
