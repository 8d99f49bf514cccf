"""Values that go through memory between two kernels though they are larger than everything an op reads or writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opspec.analysis.lints.codes import MATERIALISED, warning
from opspec.diagnostics import Diagnostic, Failure
from opspec.ir.program import Boundary, Module, Op, Workload

if TYPE_CHECKING:
    from opspec.source import Span

_LARGE = 8  # times the largest tensor of the op
_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that ``kernel`` stores for another one: its bytes at a workload, and how often the largest tensor
    of the op would fit into it."""

    name: str
    kernel: str
    size: int
    times: float


def large_crossings(op: Op, boundary: Boundary, workload: Workload) -> list[Crossing]:
    """The crossing values at least eight times as large as any tensor of the op; none where lengths are data."""
    from opspec.analysis.costs import cost
    from opspec.analysis.export import workload_dtypes
    from opspec.analysis.forms import evaluate

    costs = cost(op, workload_dtypes(op, workload))
    env = dict(max(workload.cases, key=lambda c: c[0])[1])
    own = {t.name for t in op.tensors}
    sizes: dict[str, int] = {}
    kernels: dict[str, str] = {}
    for t in costs.byte_terms(boundary.name):
        value = evaluate(t.count, env)
        if value.is_Rational:
            sizes[t.tensor] = max(sizes.get(t.tensor, 0), int(value))
        if t.direction == "write":
            kernels[t.tensor] = t.kernel
    largest = max((v for k, v in sizes.items() if k in own), default=0)
    return [
        Crossing(name, kernels[name], size, size / largest)
        for name, size in sizes.items()
        if name not in own and name in kernels and largest and size >= _LARGE * largest
    ]


def materialised(module: Module) -> Iterator[Diagnostic]:
    """A warning for each such value of an op's own kernels; groupings that are stated beside them are meant."""
    for op in module.ops:
        boundary, workloads = op.boundaries[0], module.workloads_of(op.name)
        if len(boundary.kernels) < 2 or boundary.analysis or not workloads:
            continue
        try:
            found = large_crossings(op, boundary, workloads[0])
        except Failure:
            continue  # what can't be counted is told where it is asked for
        for c in found:
            message = (
                f"`{c.name}` goes through memory: {spelled(c.size)} at `{workloads[0].name}`, "
                f"{c.times:.3g} times the largest tensor of `{op.name}`"
            )
            yield warning(MATERIALISED, message, _place(op, c.name))


def _place(op: Op, name: str) -> Span | None:
    return next((d.span for d in op.defines if d.name == name), op.span)


def spelled(size: int) -> str:
    """``2 GiB``."""
    unit, scale = next((u, s) for u, s in _UNITS if size >= s or s == 1)
    return f"{size / scale:.4g} {unit}"
