"""Which limits a kernel has: of shape, type, topology and of the requests that are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opspec.driver.questions.ask import Asked
from opspec.emit.kernel_launch import KernelLaunch
from opspec.ir.program import Op, Workload
from opspec.schedule.graph import Fold
from opspec.schedule.plan import Plan


def lines(asked: Asked, launch: KernelLaunch) -> Iterator[str]:
    """Shape, types, topology, requests."""
    yield from limits_of(asked.op, launch.plan, asked.workloads)


def limits_of(op: Op, plan: Plan, workloads: Sequence[Workload]) -> Iterator[str]:
    """The same without a launch."""
    needs = [" ".join(r.span.text.split()) for r in op.requires if r.span is not None]
    held = [
        a
        for a in dict.fromkeys(a for v in plan.variants for a in v.roles.tile)
        if plan.block.axis(a).extent.constant is None
    ]
    whole = f"{', '.join(held)} is padded to a power of two where a program holds it whole" if held else ""
    told = [f"shape: {'; '.join(needs)}" if needs else "shape: every one that the signature admits", whole]
    yield "; ".join(t for t in told if t)
    types = [f"{p.name} in {', '.join(c.name for c in p.choices)}" for p in op.dtype_params]
    using = sorted({n.using for n in plan.graph.nodes if isinstance(n, Fold) and n.using})
    fixed = sorted({t.dtype.name for t in plan.block.tensors} - {p.name for p in op.dtype_params})
    yield "types: " + "; ".join(
        [
            *types,
            *([f"fixed {', '.join(fixed)}"] if fixed else []),
            *([f"operands rounded to {', '.join(using)}"] if using else []),
        ]
    )
    yield "topology: one device; no program waits for another, and nothing is exchanged"
    spread = [f"{w.name} ({len(w.cases)} shapes)" for w in workloads if len(w.cases) > 1]
    moments = [w.name for w in workloads if w.lengths]
    if spread or moments:
        yield f"requests: distributions {', '.join([*spread, *moments])}"
    elif workloads:
        yield f"requests: only single shapes are stated ({', '.join(w.name for w in workloads[:4])}), no distribution"
    else:
        yield "requests: no workload is stated"
