"""All answers about one op of one boundary, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opspec.analysis.machine import Machine
from opspec.emit.kernel_launch import KernelLaunch
from opspec.ir.integers import Int
from opspec.ir.program import Boundary, Module, Op, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about. ``blocks``: (kernel function, workload) → block sizes, where they are known.

    ``programs``: how many run at once on the target; ``folder``: of the spec, for results that it names.
    """

    module: Module
    op: Op
    boundary: Boundary
    launches: tuple[KernelLaunch, ...]
    machine: Machine
    programs: int
    folder: Path
    blocks: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The workloads of the op."""
        return tuple(self.module.workloads_of(self.op.name))

    def dims(self, workload: Workload) -> dict[str, int]:
        """One shape of a workload, the one with the most weight, with derived dims."""
        dims = dict(max(workload.cases, key=lambda c: c[0])[1])
        return dims | {k: v.evaluate(dims) for k, v in self.op.derived}

    def size(self, extent: Int, workload: Workload) -> int | None:
        """An extent at a workload; None where it is data."""
        return None if extent.tensors() else extent.evaluate(self.dims(workload))


def answers(asked: Asked, others: Sequence[Sequence[str]]) -> list[str]:
    """A block of lines for each kernel, and what belongs to the op. ``others``: lines about relatives, by kernel."""
    from opspec.driver.questions import around, limits, passes, patterns, problem

    lines: list[str] = []
    for k, launch in enumerate(asked.launches):
        lines += ["", f"kernel {launch.plan.block.name}, question by question"]
        lines += section("what kind of problem", problem.lines(asked, launch))
        lines += section("which patterns", patterns.lines(asked, launch))
        lines += section("passes over the data", passes.lines(launch))
        lines += section("what fuses around it", around.lines(asked, k))
        lines += section("limits", limits.lines(asked, launch))
        lines += section("others with this pattern", others[k] if k < len(others) else ())
    return lines


def section(head: str, items: Iterator[str] | Sequence[str]) -> list[str]:
    """A heading with its lines, wrapped; nothing if there are none."""
    from opspec.driver.explain import wrapped

    found = [line for item in items for line in wrapped(item, "    ")]
    return [f"  {head}", *found] if found else []
