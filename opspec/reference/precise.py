"""Where a division must be a division: values that a floor, a comparison or an integer follows (rule 12)."""

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
)


def precise_names(op: Op) -> frozenset[str]:
    """Statements whose value reaches a floor, a comparison or an integer (rule 12)."""
    found: set[str] = set()

    def visit(value: Value, strict: bool) -> None:
        match value:
            case Literal() | Extent() | Scalar():
                return
            case Read(name=name, otherwise=otherwise):
                if strict:
                    found.add(name)
                if otherwise is not None:
                    visit(otherwise, strict)
            case Unary(op=op_, x=x):
                visit(x, strict or op_ in ("floor", "ceil", "round"))
            case Binary(op=op_, a=a, b=b):
                inner = strict or op_ in ("floordiv", "mod")
                visit(a, inner)
                visit(b, inner)
            case Compare(a=a, b=b):
                visit(a, True)
                visit(b, True)
            case Select(condition=c, a=a, b=b):
                visit(c, strict)
                visit(a, strict)
                visit(b, strict)
            case Cast(x=x):
                visit(x, strict or compute_dtype(value.to) != F32)
            case Reduce(body=body, empty=empty):
                visit(body, strict or value.monoid in ("argmax", "argmin"))
                if empty is not None:
                    visit(empty, strict)
            case Scan(body=body, decay=decay):
                visit(body, strict)
                if decay is not None:
                    visit(decay, strict)
            case _:
                assert_never(value)

    for define in reversed(op.defines):
        visit(define.value, define.name in found)
    return frozenset(found)
