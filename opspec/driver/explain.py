"""What the compiler decided about an op, in words: one paragraph of lines per kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING

from opspec.driver.traffic import axes_of, fetches, program_traffic, segment_loops, walked
from opspec.emit.kernel_launch import KernelLaunch
from opspec.ir.integers import FloorDiv, Int
from opspec.ir.program import Boundary, Kernel
from opspec.schedule.adjacent import adjacent_axes
from opspec.schedule.plan import Plan, Variant
from opspec.schedule.tile import AxisPlan, Fetch, Loop, Multiply, Statement, TileProgram, on_unit

if TYPE_CHECKING:
    from sympy import Expr

WIDE = 100


def explain_kernel(boundary: Boundary, kernel: Kernel, launch: KernelLaunch) -> list[str]:
    """Statements, roles, sweeps, rewrites, laws and traffic of one kernel."""
    plan = launch.plan
    lines = [f"kernel {kernel.name}" + (f" of boundary {boundary.name}" if boundary.name else "")]
    for define in kernel.body:
        if define.kind != "temp" and define.span is not None:
            lines += wrapped(" ".join(define.span.text.split()))
    parts = [d.origin for d in kernel.body if d.name.endswith(".parts")]
    if parts:
        lines += wrapped(
            f"partial results of {', '.join(dict.fromkeys(parts))}, one a program; the next launch combines them"
        )
    lines += ["", *_roles(plan), ""]
    one = [f"{', '.join(g.axes)} where no operand has a gap between them" for g in adjacent_axes(plan)]
    lines += _list("walked as one axis", one)
    lines += _list("rewrites", [f"{a.statement}: {a.text} ({a.rule})" for a in plan.rewrites])
    lines += _list("online laws", _notes(plan))
    for variant, text in zip(plan.variants, launch.texts, strict=True):
        lines += _list(f"{label(plan, variant)} variant", _walks(variant.program))
        traffic = _traffic(variant.program, text.blocks)
        lines += _list("  traffic beyond the compulsory bytes", traffic, indent="    ")
        if not parts:  # each point once, and the partial results, which are few
            lines += _list("  traffic", [_bytes(boundary, plan, variant)], indent="    ")
    return lines


def _bytes(boundary: Boundary, plan: Plan, variant: Variant) -> str:
    """All that a variant loads and stores, in its block sizes, beside what no variant can do without."""
    from opspec.analysis.costs import cost
    from opspec.analysis.costs.model import add
    from opspec.analysis.forms import tidy

    op = plan.block.op
    block = next(b for b in cost(op).boundaries[boundary.name] if b.name == plan.block.name)
    form, least = program_traffic(op, boundary, variant.program, {}), add(t.count for t in block.bytes)
    if form == least or tidy(form - least) == 0:
        return f"{_spelled(least)} B, the compulsory bytes"
    return f"{_spelled(form)} B; compulsory {_spelled(least)} B"


def _spelled(form: Expr) -> str:
    """A closed form for people."""
    from opspec.analysis.forms import tidy

    return (
        str(tidy(form))
        .replace("ceiling(", "ceil(")
        .replace("**", "^")
        .replace("*", " * ")
        .replace("^", "**")
        .replace("/", " / ")
    )


def label(plan: Plan, variant: Variant) -> str:
    """The name of a variant, numbered where several share one."""
    names = [v.program.variant for v in plan.variants]
    if names.count(variant.program.variant) == 1:
        return variant.program.variant
    return f"{variant.program.variant} {[id(v) for v in plan.variants].index(id(variant))}"


def _roles(plan: Plan) -> list[str]:
    """A table: an index a line, a variant a column."""
    heads = [label(plan, v) for v in plan.variants]
    rows = [("index", "extent", *heads)]
    for axis in plan.block.axes:
        cells = []
        for variant in plan.variants:
            found = next((a for a in variant.program.axes if a.name == axis.name), None)
            cells.append("-" if found is None else found.role + ("" if found.blocked else ", one at a time"))
        rows.append((axis.name, str(axis.extent), *cells))
    wide = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  " + "  ".join(c.ljust(w) for c, w in zip(r, wide, strict=True)).rstrip() for r in rows]


def _notes(plan: Plan) -> list[str]:
    notes = dict.fromkeys(n for v in plan.variants for n in v.program.notes)
    return list(notes)


def _walks(program: TileProgram) -> list[str]:
    """How the streams are walked and what is fetched more than once."""
    loops = list(_loops(program.body))
    lines = []
    places = {loop.axis: place for loop, place in segment_loops(program.body)}
    for axis, count in Counter(loop.axis for loop in loops).items():
        only = f", only the segments in which {places[axis]} of the program lies" if axis in places else ""
        lines.append(f"{count} sweep{'' if count == 1 else 's'} over {axis}{only}")
    held = [a.name for a in program.axes if a.rows]
    lines += [
        f"parts of {axis} step by step in a thread: what each adds, then each from what came before it"
        if loops
        else f"rows of {axis} one by one in a thread, each loaded once for all taps"
        for axis in held
    ]
    if not loops and not held:
        lines.append("no stream: everything is held at once")
    fetched = Counter(f.tensor for f, _ in fetches(program.body) if f.reread)
    lines += [f"{tensor} is loaded again in a later sweep ({n}x)" for tensor, n in fetched.items()]
    lines += [
        f"long rows of {s.tensor} stay in 16 bits; behind each fold they are converted again"
        for s in program.body
        if isinstance(s, Fetch) and s.packed
    ]
    units = Counter(on_unit(s) for s in _flat(program.body) if isinstance(s, Multiply))
    for unit, count in sorted(units.items(), reverse=True):
        where = "on the matrix unit" if unit else "in f32, on no matrix unit"
        lines.append(f"{count} block product{'' if count == 1 else 's'} {where}")
    if units:
        lines += _warps(program)
    return lines


def _warps(program: TileProgram) -> list[str]:
    """Which warps do what, where a kernel for devices of capability 9.0 says so."""
    from opspec.emit.narrow import narrow
    from opspec.emit.warp_form import form_of

    form = form_of(program, narrow(program))
    if form is None:
        return []
    folds = ", fold what each step leaves" if form.folded else ""
    return [
        f"on capability 9.0 one warp brings tiles of {', '.join(form.operands)}; two groups of four multiply them{folds} and store {', '.join(form.results)}"
    ]


def _traffic(program: TileProgram, blocks: Mapping[str, str]) -> list[str]:
    """Tensors that several programs, or several steps of an outer stream, load alike."""
    seen: dict[str, str] = {}
    segments = {loop.axis for loop, _ in segment_loops(program.body)}
    for fetch, around in fetches(program.body):
        own = axes_of(fetch)
        steps = [a for a in program.axes if walked(a, around) and a.name not in segments]
        again = [a for a in steps if a.name not in own]
        if own and again:
            times = " * ".join(
                f"ceil({a.extent} / {_tile(a, blocks)})" if a.blocked else str(a.extent) for a in again
            )
            named = ", ".join(a.name for a in again)
            seen.setdefault(fetch.tensor, f"{fetch.tensor} is loaded {times} times, once per step of {named}")
        for name in (a.name for a in steps):
            for shared in _shared(fetch, name):
                text = f"{fetch.tensor} is loaded for each {name}, though several share one {shared}"
                seen.setdefault(f"{fetch.tensor} {shared}", text)
    return list(seen.values())


def _tile(axis: AxisPlan, blocks: Mapping[str, str]) -> str:
    """How many indices of an axis a program takes."""
    return f"({blocks[axis.name]} * {blocks[f'{axis.name}.step']})" if axis.rows else blocks[axis.name]


def _shared(fetch: Fetch, axis: str) -> list[str]:
    """Quotients of an axis in a coordinate: several of its steps load the same element."""
    found = [Int.of(a) for i in fetch.at for a in i.atoms() if isinstance(a, FloorDiv)]
    quotients = [str(q) for q in found if axis in q.free_indices()]
    others = [i for i in fetch.at if axis in i.free_indices() and not any(q in str(i) for q in quotients)]
    return [] if others else list(dict.fromkeys(quotients))


def _loops(body: tuple[Statement, ...]) -> Iterator[Loop]:
    for s in body:
        if isinstance(s, Loop):
            yield s
            yield from _loops(s.body)


def _flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for s in body:
        yield s
        if isinstance(s, Loop):
            yield from _flat(s.body)


def _list(head: str, items: list[str], indent: str = "  ") -> list[str]:
    if not items:
        return []
    return [f"  {head}", *(line for item in items for line in wrapped(item, indent + "  "))]


def wrapped(text: str, indent: str = "  ") -> list[str]:
    """A line of prose, broken where it is long."""
    return wrap(text, WIDE, initial_indent=indent, subsequent_indent=indent + "    ") or [indent.rstrip()]
