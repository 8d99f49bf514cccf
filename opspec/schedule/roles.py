"""Roles of the axes: which are programs in parallel, which live in one program, which stream.

An axis may be ``grid`` if every fold, scan and store of the block has it free: then no
program needs what another computes. The others live inside a program, whole (``tile``) or
in chunks (``stream``). Each way to choose between these two is a *variant*; a launch picks
the first that fits its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opspec.ir.bounds import prove
from opspec.ir.dtypes import BF16, F32, I4, I8, I32, DType, Storage, choices
from opspec.ir.facts import facts_of
from opspec.ir.integers import ZERO, Int
from opspec.ir.values import Binary, Cast, Read, Value, walk
from opspec.schedule.aside import stands_aside
from opspec.schedule.directions import both_ways, prefixes
from opspec.schedule.exact import holds, number
from opspec.schedule.graph import Axes, Fold, Graph, Load, Point, Prefix, Store
from opspec.schedule.segments import segments_of

LARGE = 1 << 30
HELD = 1 << 14  # elements that a program holds as one tile
KEPT = 12  # rows that its threads keep in registers
SHORT, LONG = 1 << 9, 1 << 12  # elements of such a row
WHOLE = 256  # a reduced axis of a block product up to this extent lives in the program whole


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


def axis_order(graph: Graph) -> tuple[str, ...]:
    """Axes in the order of the results' axes, then of the inputs'; those that no address uses come first."""
    addressed = {
        x for n in graph.nodes if isinstance(n, Load | Store) for i in n.at for x in i.free_indices()
    }
    lent = {x for n in graph.nodes if isinstance(n, Store) for x in n.axes}
    seen = dict.fromkeys(a.name for a in graph.block.axes if a.name in lent - addressed)
    stores: list[Load | Store] = [n for n in graph.nodes if isinstance(n, Store)]
    loads = [n for n in graph.nodes if isinstance(n, Load)]
    for node in (*stores, *sorted(loads, key=lambda n: -len(n.at))):
        for i in node.at:
            for name in sorted(i.free_indices()):
                seen[name] = None
    for axis in graph.block.axes:
        seen[axis.name] = None
    return _bytes_first(graph, tuple(a for a in seen if _used(graph, a)))


def _bytes_first(graph: Graph, order: tuple[str, ...]) -> tuple[str, ...]:
    """Where bytes along the summed index meet 16-bit values, their rows in front of the others' columns.

    A matrix unit takes the operand of the rows from registers, where bytes are widened; that of the columns
    would go back through shared memory.
    """
    for fold in graph.nodes:
        sides = product_sides(graph, fold) if isinstance(fold, Fold) else None
        if sides is None or not isinstance(fold, Fold) or sides.cast is None:
            continue
        over = set(fold.over)
        narrow, wide = (sides.a, sides.b) if _bytes_along(graph, sides.a, over) else (sides.b, sides.a)
        in_16 = all(d.bits == 16 for d in choices(sides.cast))
        if not in_16 or not _bytes_along(graph, narrow, over) or _bytes_along(graph, wide, over):
            continue
        grid = grid_axes(graph, order)
        own = [x for x in order if x in graph.axes_of(narrow) - graph.axes_of(wide) - over]
        others = [x for x in order if x in graph.axes_of(wide) - graph.axes_of(narrow) - over]
        if len(own) == len(others) == 1 and {*own, *others} <= set(grid):
            rest = [x for x in order if x not in own]
            at = rest.index(others[0])
            order = (*rest[:at], *own, *rest[at:])
    return order


def _bytes_along(graph: Graph, value: Value, over: set[str]) -> bool:
    """Whether a value is a load of at most 8 bits an element that lie along a summed index, or a function of
    such a load and of values that change less often."""
    loads = [n for v in walk(value) if isinstance(v, Read) for n in _loads(graph, v.name)]
    along = [n for n in loads if n.at and n.at[-1].index in over]
    return bool(along) and all(
        d.bits <= 8 for n in along for d in choices(graph.block.tensor(n.tensor).dtype)
    )


def _loads(graph: Graph, name: str) -> list[Load]:
    """The loads that a value comes from, through pointwise statements."""
    node = graph.by_name.get(name)
    if isinstance(node, Load):
        return [node]
    if isinstance(node, Point):
        return [n for v in walk(node.value) if isinstance(v, Read) for n in _loads(graph, v.name)]
    return []


def _used(graph: Graph, axis: str) -> bool:
    return any(axis in n.axes or (isinstance(n, Fold) and axis in n.over) for n in graph.nodes)


def grid_axes(graph: Graph, order: tuple[str, ...]) -> tuple[str, ...]:
    """Axes that are free in every fold, scan and store; folds that stand ``aside`` may lack one."""
    bound = {a for n in graph.nodes if isinstance(n, Fold) for a in n.over}
    bound |= {n.along for n in prefixes(graph)}
    roots = [n for n in graph.nodes if isinstance(n, Fold | Prefix | Store)]
    free = [a for a in order if a not in bound]
    return tuple(a for a in free if all(a in n.axes or stands_aside(graph, n, a) for n in roots))


def windows(graph: Graph, grid: tuple[str, ...], inner: tuple[str, ...]) -> set[str]:
    """Axes of taps, reduced and added to a place in parallel (``x[t + r]``): a program walks them one at a time.

    Taps of neighbouring places are loaded from the same rows, which a tile of places then holds in its caches. Places
    that lie further apart than their taps reach share none (``x[64 * p + r]`` with r below 64).
    """
    stored = {a for n in graph.nodes if isinstance(n, Store) for a in n.axes}
    reduced = {a for n in graph.nodes if isinstance(n, Fold) and n.extreme is None for a in n.over}
    found: set[str] = set()
    for load in graph.nodes:
        for i in load.at if isinstance(load, Load) else ():
            split = None if i.tensors() else i.affine(i.free_indices())
            if split is not None and all(k.constant is not None for k in split[0].values()):
                taps, places = set(split[0]) & set(inner), set(split[0]) & set(grid)
                found |= taps if places and not _apart(graph, split[0], taps, places) else set()
    return found & reduced - stored


def _apart(graph: Graph, steps: Mapping[str, Int], taps: set[str], places: set[str]) -> bool:
    """Whether the taps of each place end before those of the next begin."""
    reach = ZERO
    for name in taps:
        reach = reach + steps[name] * (graph.block.axis(name).extent - 1)
    facts = facts_of(graph.block.op)
    return all(prove(step - reach - 1, facts) for step in (steps[name] for name in places))


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


def fast_axes(graph: Graph) -> tuple[str, ...]:
    """Axes along which some tensor is walked with unit stride when contiguous.

    The tensors of most axes say so, and of these not one that is walked along part of another's loops.
    """
    seen: dict[str, None] = {}
    accesses = [n for n in graph.nodes if isinstance(n, Load | Store)]
    widest = max(len(n.at) for n in accesses)
    accesses = [n for n in accesses if len(n.at) == widest]
    for node in accesses:
        if node.at and not any(node.axes < other.axes for other in accesses):
            split = node.at[-1].affine(node.at[-1].free_indices())
            for name, coefficient in (split[0] if split else {}).items():
                if coefficient.constant == 1:
                    seen[name] = None
    return tuple(seen)


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
