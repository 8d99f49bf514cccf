"""Axes along which a kernel could have programs, but for statements that do not have them.

A program makes what its block computes once. Where a value without an axis is computed in the same block as one with
it, programs along that axis would each make the value again, which is never done silently; so each walks the axis
instead. With few other axes in parallel, that leaves a device idle; a kernel of its own for such values would not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from opspec.diagnostics import Code, Diagnostic, register
from opspec.ir.integers import Int
from opspec.schedule.aside import stands_aside
from opspec.schedule.axis_order import axis_order, grid_axes
from opspec.schedule.directions import prefixes
from opspec.schedule.graph import Fold, Graph, Prefix, Store

FEW = 32  # programs that leave most of a device idle
LARGE = 1 << 20  # results of a workload from which that matters
MUCH = 1 << 24  # points of a reduction from which it does
SERIAL = register(
    Code(
        code="OP643",
        title="an axis is walked by few programs",
        why="A value that does not have the axis is computed in the same kernel. Programs along the axis would each "
        "compute it again, and recomputation is never inserted silently, so they walk the axis one point after another. "
        "A reduction to few results is taken apart into launches of many programs, but not everywhere: conditions on "
        "data, for one, keep it whole.",
        example="kernel k { s[b, d] = sum[c](e[b, c] * w[c, d])  y[b, t, d] = x[b, t, d] * s[b, d] }",
        fix="Put the values without the axis, or part of the reduction, into a kernel of their own before this one.",
    )
)


def serial_axes(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Axes that no fold reduces and no scan runs along, and for each the statements that keep it out of the grid."""
    order = axis_order(graph) if graph.nodes else ()
    grid = grid_axes(graph, order) if order else ()
    bound = {a for n in graph.nodes if isinstance(n, Fold) for a in n.over} | {
        n.along for n in prefixes(graph)
    }
    makers = [n for n in graph.nodes if isinstance(n, Fold | Prefix)]
    stored = {a for n in graph.nodes if isinstance(n, Store) for a in n.axes}
    found: dict[str, tuple[str, ...]] = {}
    for axis in order:
        if axis in stored - bound - set(grid):
            without = [n for n in makers if axis not in n.axes and not stands_aside(graph, n, axis)]
            if without:
                found[axis] = tuple(dict.fromkeys(n.define.origin for n in without))
    return found


def serial(graph: Graph, typical: Callable[[Int], int | None]) -> Diagnostic | None:
    """A warning where a workload leaves few programs and an axis would make many more."""
    axes = serial_axes(graph)
    size = {a.name: typical(a.extent) or 0 for a in graph.block.axes}
    order = axis_order(graph) if axes else ()
    programs = prod(size[a] for a in grid_axes(graph, order)) if axes else 0
    results = max((prod(size[a] for a in n.axes) for n in graph.nodes if isinstance(n, Store)), default=0)
    axis = max(axes, key=lambda a: size[a], default=None)
    if axis is None or programs > FEW or results < LARGE or size[axis] < 4:
        return None
    names = ", ".join(f"`{n}`" for n in axes[axis])
    one = len(axes[axis]) == 1
    many = f"at most {programs} programs walk" if programs > 1 else "one program walks"
    place = next(n.define.span for n in graph.nodes if isinstance(n, Store) and axis in n.axes)
    return Diagnostic(
        code=SERIAL,
        message=f"{many} `{axis}` in kernel `{graph.block.name}`, since {names} {'has' if one else 'have'} no `{axis}`",
        span=place,
        help=f"put {names} into a kernel of {'its' if one else 'their'} own: this one has programs along `{axis}` then",
        severity="warning",
    )


def reduced(graph: Graph, typical: Callable[[Int], int | None]) -> Diagnostic | None:
    """A warning where a workload leaves few programs to reduce much."""
    size = {a.name: typical(a.extent) or 0 for a in graph.block.axes}
    folds = [(prod(size[a] for a in {*n.axes, *n.over}), n) for n in graph.nodes if isinstance(n, Fold)]
    points, fold = max(
        folds, key=lambda pair: (pair[0], max(size[a] for a in pair[1].over)), default=(0, None)
    )
    programs = prod(size[a] for a in grid_axes(graph, axis_order(graph))) if fold is not None else 0
    if fold is None or programs > FEW or points < MUCH:
        return None
    inner = min(fold.over, key=lambda a: size[a])
    first, rest = (f"over `{inner}`", "rest") if len(fold.over) > 1 else (f"of parts of `{inner}`", "parts")
    return Diagnostic(
        code=SERIAL,
        message=f"{f'at most {programs} programs reduce' if programs > 1 else 'one program reduces'} {points:,} points "
        f"in kernel `{graph.block.name}`",
        span=fold.define.span,
        help=f"take the {fold.monoid} {first} in a kernel before it, which has programs along the {rest}",
        severity="warning",
    )
