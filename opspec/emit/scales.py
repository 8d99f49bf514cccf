"""How large random inputs are drawn, so that products keep unit scale as in a trained model.

The size of every value is estimated from inputs of unit size: a sum of n products of random signs grows as the
square root of n, one of positive terms as n, a quotient by what divides. Where a product that the spec itself
doesn't scale down comes out larger than a few units, one of its factors, the weight, is drawn smaller by just
that. An estimate is a number times powers of extents, so that it holds for every shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from opspec.emit.host import host_int
from opspec.emit.signs import Signs, factors
from opspec.ir.dtypes import F32, choices, compute_dtype
from opspec.ir.integers import Int
from opspec.ir.program import Define, Op, Tensor, Workload
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
    free_indices,
    operands,
    walk,
)

LARGE = 2.0  # units beyond which a product is scaled down
HALF = Fraction(1, 2)
CODES = {4: 4.6, 8: 74.0}  # root mean squares of random codes


@dataclass(frozen=True, slots=True)
class Size:
    """``factor`` times powers of extents."""

    factor: float = 1.0
    powers: tuple[tuple[Int, Fraction], ...] = ()

    def __mul__(self, other: Size) -> Size:
        powers = dict(self.powers)
        for extent, p in other.powers:
            powers[extent] = powers.get(extent, Fraction(0)) + p
        return Size(self.factor * other.factor, tuple((e, p) for e, p in powers.items() if p))

    def __pow__(self, power: Fraction) -> Size:
        return Size(self.factor ** float(power), tuple((e, p * power) for e, p in self.powers))

    def at(self, dims: Mapping[str, int]) -> float:
        """Its value at one shape."""
        found = self.factor
        for extent, p in self.powers:
            found *= float(max(extent.evaluate(dims), 1)) ** float(p)
        return found

    def text(self, names: Mapping[str, str]) -> str:
        """As a Python expression of dims."""
        parts = [] if 0.4 < self.factor < 2.5 and self.powers else [f"{self.factor:.2g}"]
        groups: dict[Fraction, list[str]] = {}
        for extent, p in self.powers:
            groups.setdefault(p, []).append(host_int(extent, names, tight=True))
        for p, extents in groups.items():
            base = extents[0] if len(extents) == 1 else f"({' * '.join(extents)})"
            parts.append(base if p == 1 else f"{base} ** {float(p):g}")
        return " * ".join(parts)


def input_scales(op: Op, workloads: tuple[Workload, ...], signs: Signs) -> dict[str, Size]:
    """The size of each input that isn't drawn with unit size."""
    cases = [dict(dims) for w in workloads for _, dims in w.cases]
    dims = {d: max((c[d] for c in cases), default=1024) for d in op.dims}
    scales = _Scales(op, dims, signs)
    for define in op.defines:
        if isinstance(define.value, Reduce) and define.value.monoid == "sum":
            scales.settle(define)
    return scales.drawn


class _Scales:
    def __init__(self, op: Op, dims: Mapping[str, int], signs: Signs) -> None:
        self.op, self.dims, self.signs = op, dims, signs
        self.defines = {d.name: d for d in op.defines}
        self.drawn: dict[str, Size] = {}
        self.sizes: dict[str, Size] = {}

    # which factor is drawn smaller -----------------------------------------------------
    def settle(self, define: Define) -> None:
        """Scale a weight of a product that comes out large."""
        value = define.value
        assert isinstance(value, Reduce)
        leaves = list(self._leaves(value.body))
        bound = {r.index for r in value.ranges}
        if len({free_indices(f) for f in leaves if bound & free_indices(f)}) < 2:
            return  # no product of different operands: a sum of squares, say
        size, around = self._use(define.name)
        if size.at(self.dims) <= LARGE:
            return
        weight = self._weight(define, [*leaves, *around])
        if weight is not None:
            self.drawn[weight] = self.drawn.get(weight, Size()) * size ** Fraction(-1)
            self.sizes.clear()

    def _leaves(self, value: Value) -> Iterator[Value]:
        """Factors of a product, through values that are products themselves."""
        for f in factors(value):
            define = self.defines.get(f.name) if isinstance(f, Read) else None
            if define is None or isinstance(define.value, Reduce | Scan) or not isinstance(f, Read):
                yield f
                continue
            inner = list(self._leaves(define.value))
            renamed = dict(zip(define.indices, (i.index for i in f.indices), strict=True))
            for leaf in inner:
                if isinstance(leaf, Read) and all(
                    i.index is None or i.index in renamed for i in leaf.indices
                ):
                    names = {k: v for k, v in renamed.items() if v is not None}
                    yield Read(
                        name=leaf.name, indices=tuple(i.rename(names) for i in leaf.indices), dtype=leaf.dtype
                    )
                else:
                    yield leaf

    def _use(self, name: str) -> tuple[Size, list[Value]]:
        """The largest size that a product has where it is used, scaled as the spec scales it there, and by what."""
        own = self.size(Read(name=name, indices=(), dtype=F32))
        found: list[tuple[Size, list[Value]]] = []
        for define in self.op.defines:
            for top in self._tops(define.value, name):
                by = self._times(top, name) or Size()
                others = [f for f in factors(top) if not (isinstance(f, Read) and f.name == name)]
                if top is define.value:
                    size, more = self._use(define.name)
                    by, others = size * self.size(top) ** Fraction(-1) * by, others + more
                found.append((own * by, others))
        return max(found, key=lambda f: f[0].at(self.dims), default=(own, list[Value]()))

    def _weight(self, define: Define, leaves: list[Value]) -> str | None:
        """The input to scale: of those in 16 bits or more that are not yet scaled, the one that walks along the
        later axes of the result, such as the weights of a layer and not its rows."""
        shared = frozenset.intersection(*(free_indices(f) for f in leaves))
        order = define.indices
        best: tuple[int, str] | None = None
        for leaf in leaves:
            tensor = self.op.tensor(leaf.name) if isinstance(leaf, Read) else None
            if tensor is None or not _scalable(tensor) or tensor.name in self.drawn:
                continue
            own = [order.index(i) for i in free_indices(leaf) - shared if i in order]
            rank = min(own, default=-1)
            if best is None or rank > best[0]:
                best = (rank, tensor.name)
        return best[1] if best else None

    def _tops(self, value: Value, name: str) -> Iterator[Value]:
        """The largest values below ``value`` in which ``name`` stands as a term, or as a factor beside inputs."""
        if self._times(value, name) is not None:
            yield value
            return
        for part in operands(value):
            yield from self._tops(part, name)

    def _times(self, value: Value, name: str) -> Size | None:
        """What ``name`` is multiplied by in a value of which it is a factor of a term; None where it isn't."""
        match value:
            case Read(name=n):
                return Size() if n == name else None
            case Binary(op="add", a=a, b=b):
                found = [t for v in (a, b) if (t := self._times(v, name)) is not None]
                return max(found, key=lambda t: t.at(self.dims), default=None)
            case Binary(op="mul", a=a, b=b):
                for one, other in ((a, b), (b, a)):
                    times = self._times(one, name)
                    if times is not None and self._given(other):
                        return times * self.size(other)
                return None
            case Binary(op="div", a=a, b=b):
                times = self._times(a, name)
                return None if times is None else times * self.size(b) ** Fraction(-1)
            case Unary(op="neg", x=x) | Cast(x=x):
                return self._times(x, name)
            case _:
                return None

    def _given(self, value: Value) -> bool:
        """Whether a value is of inputs, scalars and dims alone."""
        return not any(isinstance(n, Read) and n.name in self.defines for n in walk(value))

    # sizes -----------------------------------------------------------------------------
    def size(self, value: Value) -> Size:
        """The root mean square of a value, as estimated."""
        match value:
            case Literal(value=v):
                return Size(abs(float(v))) if 0 < abs(float(v)) < float("inf") else Size()
            case Extent(value=v):
                plain = not v.free_indices() and not v.tensors()
                return Size(1.0, ((v, Fraction(1)),)) if plain and v.constant is None else Size()
            case Scalar(name=name):
                default = next(s.default for s in self.op.scalars if s.name == name)
                return Size(abs(float(default))) if default else Size()
            case Read():
                return self._read(value)
            case Unary():
                return self._unary(value)
            case Binary():
                return self._binary(value)
            case Compare():
                return Size()
            case Select(a=a, b=b):
                return self._larger(self.size(a), self.size(b))
            case Cast(x=x):
                return self.size(x)
            case Reduce():
                return self._reduce(value)
            case Scan(monoid=monoid, body=body):
                # a share is kept of what came before: it doesn't grow with the length
                return self.size(body) if monoid == "sum" else Size()
            case _:
                assert_never(value)

    def _read(self, read: Read) -> Size:
        define = self.defines.get(read.name)
        if define is not None:
            if read.name not in self.sizes:
                self.sizes[read.name] = self.size(define.value)
            return self.sizes[read.name]
        tensor = self.op.tensor(read.name)
        assert tensor is not None
        dtype = choices(tensor.dtype)[0]
        if dtype.kind == "int":
            return Size(CODES.get(dtype.bits, 1.0))
        return self.drawn.get(read.name, Size())

    def _unary(self, value: Unary) -> Size:
        size = self.size(value.x)
        match value.op:
            case "sqrt":
                return size**HALF
            case "rsqrt":
                return size**-HALF
            case "reciprocal":
                return size ** Fraction(-1)
            case "neg" | "abs" | "round" | "floor" | "ceil":
                return size
            case "sin" | "tanh" | "erf":
                return size if size.at(self.dims) < 1 else Size()
            case _:
                return Size()

    def _binary(self, value: Binary) -> Size:
        a, b = self.size(value.a), self.size(value.b)
        match value.op:
            case "mul":
                return a * b
            case "div":
                return a * b ** Fraction(-1)
            case "add" | "sub":
                return self._sum(a, b)
            case "max":
                return self._larger(a, b)
            case "min":
                bounded = any(not isinstance(n, Read) for v in (value.a, value.b) for n in walk(v))
                return self._smaller(a, b) if bounded else self._larger(a, b)
            case _:
                return a

    def _reduce(self, value: Reduce) -> Size:
        body = self.size(value.body)
        if value.monoid in ("max", "min"):
            return body * Size(3.0)
        if value.monoid != "sum":
            return Size()
        power = Fraction(1) if self.signs.never_negative(value.body) else HALF
        for r in value.ranges:
            n = r.upper.constant
            body = body * (
                Size(float(max(n, 1)) ** float(power)) if n is not None else Size(1.0, ((r.upper, power),))
            )
        return body

    def _larger(self, a: Size, b: Size) -> Size:
        return a if a.at(self.dims) >= b.at(self.dims) else b

    def _smaller(self, a: Size, b: Size) -> Size:
        return b if a.at(self.dims) >= b.at(self.dims) else a

    def _sum(self, a: Size, b: Size) -> Size:
        big, small = self._larger(a, b).at(self.dims), self._smaller(a, b).at(self.dims)
        return self._larger(a, b) * Size((1 + (small / big) ** 2) ** 0.5) if big > 0 else a


def _scalable(tensor: Tensor) -> bool:
    wide = compute_dtype(tensor.dtype) is F32 and all(d.bits >= 16 for d in choices(tensor.dtype))
    return wide and tensor.role == "in"
