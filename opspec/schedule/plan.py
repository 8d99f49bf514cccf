"""All variants of a kernel block: the passes of the scheduler, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from opspec.ir.integers import Int
from opspec.ir.program import Boundary, Kernel, Op
from opspec.schedule.again import make_again
from opspec.schedule.ahead import load_ahead
from opspec.schedule.applied import Applied
from opspec.schedule.aside import repeats
from opspec.schedule.begun import begin_sums
from opspec.schedule.block import Block
from opspec.schedule.defer import defer_factors
from opspec.schedule.expand import expand_sums
from opspec.schedule.exponent import fold_exponentials
from opspec.schedule.extremes import pair_extremes
from opspec.schedule.flatten import build_graph
from opspec.schedule.graph import Graph
from opspec.schedule.hints import hint_loads
from opspec.schedule.kept import keep_rows
from opspec.schedule.legal import check_tile
from opspec.schedule.lend import lend_rows
from opspec.schedule.names import Names
from opspec.schedule.packed import keeps_bytes_together, packed_axes
from opspec.schedule.peel import peel
from opspec.schedule.place import place
from opspec.schedule.prepare import whole_block
from opspec.schedule.rebase import rebase_sums
from opspec.schedule.refuse import unfusable, unsupported
from opspec.schedule.rewrites import invert_divisors, pull_factors, share_equal, share_loads
from opspec.schedule.roles import Roles, assign_roles
from opspec.schedule.shorten import shorten
from opspec.schedule.sides import gather_sides
from opspec.schedule.split import Split, split_stream
from opspec.schedule.steps import hold_steps
from opspec.schedule.tile import TileProgram
from opspec.schedule.windows import hold_windows

Typical = Callable[[Int], int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One assignment of roles and the tile program that it gives; ``split``: its stream in several programs."""

    roles: Roles
    program: TileProgram
    split: Split | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A scheduled kernel block."""

    block: Block
    graph: Graph
    rewrites: tuple[Applied, ...]
    variants: tuple[Variant, ...]


def schedule_kernel(
    op: Op,
    boundary: Boundary,
    kernel: Kernel,
    *,
    typical: Typical = lambda _: None,
    reserved: Iterable[str] = (),
) -> Plan:
    """Schedule one kernel block.

    ``typical``: the largest extent that a workload gives an expression, None if no workload does.
    ``reserved``: identifiers that block variables must not take.
    Raises ``Failure`` where one launch can't carry the block or a construct has no emitter.
    """
    block, joined = whole_block(op, boundary, kernel)
    graph, shared = share_equal(share_loads(build_graph(block)))
    if not graph.nodes:
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(d.origin for d in block.body))
        message = (
            f"kernel `{kernel.name}` writes nothing: {names} is neither a result nor used by another kernel"
        )
        raise unfusable(message, kernel.span, help="drop the block, or use what it computes")
    graph, pulled = pull_factors(pair_extremes(graph))
    graph, sided = gather_sides(graph)
    graph, expanded = expand_sums(graph)
    graph, inverted = invert_divisors(graph)
    graph, rebased = rebase_sums(graph)
    graph, deferred = defer_factors(graph)
    graph, lent = lend_rows(graph)
    rewrites = (*joined, *shared, *pulled, *sided, *expanded, *inverted, *rebased, *deferred, *lent)
    variants = []
    packed = packed_axes(graph)
    assigned = assign_roles(graph, typical)
    rewrites += repeats(graph, assigned[0].grid) if assigned else ()
    for roles in assigned:
        if packed and not keeps_bytes_together(graph, roles):
            continue
        label = "kept" if roles.kept else "streamed" if roles.stream else "resident"
        fresh = Names(taken=set(reserved) | {a.name for a in graph.block.axes})
        program = check_tile(peel(fold_exponentials(place(graph, roles, label, fresh), fresh)))
        if roles.kept is not None and keep_rows(program, roles.kept, fresh) is None:
            continue
        variants.append(Variant(roles=roles, program=program))
    if not variants and packed:
        raise unsupported(
            f"no order of loops of kernel `{kernel.name}` holds both elements of a byte in i4", kernel.span
        )
    if variants and variants[-1].roles.products:
        last = variants[-1]
        split = split_stream(last.program, fresh)
        if split is not None:
            check_tile(split.partial)
            check_tile(split.merge)
            variants[-1] = replace(last, split=split)
    variants = [_held(_shortened(v), set(reserved), typical) for v in variants]
    if not variants:
        raise unfusable(f"no order of loops carries kernel `{kernel.name}` in one launch", kernel.span)
    return Plan(block=graph.block, graph=graph, rewrites=rewrites, variants=tuple(variants))


def _held(variant: Variant, reserved: set[str], typical: Typical) -> Variant:
    program = variant.program
    names = Names(taken=reserved | {v.name for v in program.vars} | {a.name for a in program.axes})
    if variant.roles.kept is not None:
        program = keep_rows(program, variant.roles.kept, names) or program
    program = hold_steps(hold_windows(load_ahead(program), names), names)
    program = make_again(hint_loads(program, typical), names, typical)
    return replace(variant, program=check_tile(program))


def _shortened(variant: Variant) -> Variant:
    split = variant.split
    if split is not None:
        split = replace(split, partial=shorten(split.partial), merge=shorten(split.merge))
    return replace(variant, program=shorten(begin_sums(variant.program)), split=split)
