"""A launch of one kernel, ready to print, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opspec.emit.configure import Choice
from opspec.emit.joined import Joined
from opspec.emit.lengths import Lengths
from opspec.emit.signature import KernelText, Overlap, descriptor, pointer
from opspec.ir.program import Tensor
from opspec.ir.values import Extent
from opspec.schedule.graph import Load
from opspec.schedule.plan import Plan
from opspec.schedule.tile import Fetch, Loop, TileProgram, statements

STEPS = 4
COPIED = 512
SEGMENTS = 1024  # of which every program finds its own at once
TOGETHER = 16  # tiles of rows that walk the parts of a stream side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyLength:
    """The kernel that holds the variants of another for rows of any length, and the constants of each class."""

    lengths: Lengths | Joined
    text: KernelText


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """One kernel of a boundary, ready to print: its variants' texts and configurations, and what takes rows of
    any length where that is another kernel; ``backwards``: its programs go from the last to the first; ``instead``:
    what small shapes launch in its place and in that of others behind it; ``overlap``: with the launches before and
    after it.

    ``steps``: the fewest steps of a stream that are worth a program of their own; ``copied``: the fewest
    rows and columns of a product for which operands with odd rows are copied.
    """

    plan: Plan
    texts: tuple[KernelText, ...]
    choices: tuple[Choice, ...]
    steps: int = STEPS
    copied: int = COPIED
    lengths: AnyLength | None = None
    backwards: bool = False
    instead: Instead | None = None
    overlap: Overlap = field(default_factory=Overlap)

    @property
    def few_tiles(self) -> bool:
        """Whether the tiles of its product are few because parts of the sum fill a device."""
        return any(c.parted for c in self.choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instead:
    """One launch in place of ``covers`` others, where a program holds what it has to do at once: ``test`` admits it.

    ``by``: that of these others whose kernel has a branch for it.
    """

    launch: KernelLaunch
    covers: int
    test: str
    by: KernelLaunch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """The configuration function of one kernel."""

    name: str
    kernel: str
    params: str
    lines: tuple[str, ...]


def ends_by_data(program: TileProgram, axis: str) -> bool:
    """Whether data says where a program's stream along ``axis`` ends."""
    loops = [s for s in statements(program.body) if isinstance(s, Loop) and s.axis == axis]
    return any(isinstance(loop.stop, Extent) and loop.stop.value.tensors() for loop in loops)


def streamed_tensors(plan: Plan) -> list[Tensor]:
    """The tensors whose element size decides a configuration: what a product or a laned stream reads.

    A label, a table or a scale beside the stream has no say in how wide its lanes are.
    """
    program = plan.variants[0].program
    operands = {s.tensor for s in statements(program.body) if isinstance(s, Fetch) and s.raw}
    if operands:
        return [t for t in program.tensors if t.name in operands]
    axes = {a for v in plan.variants for a in (v.roles.laned, *(p.k for p in v.roles.products.values())) if a}
    data = set(plan.graph.data.values())
    loads = [n for n in plan.graph.nodes if isinstance(n, Load) and n.name not in data]
    wanted = {n.tensor for n in loads if n.axes & axes} or {n.tensor for n in loads}
    found = [t for t in program.tensors if t.name in wanted]
    return found or list(program.tensors)


def taken_tensors(launch: KernelLaunch, params: Sequence[str]) -> list[Tensor]:
    """The tensors among the parameters of a kernel, workspace of parts too."""
    split = next((t.split for t in launch.texts if t.split is not None), None)
    parts = split.split.parts if split is not None else ()
    every = (*launch.plan.block.tensors, *parts)
    return [t for t in every if {pointer(t.name), descriptor(t.name)} & set(params)]
