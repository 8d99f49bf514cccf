"""The functions of the language itself; everything else is in the prelude."""

from __future__ import annotations

from opspec.ir.dtypes import DTYPES
from opspec.ir.values import Monoid, UnaryOp

UNARY: dict[str, UnaryOp] = {
    "exp": "exp",
    "log": "log",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
    "erf": "erf",
    "abs": "abs",
    "round": "round",
    "floor": "floor",
    "ceil": "ceil",
    "reciprocal": "reciprocal",
}
MONOIDS: dict[str, Monoid] = {
    "sum": "sum",
    "prod": "prod",
    "max": "max",
    "min": "min",
    "any": "any",
    "all": "all",
    "argmax": "argmax",
    "argmin": "argmin",
}
CONSTANTS: dict[str, float | bool] = {
    "inf": float("inf"),
    "nan": float("nan"),
    "true": True,
    "false": False,
}
SCANS: dict[str, Monoid] = {f"scan_{k}": v for k, v in MONOIDS.items() if not k.startswith("arg")}
OTHERS = ("where", "count")
USING = ("bf16", "f16", "tf32", "f8e4m3", "f8e5m2")
SCATTERS = ("scatter_add", "atomic_add", "index_add", "scatter")
RESERVED = frozenset({*CONSTANTS, "and", "or", "not", "for", "else", "in", "using", "where"})


def function_names() -> set[str]:
    """Names that can't be defined again by ``fn``."""
    return {*UNARY, *MONOIDS, *SCANS, *OTHERS, *DTYPES}
