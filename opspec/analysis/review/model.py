"""The record of a review: plain data that travels between processes and prints without SymPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as L

from opspec.diagnostics import Diagnostic

Standing = L["broken", "still broken", "mended", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormChange:
    """One closed form that differs. ``dominant``: the largest term at a workload, and its share of the whole.

    ``growth``: (dim, exponent before, exponent after) where the two differ; None where it is no power.
    """

    quantity: str
    unit: str
    boundary: str
    before: str
    after: str
    dominant_before: str = ""
    dominant_after: str = ""
    growth: tuple[tuple[str, int | None, int | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberChange:
    """One number that differs at a workload; ``machine`` is empty for counts. Units: FLOP, B, FLOP/B, s."""

    workload: str
    machine: str
    boundary: str
    quantity: str
    unit: str
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """After by before."""
        return self.after / self.before if self.before and self.after is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """The resource that binds changes at a workload on a machine."""

    workload: str
    machine: str
    boundary: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where ``ai.tensor`` meets the ridge along one dim, the others as in the workload."""

    workload: str
    machine: str
    boundary: str
    dim: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetChange:
    """A line of an ``expect`` block and what became of it."""

    workload: str
    text: str
    standing: Standing
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineChange:
    """An end-to-end time in seconds, of a pipeline or of a variant. ``note``: new, removed, or why it has no time."""

    pipeline: str
    variant: str
    before: float | None
    after: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpReview:
    """One op: ``same`` means equal costs, whatever became of its text."""

    op: str
    kind: L["same", "changed", "added", "removed"]
    renamed: tuple[tuple[str, str], ...] = ()
    forms: tuple[FormChange, ...] = ()
    numbers: tuple[NumberChange, ...] = ()
    flips: tuple[Flip, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    notes: tuple[str, ...] = ()
    edited: bool = False
    recoded: bool = False

    @property
    def quiet(self) -> bool:
        """Whether a reader has nothing to look at."""
        return self.kind == "same" and not (self.recoded or self.notes or self.renamed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecReview:
    """One spec file. ``moved_from``: its path before, if that is another."""

    path: str
    moved_from: str = ""
    ops: tuple[OpReview, ...] = ()
    budgets: tuple[BudgetChange, ...] = ()
    pipelines: tuple[PipelineChange, ...] = ()
    faults_before: tuple[Diagnostic, ...] = ()
    faults_after: tuple[Diagnostic, ...] = ()

    @property
    def quiet(self) -> bool:
        """Whether a reader has nothing to look at."""
        faults = self.faults_before or self.faults_after
        return not (faults or self.budgets or self.pipelines or self.moved_from) and all(
            o.quiet for o in self.ops
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A whole review. ``looked_at``: specs in either revision; ``specs``: those whose text differs."""

    base: str
    head: str
    looked_at: int
    machines: tuple[str, ...]
    specs: tuple[SpecReview, ...] = ()

    @property
    def loud(self) -> tuple[SpecReview, ...]:
        """Specs that a reader has to look at."""
        return tuple(s for s in self.specs if not s.quiet)

    def ops(self, *kinds: str) -> tuple[tuple[SpecReview, OpReview], ...]:
        """The ops of these kinds with their specs."""
        return tuple((s, o) for s in self.specs for o in s.ops if o.kind in kinds)

    def budgets(self, *standings: str) -> tuple[tuple[SpecReview, BudgetChange], ...]:
        """The budgets of these standings with their specs."""
        return tuple((s, b) for s in self.specs for b in s.budgets if b.standing in standings)
