"""Which patterns a kernel uses: tiling, fusion, online reductions, specialisation."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from opspec.analysis.export import workload_dtypes
from opspec.analysis.lints.memory import spelled
from opspec.driver.explain import label
from opspec.driver.pattern import pattern_of
from opspec.driver.questions.ask import Asked
from opspec.emit.kernel_launch import KernelLaunch
from opspec.ir.dtypes import DTypeParam
from opspec.ir.program import Define, Workload


def lines(asked: Asked, launch: KernelLaunch) -> Iterator[str]:
    """The pattern, then each way in which it is used."""
    plan = launch.plan
    pattern = pattern_of(plan)
    yield f"pattern: {pattern.text}"
    if pattern.traits:
        yield f"with {', '.join(pattern.traits)}"
    roles = plan.variants[0].roles
    yield f"tiling: programs over {', '.join(roles.grid) or 'nothing, there is one'}"
    kept = list(_inside(asked, launch))
    if kept:
        saved = ", ".join(_saved(asked, d) for d in kept)
        yield f"fusion: {saved} never leave{'s' if len(kept) == 1 else ''} the kernel"
    notes = dict.fromkeys(n for v in plan.variants for n in v.program.notes if " by g" in n)
    if notes:
        yield f"online reduction: {len(notes)} fold{'' if len(notes) == 1 else 's'} rescaled beside an extreme"
    tuples = dict.fromkeys(n for v in plan.variants for n in v.program.notes if "by Chan's law" in n)
    if tuples:
        sums = "sum is" if len(tuples) == 1 else "sums are"
        yield f"tuple state: {len(tuples)} {sums} taken about a mean that is still running"
    names = [label(plan, v) for v in plan.variants]
    tests = [
        f"{n} where {c.words or c.test}" if c.test else n for n, c in zip(names, launch.choices, strict=True)
    ]
    if launch.lengths is not None:
        own = launch.lengths.lengths
        held = f"{names[0]} where {own.extent} <= {own.held}"
        words = ", in a binary each for short, long and odd rows" if own.odd else ", in one binary"
        tests = [held, f"{names[-1]}{words}"]
    yield f"specialisation: {', else '.join(tests)}; block sizes are compile-time constants"


def _inside(asked: Asked, launch: KernelLaunch) -> Iterator[Define]:
    """Statements whose values stay in the kernel and have more than one point a result row."""
    kernel = next(k for k in asked.boundary.kernels if k.name == launch.plan.block.name)
    stored = {t.name for t in launch.plan.block.tensors}
    for d in kernel.body:
        if d.kind != "temp" and d.output is None and d.name not in stored and d.ranges:
            yield d


def _saved(asked: Asked, define: Define) -> str:
    """A statement with the bytes that it would take."""
    for workload in asked.workloads:
        size = _bytes(asked, define, workload)
        if size is not None:
            return f"{define.origin} ({spelled(size)} at {workload.name})"
    return define.origin


def _bytes(asked: Asked, define: Define, workload: Workload) -> int | None:
    sizes = [asked.size(r.upper - r.lower, workload) for r in define.ranges]
    if None in sizes or any(r.upper.free_indices() for r in define.ranges):
        return None
    storage = define.storage
    if isinstance(storage, DTypeParam):
        storage = workload_dtypes(asked.op, workload)[storage.name]
    return prod(s or 0 for s in sizes) * (storage.bits if storage is not None else 32) // 8
