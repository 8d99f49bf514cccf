"""Roles of the axes: which are programs in parallel, which live in one program, which stream.

An axis may be ``grid`` if every fold, scan and store of the block has it free: then no
program needs what another computes. The others live inside a program, whole (``tile``) or
in chunks (``stream``). Each way to choose between these two is a *variant*; a launch picks
the first that fits its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opspec.ir.integers import Int
from opspec.schedule.axis_order import axis_order, fast_axes, grid_axes, windows
from opspec.schedule.directions import both_ways, prefixes
from opspec.schedule.graph import Axes, Fold, Graph, Prefix, Store
from opspec.schedule.products import Product, find_products
from opspec.schedule.segments import segments_of

LARGE = 1 << 30
HELD = 1 << 14  # elements that a program holds as one tile
KEPT = 12  # rows that its threads keep in registers
SHORT, LONG = 1 << 9, 1 << 12  # elements of such a row
WHOLE = 256  # a reduced axis of a block product up to this extent lives in the program whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """One assignment. ``stream`` is ordered outermost first; ``blocked`` axes have a block dimension.

    ``laned``: the innermost stream where it runs along memory. Its chunks have three dimensions, lanes
    across threads, steps within a thread and in each step near neighbours, which one load brings. What is folded
    over it keeps one state per lane: no thread waits for another until the stream is through. ``kept``: a
    stream of a few rows, which later sweeps take from registers.
    """

    grid: tuple[str, ...]
    tile: tuple[str, ...]
    stream: tuple[str, ...]
    blocked: frozenset[str]
    products: dict[str, Product]
    laned: str | None = None
    kept: str | None = None

    def dims(self, axis: str) -> tuple[str, ...]:
        """The block dimensions of an axis."""
        if axis == self.laned:
            return (f"{axis}.lane", f"{axis}.step", f"{axis}.near")
        return (axis,) if axis in self.blocked else ()


def assign_roles(graph: Graph, typical: Callable[[Int], int | None]) -> tuple[Roles, ...]:
    """The variants of a block, the most resident first. ``typical`` gives an extent's largest workload value."""
    order = axis_order(graph)
    segments = segments_of(graph).keys()
    grid = tuple(a for a in grid_axes(graph, order) if a not in segments)
    inner = tuple(a for a in order if a not in grid)
    products = find_products(graph, grid, tuple(a for a in inner if a not in segments))
    products = _compatible(graph, products)
    steps = frozenset(a for p in products.values() for a in p.steps | p.around) | segments
    taps = set() if products else windows(graph, grid, inner)
    steps |= taps
    blocked = _blocked(graph, grid, tuple(a for a in inner if a not in taps), products) - steps
    products = {p.fold: p for p in products.values() if {p.rows, p.columns, p.k} <= blocked}
    size = {a: typical(graph.block.axis(a).extent) for a in inner}
    must = {p.k for p in products.values() if _streams_always(graph, p, size)} | steps
    whole = {a for a in inner if both_ways(graph, a)}
    free = sorted((a for a in inner if a not in must | whole), key=lambda a: -(size[a] or LARGE))
    variants: list[Roles] = []
    for count in range(len(free) + 1):
        stream = _nest(graph, must | set(free[:count]), order)
        if stream is None:
            continue
        tile = tuple(a for a in inner if a not in stream)
        laned = None if taps else _laned(graph, stream, products)
        # beside lanes, rows and outer streams go one at a time
        own = blocked if laned is None else frozenset({*tile, laned})
        variants.append(
            Roles(grid=grid, tile=tile, stream=stream, blocked=own, products=products, laned=laned)
        )
    kept = None if products or must or whole else _few_rows(graph, inner, size)
    if kept is not None and variants and not variants[0].stream:
        tile = tuple(a for a in inner if a != kept)
        held = Roles(grid=grid, tile=tile, stream=(kept,), blocked=frozenset(tile), products={}, kept=kept)
        variants.insert(0, held)
    return tuple(variants)


def _few_rows(graph: Graph, inner: tuple[str, ...], size: Mapping[str, int | None]) -> str | None:
    """Of two axes of a program the one whose indices number a few rows along memory, which registers hold."""
    fast = [a for a in inner if a in fast_axes(graph)]
    if len(inner) != 2 or len(fast) != 1 or prefixes(graph):
        return None
    (few,) = (a for a in inner if a not in fast)
    rows, length = size[few] or 0, size[fast[0]] or 0
    fits = rows <= KEPT and LONG // 2 <= length <= LONG and rows * length > HELD
    return few if fits and _nest(graph, {few}, inner) else None


def _compatible(graph: Graph, products: dict[str, Product]) -> dict[str, Product]:
    """Products whose stepped axes nothing else of the block wants as a block dimension or a result."""
    blocked = {x for p in products.values() for x in (p.rows, p.columns, p.k)}
    free = {a for n in graph.nodes if isinstance(n, Store) for a in n.axes}
    folded = {a for n in graph.nodes if isinstance(n, Fold) and n.name not in products for a in n.over}
    around = {a for p in products.values() for a in p.around}
    kept = {n: p for n, p in products.items() if not p.steps & (blocked | free | folded - around)}
    # where one would walk what another blocks, the one with more work stays
    chosen: dict[str, Product] = {}
    for name, p in sorted(kept.items(), key=lambda item: -len(_work(graph, item[1]))):
        walked, own = p.around | _batch(graph, p), {p.rows, p.columns, p.k}
        if not any(
            walked & {q.rows, q.columns, q.k} or (q.around | _batch(graph, q)) & own for q in chosen.values()
        ):
            chosen[name] = p
    return {n: p for n, p in kept.items() if n in chosen}


def _work(graph: Graph, product: Product) -> Axes:
    """The axes of all that a product multiplies."""
    return graph.axes_of(product.a) | graph.axes_of(product.b)


def _batch(graph: Graph, product: Product) -> Axes:
    """Axes that both operands of a product have and that it does not sum: a program takes one of each at a time."""
    return (graph.axes_of(product.a) & graph.axes_of(product.b)) - {product.k} - product.steps


def _laned(graph: Graph, stream: tuple[str, ...], products: dict[str, Product]) -> str | None:
    if not stream or products or stream[-1] not in fast_axes(graph):
        return None
    if prefixes(graph, stream[-1]):  # a scan goes through a chunk in order, which lanes would cut across
        return None
    return stream[-1]


def _blocked(
    graph: Graph, grid: tuple[str, ...], inner: tuple[str, ...], products: dict[str, Product]
) -> frozenset[str]:
    blocked = set(inner)
    dotted = {x for p in products.values() for x in (p.rows, p.columns, p.k)}
    if dotted:
        return frozenset(blocked | dotted)
    fast = [a for a in fast_axes(graph) if a in grid][:2]
    blocked |= set(fast)
    others = [a for a in grid if a not in fast]
    if others and len(blocked) < 2:
        blocked.add(others[-1])
    return frozenset(blocked)


def _streams_always(graph: Graph, product: Product, size: dict[str, int | None]) -> bool:
    stored = any(product.k in n.axes for n in graph.nodes if isinstance(n, Store))
    return not stored and (size.get(product.k) or LARGE) > WHOLE


def _nest(graph: Graph, wanted: set[str], order: tuple[str, ...]) -> tuple[str, ...] | None:
    """Streams, outermost first: a fold's free stream axes lie outside those it reduces, and a scan's other
    axes outside the one that it goes along. None if they can't."""
    outside: dict[str, set[str]] = {a: set() for a in wanted}
    for node in graph.nodes:
        if isinstance(node, Fold):
            for inner in set(node.over) & wanted:
                outside[inner] |= node.axes & wanted
        if isinstance(node, Prefix) and node.along in wanted:
            outside[node.along] |= (node.axes & wanted) - {node.along}
    placed: list[str] = []
    left = [a for a in order if a in wanted]
    while left:
        ready = next((a for a in left if outside[a] <= set(placed)), None)
        if ready is None:
            return None
        placed.append(ready)
        left.remove(ready)
    return tuple(placed)
