"""The op by its definition: one point at a time, in Python floats, without arrays or errors."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from opspec.ir.integers import Int
from opspec.ir.program import Define, Op
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Range,
    Read,
    Reduce,
    Scalar,
    Scan,
    Select,
    Unary,
    Value,
)
from opspec.reference.rounding import round_to

UNARY = {
    "neg": lambda x: -x, "not": lambda x: not x, "abs": abs, "round": np.rint, "floor": np.floor, "ceil": np.ceil,
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "erf": math.erf, "reciprocal": lambda x: 1 / np.float64(x),
}  # fmt: skip
BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: np.float64(a) / b, "min": np.minimum, "max": np.maximum, "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b, "and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b),
}  # fmt: skip
COMPARE = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


class Brute:
    def __init__(self, op: Op, inputs: dict, scalars: dict, dims: dict) -> None:
        self.op = op
        self.dims = dict(dims) | {n: v.evaluate(dims) for n, v in op.derived}
        self.scalars = {s.name: scalars.get(s.name, s.default) for s in op.scalars}
        self.tables: dict[str, dict[tuple[int, ...], float]] = {
            name: dict(np.ndenumerate(value)) for name, value in inputs.items()
        }
        self.shapes = {t.name: tuple(e.evaluate(self.dims) for e in t.extents) for t in op.tensors}
        for t in op.tensors:
            self.tables.setdefault(t.name, {})

    def run(self) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            for define in self.op.defines:
                self.define(define)
        out = {}
        for t in self.op.tensors:
            if t.role != "in":
                out[t.name] = np.full(self.shapes[t.name], np.nan)
                for at, v in self.tables[t.name].items():
                    out[t.name][at] = v
        return out

    def int(self, value: Int, env: dict) -> int:
        return value.evaluate(self.dims | env, lambda t, at: int(self.tables[t][at]))

    def points(self, ranges: tuple[Range, ...], constraints: tuple[Int, ...], env: dict) -> Iterator[dict]:
        if not ranges:
            if all(self.int(c, env) >= 0 for c in constraints):
                yield env
            return
        first, *rest = ranges
        for i in range(self.int(first.lower, env), self.int(first.upper, env)):
            yield from self.points(tuple(rest), constraints, env | {first.index: i})

    def define(self, define: Define) -> None:
        table = {}
        for env in self.points(define.ranges, define.constraints, {}):
            table[tuple(env[i] for i in define.indices)] = self.value(define.value, env, define)
        if define.output is None or define.name != define.output.tensor:
            self.tables[define.name] = table
        if define.output is not None:
            for at, v in table.items():
                env = dict(zip(define.indices, at, strict=True))
                self.tables[define.output.tensor][tuple(self.int(i, env) for i in define.output.at)] = v

    def value(self, value: Value, env: dict, define: Define):
        match value:
            case Literal(value=v):
                return v
            case Extent(value=v):
                return self.int(v, env)
            case Scalar(name=name):
                return self.scalars[name]
            case Read(name=name, indices=at, otherwise=otherwise):
                found = self.tables[name].get(tuple(self.int(i, env) for i in at))
                if found is None:
                    assert otherwise is not None, f"{name} read outside its domain"
                    return self.value(otherwise, env, define)
                return found
            case Unary(op=op, x=x):
                return UNARY[op](self.value(x, env, define))
            case Binary(op=op, a=a, b=b):
                return BINARY[op](self.value(a, env, define), self.value(b, env, define))
            case Compare(op=op, a=a, b=b):
                return COMPARE[op](self.value(a, env, define), self.value(b, env, define))
            case Select(condition=c, a=a, b=b):
                return self.value(a if self.value(c, env, define) else b, env, define)
            case Cast(to=to, mode=mode, x=x):
                inner = self.value(x, env, define)
                return inner if to.name == "f32" else round_to(to, np.asarray(inner), mode)[()]
            case Reduce(monoid=monoid, ranges=ranges, constraints=constraints, body=body, empty=empty):
                terms = [
                    (self.value(body, e, define), e[ranges[-1].index])
                    for e in self.points(ranges, constraints, env)
                ]
                return self.combined(monoid, terms, empty, env, define)
            case Scan(monoid=monoid, index=index, body=body, reverse=reverse):
                here = env[index]
                terms = []
                for e in self.points(define.ranges, define.constraints, {}):
                    same = all(e[k] == v for k, v in env.items() if k != index)
                    if same and (e[index] >= here if reverse else e[index] <= here):
                        terms.append((self.value(body, e, define), e[index]))
                return self.combined(monoid, terms, None, env, define)

    def combined(self, monoid: str, terms: list, empty: Value | None, env: dict, define: Define):
        values = [v for v, _ in terms]
        match monoid:
            case "sum":
                return sum(values)
            case "prod":
                return math.prod(values)
            case "any":
                return any(values)
            case "all":
                return all(values)
        if not values:
            assert empty is not None
            return self.value(empty, env, define)
        if monoid in ("max", "min"):
            return getattr(np, monoid)(values)
        return terms[int(getattr(np, monoid)(values))][1]
