"""Totals of a few groups: more programs leave partial results of each, a second launch joins them.

A norm over a group of channels and all of space has as many programs as there are groups, however large these are,
and channels that lie along memory reach a program a few bytes at a time. Where workloads make the groups few and
large, three launches replace the block: the first leaves a partial result of each total for every channel, or
every run of rows, in a workspace; the second joins them, and computes what depends on them alone; the third is
the rest, a map. Every launch walks tensors in the order of memory: where all of it reads ``g * K + k`` together, g and
k are one axis there (``joint``). What the map reads again, the first launch has left in L2 or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from opspec.diagnostics import Failure
from opspec.ir.dtypes import choices
from opspec.ir.integers import Int
from opspec.ir.program import Boundary, Define, Kernel, Op
from opspec.ir.values import Range, Read, Reduce, Scan, Value, map_values
from opspec.schedule.axis_order import axis_order, fast_axes, grid_axes
from opspec.schedule.block import Block, build_block
from opspec.schedule.centred import Centred, centred_totals
from opspec.schedule.flatten import build_graph
from opspec.schedule.graph import Graph, Load
from opspec.schedule.joint import find_joint
from opspec.schedule.parting import Cut, Groups, Parting
from opspec.schedule.plan import schedule_kernel
from opspec.schedule.products import find_products
from opspec.schedule.roles import HELD, assign_roles
from opspec.schedule.totals import bound_in, is_total, needs, reads_in, split_totals, without_unused

PROGRAMS = 4 * 132  # fewer of them leave a device idle where each has much to do
COLUMNS = 64  # of a program, along memory
ROWS = 64  # of a part of a column
PARTS = 2048  # of a total at most, where they are columns
RUN = 4096  # points along memory of a part of a row
Typical = Callable[[Int], int | None]


def with_parts(op: Op, typical: Typical) -> Op:
    """The op with the launches for partial results as kernels of its boundaries: what is launched."""
    boundaries = []
    for boundary in op.boundaries:
        if not boundary.analysis:
            boundary = split_groups(op, split_totals(op, boundary, typical), typical)  # noqa: PLW2901
        boundaries.append(boundary)
    return replace(op, boundaries=tuple(boundaries))


def split_groups(op: Op, boundary: Boundary, typical: Typical) -> Boundary:
    """The boundary with each block of few and large totals as two or three launches."""
    kernels: list[Kernel] = []
    for kernel in boundary.kernels:
        try:
            made = _split(op, boundary, kernel, typical)
            if made is not None:
                whole = replace(boundary, kernels=tuple(k for b in boundary.kernels for k in (made if b is kernel else (b,))))  # fmt: skip
                for k in made:
                    schedule_kernel(op, whole, k, typical=typical)
        except Failure:  # what is wrong with the block itself is said where it is scheduled
            made = None
        kernels += made or (kernel,)
    return boundary if len(kernels) == len(boundary.kernels) else replace(boundary, kernels=tuple(kernels))


def _split(op: Op, boundary: Boundary, kernel: Kernel, typical: Typical) -> tuple[Kernel, ...] | None:
    names = {k.name for k in boundary.kernels}
    own = (f"{kernel.name}_parts", f"{kernel.name}_totals")
    if names & set(own) or not any(isinstance(d.value, Reduce) for d in kernel.body):
        return None
    block = _without_twins(build_block(op, boundary, kernel))
    graph = build_graph(block)
    order = axis_order(graph) if graph.nodes else ()
    grid = grid_axes(graph, order) if order else ()
    if not grid or block.exclusive or find_products(graph, grid, tuple(a for a in order if a not in grid)):
        return None
    others = [d for k in boundary.kernels if k is not kernel for d in k.body]
    elsewhere = frozenset[str]().union(*map(reads_in, others))
    centred = centred_totals(block, graph)
    groups = _groups(block, centred, elsewhere)
    if groups is None:
        return None
    cut = _cut(block, graph, order, grid, groups, typical)
    if cut is None:
        return None
    bodies = Parting(block, groups, cut, centred, elsewhere).bodies()
    labels = (*own, kernel.name) if len(bodies) == 3 else (own[0], kernel.name)
    made = [replace(kernel, name=n, body=body) for n, body in zip(labels, bodies, strict=True)]
    return replace(made[0], whole=kernel), *made[1:]


def _without_twins(block: Block) -> Block:
    """The block with equal totals as one."""
    first: dict[tuple[tuple[Range, ...], Value], str] = {}
    same: dict[str, str] = {}
    body: list[Define] = []

    def change(value: Value) -> Value:
        value = map_values(value, change)
        return replace(value, name=same.get(value.name, value.name)) if isinstance(value, Read) else value

    for d in block.body:
        d = replace(d, value=change(d.value))  # noqa: PLW2901
        if isinstance(d.value, Reduce) and d.output is None and d.kind == "temp" and not d.constraints:
            known = first.setdefault((d.ranges, d.value), d.name)
            if known != d.name:
                same[d.name] = known
                continue
        body.append(d)
    return replace(block, body=tuple(body)) if same else block


def _groups(block: Block, centred: dict[str, Centred], elsewhere: frozenset[str]) -> Groups | None:
    """The statements by where they stand; None where a launch of partial results can't take the totals."""
    body = without_unused(block.body, centred, elsewhere)
    totals = [d for d in block.body if isinstance(d.value, Reduce)]
    over = tuple(r.index for r in totals[0].value.ranges) if isinstance(totals[0].value, Reduce) else ()
    names = {d.name for d in totals}
    if any(d.output is not None and block.tensor(d.output.tensor).role == "inout" for d in block.body):
        return None
    down: set[str] = set()
    for d in block.body:
        if (
            d.constraints
            or isinstance(d.value, Scan)
            or (isinstance(d.value, Reduce) and d.value.constraints)
        ):
            return None
        if d.name not in names and reads_in(d) & (names | down):
            down.add(d.name)
    if any(not is_total(d) or bound_in(d) != set(over) or needs(d, centred) & (names | down) for d in totals):
        return None
    if any(isinstance(d.value, Reduce) and d.value.using is not None for d in totals):
        return None
    along = {d.name for d in block.body if set(d.indices) & set(over)}
    before = [d for d in body if d.name not in names | down]
    if elsewhere & along or any(d.output is not None and d.name not in along for d in before):
        return None
    middle = [d for d in block.body if d.name in down - along]
    after = [d for d in block.body if d.name in down & along]
    used = frozenset[str]().union(*map(reads_in, after))
    if any(d.name in used and _rounds(block, d) for d in (*totals, *middle)):
        return None
    return Groups(
        over=over, before=tuple(before), totals=tuple(totals), middle=tuple(middle), after=tuple(after)
    )


def _rounds(block: Block, define: Define) -> bool:
    """Whether a result is stored in fewer bits than it has where its block uses it."""
    if define.output is None:
        return False
    return choices(block.tensor(define.output.tensor).dtype) != (define.value.dtype,)


def _cut(
    block: Block,
    graph: Graph,
    order: tuple[str, ...],
    grid: tuple[str, ...],
    groups: Groups,
    typical: Typical,
) -> Cut | None:
    size = {a: typical(block.axis(a).extent) or 0 for a in order}
    fast = set(fast_axes(graph)) or _last(graph)
    # a program has the points of a group, or of as many as lie side by side in memory
    points = _product(size[a] for a in groups.over)
    points *= min(_product(size[a] for a in set(grid) & fast), COLUMNS)
    if any(r.kept for r in assign_roles(graph, typical)):
        return None
    if points <= HELD or _programs(size, grid, fast) >= PROGRAMS:
        return None
    joint = find_joint(block, graph, grid, groups.over)
    whole = [] if joint is None else [joint.inner]
    left = [a for a in order if a in groups.over and a not in whole]
    own = [*grid, *whole]
    run, rows = None, RUN
    along = [a for a in left if a in fast]
    if along:
        for a in left:
            if a not in along and _programs(size, own, fast) < PROGRAMS:
                whole.append(a)
                own.append(a)
        if (
            _programs(size, own, fast) < PROGRAMS
            and len(set(left) - set(whole)) == 1
            and size[along[0]] > RUN
        ):
            run = along[0]
    elif left:
        run, rows = max(left, key=lambda a: size[a]), ROWS
        whole += [a for a in left if a != run]
        beside = _product(size[a] for a in whole if joint is None or a != joint.inner)
        while rows < size[run] and beside * -(-size[run] // rows) > PARTS:
            rows *= 2
    many = _programs(size, [*grid, *whole], fast) * (-(-size[run] // rows) if run is not None else 1)
    better = many > _programs(size, grid, fast)
    if not better:
        return None
    return Cut(whole=tuple(whole), run=run, rows=rows, joint=joint, along=bool(along))


def _last(graph: Graph) -> set[str]:
    return {a for n in graph.nodes if isinstance(n, Load) and n.at for a in n.at[-1].free_indices()}


def _product(sizes: Iterable[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _programs(size: dict[str, int], axes: Iterable[str], fast: set[str]) -> int:
    """Programs that axes in parallel give, those along memory in blocks."""
    axes = set(axes)
    beside = _product(size[a] for a in axes - fast)
    along = _product(size[a] for a in axes & fast)
    return beside * (-(-along // COLUMNS))
