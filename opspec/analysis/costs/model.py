"""The result of counting: terms, each with its origin, unit and closed form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as L

import sympy

from opspec.ir.dtypes import Storage
from opspec.ir.values import TRANSCENDENTAL

Unit = L["tensor", "vector", "sfu"]
UNITS: tuple[Unit, ...] = ("tensor", "vector", "sfu")
KINDS: dict[str, frozenset[str]] = {  # of operations that a unit other than the matrix unit does
    "sfu": TRANSCENDENTAL,
    "vector": frozenset(
        [
            "add",
            "sub",
            "mul",
            "min",
            "max",
            "and",
            "or",
            "floordiv",
            "mod",
            "compare",
            "select",
            "abs",
            "round",
            "floor",
            "ceil",
            "sum",
            "prod",
            "any",
            "all",
            "argmax",
            "argmin",
        ]
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopTerm:
    """``count`` operations ``op`` of one expression.

    ``statement`` is the define that it was first met in, ``origin`` the written statement.
    ``dtype`` of a contraction is that of its operands on the matrix unit.
    """

    origin: str
    statement: str
    unit: Unit
    op: str
    count: sympy.Expr
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteTerm:
    """``elements`` distinct elements of ``size`` bytes that one block reads or writes.

    ``bound`` is "exact", or "upper" where only an upper bound of the addresses is known
    (a gather, an interval); ``why`` says so in words. ``statements`` are the origins that touch it.
    """

    kernel: str
    tensor: str
    direction: L["read", "write"]
    elements: sympy.Expr
    size: sympy.Expr
    dtype: Storage
    bound: L["exact", "upper"] = "exact"
    why: str = ""
    statements: tuple[str, ...] = ()

    @property
    def count(self) -> sympy.Expr:
        """Bytes."""
        return self.elements * self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCost:
    """One kernel block of a boundary: its FLOP and byte terms."""

    name: str
    flops: tuple[FlopTerm, ...]
    bytes: tuple[ByteTerm, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCost:
    """FLOPs of an op (the same for every boundary) and bytes of each of its boundaries.

    ``symbols``: the op's dims as SymPy symbols. ``derived``: derived dims as expressions.
    ``dtypes``: the dtype parameters that were fixed; a free one appears as ``sizeof(X)``.
    """

    op: str
    symbols: dict[str, sympy.Symbol]
    derived: dict[str, sympy.Expr]
    dtypes: dict[str, str]
    flops: tuple[FlopTerm, ...]
    boundaries: dict[str, tuple[BlockCost, ...]]

    def total_flops(self, unit: str = "", op: str = "") -> sympy.Expr:
        """FLOPs of one unit (all if empty), of one operation (all if empty)."""
        return add(t.count for t in self.flops if unit in ("", t.unit) and op in ("", t.op))

    def byte_terms(self, boundary: str = "") -> tuple[ByteTerm, ...]:
        """All byte terms of a boundary, by block."""
        return tuple(t for b in self.boundaries[boundary] for t in b.bytes)

    def total_bytes(self, boundary: str = "", direction: str = "") -> sympy.Expr:
        """Bytes of one direction (both if empty) over all blocks of a boundary."""
        return add(t.count for t in self.byte_terms(boundary) if direction in ("", t.direction))


def add(counts: Iterable[sympy.Expr]) -> sympy.Expr:
    """The sum of closed forms, terms left factored."""
    return sympy.Add(*counts)
