"""What a plot shows, whoever draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One quantity: (extent, value) in order of the extent."""

    name: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A value that does not depend on the dim: a ridge, a peak."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The first extent from which something else holds.

    ``kind``: ``bound`` where another resource binds, ``crossing`` where two curves, or a curve and a level, meet.
    """

    at: int
    kind: Literal["bound", "crossing"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A plot: ``unit`` that of every curve and level; ``where`` what is fixed, in words."""

    op: str
    expr: str
    dim: str
    unit: str
    where: str
    curves: tuple[Curve, ...]
    levels: tuple[Level, ...] = ()
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False

    @property
    def values(self) -> tuple[float, ...]:
        """Every value of every curve."""
        return tuple(y for c in self.curves for _, y in c.points)

    def to_json(self) -> dict[str, Any]:
        """The plot as data."""
        return {
            "op": self.op,
            "expr": self.expr,
            "dim": self.dim,
            "unit": self.unit,
            "where": self.where,
            "curves": [{"name": c.name, "points": [list(p) for p in c.points]} for c in self.curves],
            "levels": [{"name": v.name, "value": v.value} for v in self.levels],
            "marks": [{"at": m.at, "kind": m.kind, "text": m.text} for m in self.marks],
            "notes": list(self.notes),
        }
