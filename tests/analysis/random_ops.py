"""Random legal IR: statements over masked domains, with reads of every kind that the rules name."""

from __future__ import annotations

import random

from opspec.ir.dtypes import BF16, BOOL, F32, I32, I64
from opspec.ir.integers import Datum, Int, dim, floor_div, index, mod
from opspec.ir.program import Assume, Boundary, Define, Kernel, Op, Output, Tensor
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Range,
    Read,
    Reduce,
    Scan,
    Select,
    Unary,
)

DIMS = ("A", "B", "C")
NAMES = ("i", "j", "k", "m")


class Maker:
    """One random op. All tensors have extents large enough for any read made of them."""

    def __init__(self, seed: int):
        self.r = random.Random(seed)
        self.tensors: dict[str, Tensor] = {}
        self.defines: list[Define] = []
        self.assumes: list[Assume] = []

    def pick(self, *options):
        return self.r.choice(options)

    def op(self) -> Op:
        for number in range(self.r.randint(1, 4)):
            self.define(f"v{number}")
        last = self.defines[-1]
        extents = tuple(r.upper for r in last.ranges)
        if all(not e.free_indices() and not e.tensors() for e in extents):
            self.tensors["out"] = Tensor(name="out", dtype=F32, extents=extents, role="out")
            at = tuple(map(index, last.indices))
            self.defines[-1] = Define(
                name=last.name, origin=last.origin, kind="value", ranges=last.ranges,
                constraints=last.constraints, value=last.value, output=Output(tensor="out", at=at),
            )  # fmt: skip
        one = Boundary(name="", kernels=(Kernel(name="all", body=tuple(self.defines)),))
        many = Boundary(
            name="each", kernels=tuple(Kernel(name=f"k.{d.name}", body=(d,)) for d in self.defines)
        )
        return Op(
            name="made", doc="", dims=DIMS, derived=(), dtype_params=(), tensors=tuple(self.tensors.values()),
            scalars=(), parameters=tuple(self.tensors), requires=(), assumes=tuple(self.assumes),
            boundaries=(one, many),
        )  # fmt: skip

    # domains ---------------------------------------------------------------------------------------
    def ranges(self, names) -> tuple[Range, ...]:
        return tuple(Range(index=n, upper=dim(self.pick(*DIMS))) for n in names)

    def constraints(self, ranges, names) -> tuple[Int, ...]:
        """Masks that involve at least one of ``names``."""
        found: list[Int] = []
        by = {r.index: r for r in ranges}
        if self.r.random() < 0.45 and len(by) > 1:
            a = self.pick(*names)
            b = self.pick(*[x for x in by if x != a])
            i, j = index(a), index(b)
            top, far = by[a].upper, by[b].upper
            found += self.pick(
                [i - j], [j - i], [i - j - 1], [i + far - top - j], [i - j, 2 - (i - j)], [i - j + 1, j - i + 1],
                [dim("A") - i - j], [2 * i - j], [i - 2 * j + 1], [i - j, dim("B") - 1 - (i - j)], [i + j - 2],
                [floor_div(i, Int.of(2)) - j],
            )  # fmt: skip
        if self.r.random() < 0.15:
            a = self.pick(*names)
            found += self.pick(
                [index(a) - 1], [by[a].upper - 2 - index(a)], [3 - index(a)], [dim("C") - 2 * index(a)]
            )
        if self.r.random() < 0.12 and len(by) > 1:
            t = self.pick(*names)
            b = self.pick(*[x for x in by if x != t])
            if not any(index(b).free_indices() & c.free_indices() for c in found):
                name = f"len{len(self.tensors)}"
                self.tensors[name] = Tensor(name=name, dtype=I32, extents=(by[b].upper,), role="in")
                datum = Int.of(Datum(name, (index(b),)))
                self.assumes.append(Assume(kind="bound", tensor=name, slack=by[t].upper - datum))
                found.append(datum - 1 - index(t))
        return tuple(found)

    # values ----------------------------------------------------------------------------------------
    def define(self, name: str) -> None:
        names = NAMES[: self.r.randint(1, 2)]
        ranges = self.ranges(names)
        constraints = self.constraints(ranges, names)
        style = self.r.random()
        if style < 0.5:
            bound = tuple(f"r{k}" for k in range(self.pick(1, 1, 1, 2)))
            inner = self.ranges(bound)
            more = self.constraints((*ranges, *inner), bound)
            every = (*ranges, *inner)
            monoid = self.pick("sum", "sum", "sum", "max", "any")
            if monoid == "any":
                body = Compare(op="lt", a=self.value(every, 1), b=self.value(every, 1), dtype=BOOL)
            elif monoid == "sum" and self.r.random() < 0.6:
                body = self.value(every, 1)
                for _ in range(self.pick(1, 1, 2)):
                    body = Binary(
                        op=self.pick("mul", "mul", "mul", "div"), a=body, b=self.value(every, 1), dtype=F32
                    )
            else:
                body = self.value(every, 2)
            value = Reduce(
                monoid=monoid, ranges=inner, constraints=more, body=body,
                dtype=BOOL if monoid == "any" else F32,
            )  # fmt: skip
        elif style < 0.6:
            decay = self.value(ranges, 1) if self.r.random() < 0.3 else None
            value = Scan(
                monoid="sum", index=self.pick(*names), body=self.value(ranges, 1), decay=decay, dtype=F32
            )
        else:
            value = self.value(ranges, 3)
        storage = self.pick(None, BF16)
        self.defines.append(
            Define(
                name=name,
                origin=name,
                kind="value",
                ranges=ranges,
                constraints=constraints,
                value=value,
                storage=storage,
            )
        )

    def value(self, ranges, depth: int):
        if depth == 0 or self.r.random() < 0.2:
            return self.leaf(ranges)
        kind = self.r.random()
        if kind < 0.25:
            return Unary(
                op=self.pick("exp", "neg", "abs", "sqrt", "reciprocal"),
                x=self.value(ranges, depth - 1),
                dtype=F32,
            )
        if kind < 0.75:
            ops = ("add", "sub", "mul", "div", "max")
            return Binary(
                op=self.pick(*ops),
                a=self.value(ranges, depth - 1),
                b=self.value(ranges, depth - 1),
                dtype=F32,
            )
        if kind < 0.85:
            return Cast(to=BF16, x=self.value(ranges, depth - 1), dtype=F32)
        return Select(
            condition=self.condition(ranges),
            a=self.value(ranges, depth - 1),
            b=self.value(ranges, depth - 1),
            dtype=F32,
        )

    def condition(self, ranges):
        a = Extent(value=index(self.pick(*ranges).index), dtype=I64)
        others = [index(r.index) for r in ranges] + [Int.of(1), Int.of(2), dim("A") - 1]
        b = Extent(value=self.pick(*others), dtype=I64)
        one = Compare(op=self.pick("lt", "le", "eq", "ne", "ge"), a=a, b=b, dtype=BOOL)
        if self.r.random() < 0.3:
            return Compare(op="lt", a=self.leaf(ranges), b=Literal(value=0.0, dtype=F32), dtype=BOOL)
        if self.r.random() < 0.2:
            c = Extent(value=index(self.pick(*ranges).index), dtype=I64)
            two = Compare(op="lt", a=c, b=Extent(value=Int.of(2), dtype=I64), dtype=BOOL)
            one = Binary(op=self.pick("and", "or"), a=one, b=two, dtype=BOOL)
        return Unary(op="not", x=one, dtype=BOOL) if self.r.random() < 0.2 else one

    def leaf(self, ranges):
        kind = self.r.random()
        if kind < 0.08:
            return Literal(value=self.pick(0.5, 2.0), dtype=F32)
        if kind < 0.13:
            return Extent(value=dim(self.pick(*DIMS)), dtype=F32)
        earlier = [d for d in self.defines if d.value.dtype is F32]
        if kind < 0.35 and earlier:
            d = self.pick(*earlier)
            used = self.fitting(d, ranges)
            if used is not None:
                return Read(name=d.name, indices=used, dtype=F32)
        return self.read(ranges)

    def fitting(self, d: Define, ranges):
        """Indices with which an earlier statement may be read: same extents, no masks on it."""
        if d.constraints or any(isinstance(n, Scan) for n in (d.value,)):
            return None
        chosen: list[Int] = []
        for want in d.ranges:
            options = [r.index for r in ranges if r.upper == want.upper and index(r.index) not in chosen]
            if not options:
                return None
            chosen.append(index(self.pick(*options)))
        return tuple(chosen)

    def read(self, ranges):
        rank = self.r.randint(1, min(3, len(ranges)))
        chosen = self.r.sample(list(ranges), rank)
        style = self.r.random()
        if style < 0.55:
            extents = tuple(r.upper for r in chosen)
            return Read(name=self.tensor(extents), indices=tuple(index(r.index) for r in chosen), dtype=F32)
        axes = [self.axis(r, ranges) for r in chosen[:2]]
        at, extents = tuple(a for a, _ in axes), tuple(e for _, e in axes)
        if style < 0.70:
            shift = self.pick(1, 2)
            at = tuple(a - shift for a in at)
            extents = tuple(e - self.pick(0, 1) for e in extents)
            extents = tuple(e if self.r.random() < 0.5 else e + 1 for e in extents)
            other = Literal(value=0.0, dtype=F32)
            return Read(name=self.tensor(extents), indices=at, otherwise=other, dtype=F32)
        if style < 0.78:
            size = dim(self.pick(*DIMS))
            table = f"idx{len(self.tensors)}"
            self.tensors[table] = Tensor(name=table, dtype=I64, extents=(chosen[0].upper,), role="in")
            datum = Int.of(Datum(table, (index(chosen[0].index),)))
            return Read(name=self.tensor((size, *extents[1:])), indices=(datum, *at[1:]), dtype=F32)
        return Read(name=self.tensor(extents), indices=at, dtype=F32)

    def axis(self, r: Range, ranges):
        """An index expression with an extent that is always large enough."""
        i, n = index(r.index), r.upper
        other = self.pick(*ranges)
        j, m = index(other.index), other.upper
        options = [
            (i, n), (i, n), (i + 1, n + 1), (2 * i, 2 * n), (2 * i + 1, 2 * n + 1), (n - 1 - i, n),
            (floor_div(i, Int.of(2)), n), (mod(i, Int.of(2)), Int.of(2)), (mod(i, Int.of(3)), Int.of(3)),
        ]  # fmt: skip
        if other.index != r.index:
            options += [(i + j, n + m), (2 * i + j, 2 * n + m), (3 * i + j, 3 * n + m), (i * m + j, n * m)]
        return self.pick(*options)

    def tensor(self, extents) -> str:
        same = [t.name for t in self.tensors.values() if t.extents == extents and t.dtype is BF16]
        if same and self.r.random() < 0.6:
            return self.pick(*same)
        name = f"x{len(self.tensors)}"
        self.tensors[name] = Tensor(name=name, dtype=BF16, extents=extents, role="in")
        return name
