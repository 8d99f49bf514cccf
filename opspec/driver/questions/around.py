"""What else could run in a kernel: maps before and behind, further reductions, and its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from opspec.analysis.export import workload_dtypes
from opspec.analysis.forms import evaluate
from opspec.analysis.lints.memory import large_crossings, spelled
from opspec.diagnostics import Failure
from opspec.driver.questions.ask import Asked
from opspec.ir.program import Kernel
from opspec.schedule.graph import Load, Store
from opspec.schedule.plan import schedule_kernel


def lines(asked: Asked, number: int) -> Iterator[str]:
    """Maps, reductions, neighbours that could join, and values that go through memory though they are large."""
    launch = asked.launches[number]
    graph, roles = launch.plan.graph, launch.plan.variants[0].roles
    loads = [n for n in graph.nodes if isinstance(n, Load) and n.axes]
    read = dict.fromkeys(n.tensor for n in loads if n.dtype.kind == "float")
    stores = [n for n in graph.nodes if isinstance(n, Store)]
    if read:
        yield f"before it: any map of {', '.join(read)}, element by element"
    written = ", ".join(dict.fromkeys(n.tensor for n in stores))
    whole = [a for a in dict.fromkeys(a for n in stores for a in n.axes) if a not in roles.grid]
    yield f"behind it: any map of {written}" + (
        f", and folds over {', '.join(whole)}, which a program holds all of"
        if whole
        else ", and no fold: each axis is cut across programs"
    )
    kernels = asked.boundary.kernels
    if number + 1 < len(kernels):
        yield from _joined(asked, number)
    yield from _warnings(asked, kernels[number])
    if number == 0:
        yield from _groupings(asked)


def _joined(asked: Asked, number: int) -> Iterator[str]:
    """Whether the next kernel could be part of this one, and what that costs in programs."""
    first, second = asked.boundary.kernels[number : number + 2]
    together = replace(first, body=(*first.body, *second.body))
    kept = tuple(together if k is first else k for k in asked.boundary.kernels if k is not second)
    boundary = replace(asked.boundary, name="joined", kernels=kept)
    try:
        roles = schedule_kernel(asked.op, boundary, together).variants[0].roles
    except Failure as failure:
        yield f"{second.name} can't join it: {failure.diagnostics[0].message}"
        return
    op = replace(asked.op, boundaries=(*asked.op.boundaries, boundary))
    saved = ""
    for workload in asked.workloads[:1]:
        before, after = (_bytes(asked, op, b, asked.dims(workload)) for b in (asked.boundary.name, "joined"))
        if before is not None and after is not None:
            saved = f": {spelled(before - after)} less at {workload.name}"
    alone = asked.launches[number].plan.variants[0].roles.grid
    fewer = (
        ""
        if set(alone) <= set(roles.grid)
        else f", but programs are over {', '.join(roles.grid) or 'nothing'} then"
    )
    yield f"{second.name} can join it{saved}{fewer}"


def _bytes(asked: Asked, op: object, boundary: str, env: Mapping[str, int]) -> int | None:
    from opspec.analysis.costs import cost
    from opspec.ir.program import Op

    assert isinstance(op, Op)
    total = evaluate(cost(op, workload_dtypes(asked.op, asked.workloads[0])).total_bytes(boundary), env)
    return int(total) if total.is_Integer else None


def _warnings(asked: Asked, kernel: Kernel) -> Iterator[str]:
    """Values that the kernel writes for another one though they are larger than every tensor of the op."""
    for workload in asked.workloads[:1]:
        for c in large_crossings(asked.op, asked.boundary, workload):
            if c.kernel == kernel.name:
                yield (
                    f"warning: {c.name} goes through memory, {spelled(c.size)} at {workload.name}, {c.times:.3g} times "
                    "the largest tensor of the op; keep it in the kernel that uses it"
                )


def _groupings(asked: Asked) -> Iterator[str]:
    """What other groupings of the op would move through memory though it is larger than every tensor."""
    for boundary in asked.op.boundaries:
        if boundary.name in ("", asked.boundary.name):
            continue
        for workload in asked.workloads[:1]:
            found = [f"{c.name} ({spelled(c.size)})" for c in large_crossings(asked.op, boundary, workload)]
            if found:
                yield f"grouped as {boundary.name}, {', '.join(found)} would go through memory at {workload.name}"
