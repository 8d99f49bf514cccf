"""Storage dtypes, and the types that arithmetic happens in.

A dtype here says how an element is *stored*. Arithmetic is f32 unless the
element is an integer or a bool; ``compute_dtype`` maps one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["float", "int", "bool"]


@dataclass(frozen=True, slots=True)
class DType:
    """A storage type. ``bits`` per element; ``mantissa`` explicit mantissa bits of a float."""

    name: str
    kind: Kind
    bits: int
    mantissa: int = 0

    @property
    def ambiguous_overflow(self) -> bool:
        """Whether a cast into it must say what an overflow does (``.sat`` or not)."""
        return self.bits <= 8 and self.kind != "bool"


@dataclass(frozen=True, slots=True)
class DTypeParam:
    """A dtype that an op is generic in: ``dtype X in {bf16, f16, f32}``."""

    name: str
    choices: tuple[DType, ...]


F32 = DType("f32", "float", 32, 23)
BF16 = DType("bf16", "float", 16, 7)
F16 = DType("f16", "float", 16, 10)
F8E4M3 = DType("f8e4m3", "float", 8, 3)
F8E5M2 = DType("f8e5m2", "float", 8, 2)
I4 = DType("i4", "int", 4)
I8 = DType("i8", "int", 8)
I32 = DType("i32", "int", 32)
I64 = DType("i64", "int", 64)
BOOL = DType("bool", "bool", 8)

DTYPES: dict[str, DType] = {d.name: d for d in (F32, BF16, F16, F8E4M3, F8E5M2, I4, I8, I32, I64, BOOL)}

Storage = DType | DTypeParam


def choices(dtype: Storage) -> tuple[DType, ...]:
    """The concrete dtypes that a storage type may stand for."""
    return dtype.choices if isinstance(dtype, DTypeParam) else (dtype,)


def compute_dtype(dtype: Storage) -> DType:
    """The type in which a loaded element takes part in arithmetic: f32, i32, i64 or bool."""
    first = choices(dtype)[0]
    if first.kind == "float":
        return F32
    if first.kind == "bool":
        return BOOL
    return I64 if first is I64 else I32
