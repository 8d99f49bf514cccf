"""What a spec says beyond its ops: pipelines, variants, evidence, machines and token ledgers.

Times are exact fractions of seconds. Nothing here refers to an object: stages name ops,
workloads and machines, and the front end has checked that they exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal as L

from opspec.source import Span

Provenance = L["derived", "asserted", "measured", "calibrated"]
Row = L["cost", "numbers", "failure", "level", "acceptance"]
ROWS: tuple[Row, ...] = ("cost", "numbers", "failure", "level", "acceptance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of an end-to-end time: ``count`` runs of ``seconds`` each.

    ``total``: stated for all runs (``18 ms of 4.1 ms each``), and then ``count`` is what it implies, as soon as
    ``seconds`` are known.
    ``start``: of a recorded span (``3 ms .. 6 ms``). ``op`` and ``workload``: what runs; without
    ``seconds`` its time comes from a result (``results``, a path) or from the model.
    """

    name: str
    count: Fraction = Fraction(1)
    seconds: Fraction | None = None
    total: Fraction | None = None
    start: Fraction | None = None
    op: str = ""
    workload: str = ""
    boundary: str = ""
    machine: str = ""
    results: str = ""
    provenance: Provenance = "asserted"
    source: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """An end-to-end time. Stages follow each other, except those of one ``overlaps`` group, which run
    side by side, and recorded spans. ``wall``: the whole, where it was measured as such."""

    name: str
    doc: str = ""
    stages: tuple[Stage, ...]
    overlaps: tuple[tuple[str, ...], ...] = ()
    wall: Fraction | None = None
    machine: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A pipeline with some stages restated or added."""

    name: str
    pipeline: str
    doc: str = ""
    stages: tuple[Stage, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured number of the change, or (``base``) of what it replaces."""

    name: str
    base: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A number that a condition states."""

    value: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """``a op b`` of a gate condition."""

    op: L["+", "-", "*", "/"]
    a: Term
    b: Term


Term = Metric | Constant | Arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``a op b``; ``text`` as written, ``label`` in the user's words (may be empty)."""

    op: L["<", "<=", ">", ">=", "==", "!="]
    a: Term
    b: Term
    text: str
    label: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """A number of the evidence that anybody can compute again: a query at a workload."""

    op: str
    workload: str
    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One row of the table: what must be on record, and (``world``) what world models add."""

    row: Row
    world: bool
    texts: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a variant must prove before it is let out."""

    name: str
    pipeline: str
    variant: str
    doc: str = ""
    rows: tuple[EvidenceRow, ...]
    numbers: tuple[Recomputed, ...] = ()
    gate: tuple[Condition, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def row(self, row: Row, *, world: bool = False) -> tuple[str, ...]:
        """The texts of a row, none if it is not there."""
        return next((r.texts for r in self.rows if r.row == row and r.world == world), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineValue:
    """``memory.bandwidth = 2.5 TB/s asserted "…"``, in SI base units; ``source`` says where it is from."""

    key: str
    value: Fraction
    dense: bool
    source: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBlock:
    """A machine that a spec states: the values of another one (``like``), some of them replaced."""

    name: str
    doc: str = ""
    like: str
    values: tuple[MachineValue, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """``full = 3 * 256``. ``open``: at least ``tokens``, since one factor is not stated (``some``)."""

    name: str
    text: str
    tokens: int
    open: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where the tokens of a workload's dim come from; they must add up to its extent."""

    name: str
    workload: str
    dim: str
    doc: str = ""
    entries: tuple[LedgerEntry, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
