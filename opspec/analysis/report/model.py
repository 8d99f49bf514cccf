"""What stands on a report's page: plain data, no text of a format. Seconds, bytes, FLOP and FLOP/B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as L

from opspec.analysis.machine import Machine

Provenance = L["derived", "asserted", "measured", "calibrated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """One closed form. ``mathml`` is markup that is safe as it stands; ``text`` is Python source."""

    quantity: str
    unit: str
    mathml: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An op at a workload, under one grouping into kernels, on one machine. ``terms``: seconds by resource."""

    boundary: str
    launches: int
    flops: float
    tensor: float
    size: float
    terms: dict[str, float]
    time: float
    bound: str

    @property
    def ai(self) -> float:
        """FLOP/B of all operations."""
        return self.flops / self.size if self.size else 0.0

    @property
    def ai_tensor(self) -> float:
        """FLOP/B of the operations on matrix units."""
        return self.tensor / self.size if self.size else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A change that the model can price. ``saves``: seconds at most, by the floor; ``bound``: what binds then."""

    text: str
    saves: float
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One record of a result. ``missing``: what a full report would also say."""

    source: str
    status: str
    reason: str
    gpu: str
    dims: str
    time: float | None
    interval: tuple[float, float] | None
    floor: float | None
    calibrated: float | None
    ledger: tuple[tuple[str, float], ...]
    rates: dict[str, float]
    cost: dict[str, float]
    baseline: str
    warnings: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A workload of an op on a machine: the op's own grouping first, then the others.

    ``flips``: a sentence for each grouping that changes what binds.
    """

    workload: str
    shape: str
    machine: Machine
    dtype: str
    readings: tuple[Reading, ...]
    flips: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    measured: tuple[Measurement, ...] = ()

    @property
    def own(self) -> Reading:
        """The op's own grouping."""
        return self.readings[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpPage:
    """Everything about one op. ``reuse``: questions that make it reusable, with their answers."""

    name: str
    spec: str
    doc: str
    formulas: tuple[Formula, ...]
    spots: tuple[Spot, ...]
    notes: tuple[str, ...] = ()
    reuse: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLine:
    """A stage of a pipeline: seconds of all runs and their share of the whole."""

    name: str
    runs: str
    seconds: float
    share: float
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPage:
    """What a variant makes of a pipeline: gains of the kernel and end to end, always both.

    ``steps``: (what, change in seconds, end-to-end seconds behind it). ``losses``: (part, seconds, why).
    """

    name: str
    doc: str
    after: float
    gain: float
    kernel: float | None
    ceiling: float | None
    steps: tuple[tuple[str, float, float], ...]
    losses: tuple[tuple[str, float, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePage:
    """An end-to-end time. ``flags``: what does not agree."""

    name: str
    spec: str
    doc: str
    total: float
    rest: float
    stages: tuple[StageLine, ...]
    variants: tuple[VariantPage, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One of the five rows. ``record`` and ``world``: (text, where it is from)."""

    title: str
    record: tuple[tuple[str, Provenance], ...]
    world: tuple[tuple[str, Provenance], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePage:
    """What a variant must show, and whether it does. ``verdicts``: (condition, yes, no or missing, reason)."""

    name: str
    spec: str
    subject: str
    source: str
    open: bool
    rows: tuple[EvidenceRow, ...]
    verdicts: tuple[tuple[str, str, str], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole page."""

    version: str
    machines: tuple[Machine, ...]
    ops: tuple[OpPage, ...]
    pipelines: tuple[PipelinePage, ...] = ()
    evidence: tuple[EvidencePage, ...] = ()
