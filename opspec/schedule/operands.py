"""The factors of a sum that a matrix unit may run, and the type that it takes them in."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.ir.dtypes import BF16, F32, I4, I8, I32, DType, Storage, choices
from opspec.ir.values import Binary, Cast, Read, Value
from opspec.schedule.exact import holds, number
from opspec.schedule.graph import Fold, Graph, Load, Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two factors of a sum that a matrix unit may run, and the type in which they enter it."""

    a: Value
    b: Value
    cast: Storage | None


def product_sides(graph: Graph, fold: Fold) -> Sides | None:
    """The factors of a sum of products of two values that both carry all its summed indices."""
    if fold.monoid != "sum" or not isinstance(fold.body, Binary) or fold.body.op != "mul":
        return None
    a, b, over = fold.body.a, fold.body.b, set(fold.over)
    if not over <= graph.axes_of(a) & graph.axes_of(b):
        return None
    if any(
        not c.free_indices() <= graph.axes_of(a) and not c.free_indices() <= graph.axes_of(b)
        for c in fold.constraints
    ):
        return None
    if fold.dtype is F32:
        return Sides(a=a, b=b, cast=_operand_type(graph, fold, a, b))
    if fold.dtype is not I32 or not all(_is_i8(graph, x) for x in (a, b)):
        return None
    return Sides(a=a, b=b, cast=I8)  # the matrix unit multiplies bytes into 32-bit integers


def _operand_type(graph: Graph, fold: Fold, a: Value, b: Value) -> Storage | None:
    """The type in which both operands are exact, or that ``using`` names; None for f32."""
    if fold.using is not None and fold.using != "tf32":
        named = next((t.dtype for t in graph.block.op.tensors if _name(t.dtype) == fold.using), None)
        return named or _by_name(fold.using)
    left, right = exact_in(graph, a), exact_in(graph, b)
    if left is None or right is None:
        return None
    return common_type(left, right)


def _is_i8(graph: Graph, value: Value) -> bool:
    stored = exact_in(graph, value)
    return stored is not None and all(d in (I8, I4) for d in choices(stored))


def _name(dtype: Storage) -> str:
    return dtype.name


def _by_name(name: str) -> DType | None:
    from opspec.ir.dtypes import DTYPES

    return DTYPES.get(name)


def exact_in(graph: Graph, value: Value) -> Storage | None:
    """The narrowest storage type in which a value is known to be exact."""
    match value:
        case Read(name=name):
            node = graph.by_name[name]
            if isinstance(node, Load):
                stored = graph.block.tensor(node.tensor).dtype
                other = None if node.otherwise is None else number(node.otherwise)
                kept = node.otherwise is None or (other is not None and holds(stored, other))
                return stored if kept else None
            if isinstance(node, Point):
                return exact_in(graph, node.value)
        case Cast(to=to, implicit=implicit, x=x):
            return exact_in(graph, x) if implicit else to
    return None


def common_type(a: Storage, b: Storage) -> Storage | None:
    """A type of at most 16 bits (or the shared type itself) that holds both exactly, else None."""
    if a == b:
        if isinstance(a, DType) and a.kind == "int":
            return BF16 if a.bits <= 8 else None
        return a
    narrow_a, narrow_b = (all(d.bits <= 8 for d in choices(s)) for s in (a, b))
    if narrow_a and narrow_b:
        return BF16
    wide = b if narrow_a else a
    if (narrow_a or narrow_b) and all(d.kind == "float" and d.bits == 16 for d in choices(wide)):
        return wide
    return None
