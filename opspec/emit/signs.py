"""Which inputs an op's mathematics takes as positive, so that a driver draws them so.

An input that reaches a square root or a logarithm through operations that keep what is not negative, and one
that divides, must be positive for the result to mean anything. Nothing is proven here and no kernel depends
on it: it says how random inputs are drawn.
"""

from __future__ import annotations

from typing import assert_never

from opspec.ir.dtypes import F32, compute_dtype
from opspec.ir.program import Op
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
    walk,
)

ROOTS = ("sqrt", "rsqrt", "log")
ODD = ("neg", "tanh", "erf", "sin", "round", "floor", "ceil", "reciprocal")


class Signs:
    """``positive``: inputs that must be; ``shares``: those that say which share of a running sum is kept."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.defines = {d.name: d for d in op.defines}
        self.known: dict[str, bool] = {}
        self.positive: set[str] = set()
        self.shares: set[str] = set()
        for define in op.defines:
            for node in walk(define.value):
                match node:
                    case Unary(op=o, x=x) if o in ROOTS:
                        self._need(x)
                    case Unary(op="reciprocal", x=x) | Binary(op="div", b=x):
                        self.positive |= self._inputs(x)
                    case Scan(decay=decay) if decay is not None:
                        self.shares |= self._inputs(decay)
                    case _:
                        pass

    def _inputs(self, value: Value) -> set[str]:
        """Float inputs among the factors of a value."""
        return {f.name for f in factors(value) if isinstance(f, Read) and self._real(f)}

    def _real(self, read: Read) -> bool:
        tensor = self.op.tensor(read.name)
        return tensor is not None and tensor.role != "out" and compute_dtype(tensor.dtype) is F32

    def _need(self, value: Value) -> None:
        """Take as positive what must be for a value not to be negative."""
        if self.never_negative(value):
            return
        match value:
            case Read() if self._real(value):
                self.positive.add(value.name)
            case Read(name=name) if name in self.defines:
                self._need(self.defines[name].value)
            case Binary(op="mul" | "div"):
                for f in odd(value):
                    self._need(f)
            case Binary(op="add" | "max" | "min", a=a, b=b) | Select(a=a, b=b):
                self._need(a)
                self._need(b)
            case Cast(x=x) | Unary(op="reciprocal", x=x):
                self._need(x)
            case Reduce(monoid="sum" | "prod" | "max" | "min", body=body):
                self._need(body)
            case Scan(monoid="sum" | "prod" | "max" | "min", body=body):
                self._need(body)
            case _:
                return

    def never_negative(self, value: Value) -> bool:
        """Whether a value can't be negative, if scalars are not and inputs are as they are drawn."""
        match value:
            case Literal(value=v):
                return v >= 0
            case Extent() | Scalar() | Compare():
                return True
            case Read(name=name):
                if name in self.defines:
                    if name not in self.known or not self.known[name]:
                        self.known[name] = self.never_negative(self.defines[name].value)
                    return self.known[name]
                tensor = self.op.tensor(name)
                return name in self.positive | self.shares or (tensor is not None and _flags(tensor.dtype))
            case Unary(op=op, x=x):
                return op not in (*ODD, "log") or (op not in ("neg", "log", "sin") and self.never_negative(x))
            case Binary(op="mul" | "div"):
                return all(self.never_negative(f) for f in odd(value))
            case Binary(op="max", a=a, b=b):
                return self.never_negative(a) or self.never_negative(b)
            case Binary(op="sub"):
                # a difference of scalars, such as 1 - beta; of data it may be anything
                return not any(isinstance(n, Read) for n in walk(value))
            case Binary(a=a, b=b) | Select(a=a, b=b):
                return self.never_negative(a) and self.never_negative(b)
            case Cast(x=x):
                return self.never_negative(x)
            case Reduce(monoid=monoid, body=body) | Scan(monoid=monoid, body=body):
                return monoid in ("any", "all", "argmax", "argmin") or self.never_negative(body)
            case _:
                assert_never(value)


def factors(value: Value) -> list[Value]:
    """What a value is a product of; casts are looked through, divisors left out."""
    match value:
        case Binary(op="mul", a=a, b=b):
            return [*factors(a), *factors(b)]
        case Binary(op="div", a=a):
            return factors(a)
        case Cast(x=x):
            return factors(x)
        case _:
            return [value]


def odd(value: Value) -> list[Value]:
    """Factors and divisors that stand an odd number of times: the square of one is never negative."""
    found: list[Value] = []

    def collect(v: Value) -> None:
        match v:
            case Binary(op="mul" | "div", a=a, b=b):
                collect(a)
                collect(b)
            case Cast(x=x):
                collect(x)
            case _ if v in found:
                found.remove(v)
            case _:
                found.append(v)

    collect(value)
    return found


def _flags(dtype: object) -> bool:
    return getattr(dtype, "kind", "") == "bool"
