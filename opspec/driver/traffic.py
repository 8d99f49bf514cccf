"""``traffic``: the bytes that a schedule's programs load and store, as closed forms in its tile sizes.

Of several variants the last is taken, which every shape admits: the one that streams the most. Loads
of one program count once per statement and step, masks and causal bounds are not taken off, so the
form is an upper bound where a domain is no rectangle. Padding is not in it (that is ``issued``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from opspec.emit.signature import block_names
from opspec.ir.integers import Index, Int
from opspec.ir.program import Boundary, Op
from opspec.ir.values import Extent
from opspec.schedule.plan import schedule_kernel
from opspec.schedule.tile import AxisPlan, Fetch, Loop, Statement, TileProgram, Unroll

if TYPE_CHECKING:
    from sympy import Expr


def traffic_of(op: Op, boundary: Boundary, dtypes: Mapping[str, str]) -> dict[str, Expr]:
    """Bytes by kernel of a boundary; tile sizes are symbols such as ``BLOCK_M``.

    Raises: Failure where a kernel can't be scheduled.
    """
    return {
        k.name: program_traffic(op, boundary, schedule_kernel(op, boundary, k).variants[-1].program, dtypes)
        for k in boundary.kernels
    }


def program_traffic(op: Op, boundary: Boundary, program: TileProgram, dtypes: Mapping[str, str]) -> Expr:
    """Bytes that one variant of a kernel loads and stores."""
    from opspec.analysis.costs import cost

    costs = cost(op, dtypes)
    sizes = {t.tensor: t.size for t in costs.byte_terms(boundary.name)}
    block = next(b for b in costs.boundaries[boundary.name] if b.name == program.kernel)
    written = [t.count for t in block.bytes if t.direction == "write"]
    return sum([*_loads(op, program, sizes), *written], start=_zero())


def _zero() -> Expr:
    import sympy

    return sympy.Integer(0)


def _loads(op: Op, program: TileProgram, sizes: Mapping[str, Expr]) -> Iterator[Expr]:
    from sympy import ceiling

    from opspec.analysis.lattice.facts import Facts
    from opspec.analysis.lattice.symbols import symbol, to_sympy

    facts = Facts.of(op)
    blocks = block_names(program.axes)
    extent = {a.name: to_sympy(facts.canonical(a.extent), facts) for a in program.axes}
    places = {loop.axis: place for loop, place in segment_loops(program.body)}
    windows = {
        f: s.count for s in program.body if isinstance(s, Unroll) for f in s.body if isinstance(f, Fetch)
    }
    for fetch, around in fetches(program.body):
        total = sizes[fetch.tensor]
        own = axes_of(fetch)
        met = [(e, places[e]) for e in around if e in places]
        for e, place in met:
            # all programs together meet each segment, and one more for each edge of theirs inside a segment
            step = symbol(blocks[place]) if program.axis(place).blocked else _zero() + 1
            if place in own:
                total *= extent[place] + (extent[e] - 1) * step
            else:
                total *= ceiling(extent[place] / step) + extent[e] - 1
        for axis in program.axes:
            if any(axis.name in pair for pair in met):
                continue
            if axis.name in own:
                total *= extent[axis.name]
            elif walked(axis, around):
                step = symbol(blocks[f"{axis.name}.step"]) if axis.rows else _zero() + 1
                total *= (
                    ceiling(extent[axis.name] / (symbol(blocks[axis.name]) * step))
                    if axis.blocked
                    else extent[axis.name]
                )
        for held in (a for a in program.axes if a.rows and f"{a.name}.at" in around):
            # what the window of a program reads beside its own places
            size = symbol(blocks[f"{held.name}.step"])
            total *= (
                to_sympy(_counted(windows[fetch], program), facts).subs(symbol(f"{held.name}.step"), size)
                / size
            )
        yield total


def _counted(count: Int, program: TileProgram) -> Int:
    """A number of rows with the extents for the constants that a kernel has of them."""
    extents = {f"{a.name}.count": a.extent for a in program.axes}
    return count.substitute(lambda atom: extents.get(atom.name) if isinstance(atom, Index) else None)


def axes_of(fetch: Fetch) -> set[str]:
    """The axes with which a load moves."""
    return {name.partition(".")[0] for i in fetch.at for name in i.free_indices()}


def fetches(
    body: tuple[Statement, ...], around: tuple[str, ...] = ()
) -> Iterator[tuple[Fetch, tuple[str, ...]]]:
    """Every load with the streams that it stands in; none where registers give again what was loaded."""
    for s in body:
        if isinstance(s, Fetch):
            if s.again is None:
                yield s, around
        elif isinstance(s, Loop):
            if s.ahead is not None:
                yield from fetches(s.ahead.loads.body, (*around, s.axis, s.ahead.loads.index))
            yield from fetches(s.body, (*around, s.axis))
        elif isinstance(s, Unroll):
            yield from fetches(s.body, (*around, s.index))


def segment_loops(body: tuple[Statement, ...]) -> Iterator[tuple[Loop, str]]:
    """Every loop over segments, with the axis of the places whose segments it takes."""
    for s in body:
        if isinstance(s, Loop):
            if s.segments is not None and isinstance(s.start, Extent):
                yield s, next(iter(s.start.value.free_indices())).partition(".")[0]
            yield from segment_loops(s.body)


def walked(axis: AxisPlan, around: tuple[str, ...]) -> bool:
    """Whether a load in these streams happens once per step of an axis."""
    return axis.role == "grid" or axis.name in around
