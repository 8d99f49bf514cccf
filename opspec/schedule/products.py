"""Folds that are block products: which axes are their rows, columns and depth."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.ir.dtypes import Storage, choices
from opspec.ir.values import Value
from opspec.schedule.axis_order import axis_order
from opspec.schedule.graph import Fold, Graph, Prefix, Store
from opspec.schedule.operands import product_sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A fold that a matrix unit can run: ``a`` carries rows and ``k``, ``b`` carries ``k`` and columns.

    ``cast``: the type both operands enter in; None leaves f32. ``steps``: further reduced axes, walked
    one index at a time around the product. ``around``: axes that operands carry, and later
    folds reduce or scans run along, walked one index at a time outside of it. ``unit``: whether a matrix unit
    multiplies it; the vector units do where operands are f32 and ``using`` allows nothing else.
    """

    fold: str
    a: Value
    b: Value
    k: str
    rows: str
    columns: str
    cast: Storage | None
    steps: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()
    unit: bool = True


def find_products(graph: Graph, grid: tuple[str, ...], inner: tuple[str, ...]) -> dict[str, Product]:
    """Folds whose body is a product of two operands with rows, columns and a shared reduced axis."""
    found: dict[str, Product] = {}
    pairs = [
        (n, s) for n in graph.nodes if isinstance(n, Fold) and (s := product_sides(graph, n)) is not None
    ]
    shared = {x for n, s in pairs for x in (graph.axes_of(s.a) & graph.axes_of(s.b)) - set(n.over)}
    for fold, sides in pairs:
        a, b, over = sides.a, sides.b, set(fold.over)
        left, right = graph.axes_of(a) - over, graph.axes_of(b) - over
        # of several reduced axes the last meets the matrix unit, the others are walked one at a time
        k = max(fold.over, key=axis_order(graph).index)
        rows = [x for x in (*inner, *grid) if x in left - right]
        columns = [x for x in (*inner, *grid) if x in right - left]
        if not rows or not columns:
            continue
        own = _around(graph, fold, set(inner) - over)
        pick_row = _prefer(graph, rows, inner, own, shared)
        pick_column = _prefer(graph, columns, inner, own, shared)
        if pick_row is None or pick_column is None:
            continue
        around = own & (graph.axes_of(a) | graph.axes_of(b)) - {pick_row, pick_column}
        held = set(inner) - over - around
        if graph.axes_of(a) & held - {pick_row} or graph.axes_of(b) & held - {pick_column}:
            continue
        if not _before(graph, pick_row, pick_column):
            a, b, pick_row, pick_column = b, a, pick_column, pick_row
        found[fold.name] = Product(
            fold=fold.name,
            a=a,
            b=b,
            k=k,
            rows=pick_row,
            columns=pick_column,
            cast=sides.cast,
            steps=frozenset(over - {k}),
            around=frozenset(around),
            unit=fold.using == "tf32"
            or (sides.cast is not None and any(d.bits < 32 for d in choices(sides.cast))),
        )
    return found


def _around(graph: Graph, fold: Fold, axes: set[str]) -> set[str]:
    """Those of the axes along which a scan runs, or that other folds reduce and no store has."""
    stored = {a for n in graph.nodes if isinstance(n, Store) for a in n.axes}
    later = {a for n in graph.nodes if isinstance(n, Fold) and n.name != fold.name for a in n.over}
    scanned = {n.along for n in graph.nodes if isinstance(n, Prefix)}
    return axes & (scanned | later - stored)


def _prefer(
    graph: Graph, names: list[str], inner: tuple[str, ...], around: set[str], shared: set[str]
) -> str | None:
    """The one axis to tile: an inner one if there is any, else the last grid axis, if may be one that no product
    takes one at a time because both of its operands have it.

    Of several inner ones the last meets the matrix unit; the others have to be axes ``around`` it.
    """
    inside = sorted((n for n in names if n in inner), key=axis_order(graph).index)
    if set(inside[:-1]) - around:
        return None
    return inside[-1] if inside else max(names, key=lambda n: (n not in shared, names.index(n)))


def _before(graph: Graph, first: str, second: str) -> bool:
    order = axis_order(graph)
    return order.index(first) < order.index(second)
