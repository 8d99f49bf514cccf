"""Dense index boxes: the arrays of index values and the masks of domains.

A box gives each index one axis. Arrays that do not depend on an index have extent 1
on its axis, so that only what needs the whole box is ever that large.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from opspec.ir.integers import Int
from opspec.ir.values import Range
from opspec.reference.bounded import Bounded
from opspec.reference.extents import Lookup, over
from opspec.reference.rounding import Array

LIMIT = 1 << 21
"""Points of a box above which a statement is evaluated in parts."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An index and the half-open interval of values that the box holds."""

    name: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of values."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Box:
    """Axes in order. ``mask``: where the points belong to the domain, None for everywhere."""

    axes: tuple[Axis, ...]
    mask: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return tuple(a.size for a in self.axes)

    @property
    def points(self) -> int:
        """Number of points, those outside the domain included."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def origin(self) -> tuple[int, ...]:
        """The index values of the first point."""
        return tuple(a.start for a in self.axes)

    def indices(self) -> dict[str, Array]:
        """Index values, each along its own axis."""
        rank = len(self.axes)
        return {
            a.name: np.arange(a.start, a.stop, dtype=np.int64).reshape(
                [-1 if i == k else 1 for i in range(rank)]
            )
            for k, a in enumerate(self.axes)
        }


@dataclass(frozen=True, slots=True)
class Field:
    """Values over a box whose first point is ``origin``; ``mask`` as in ``Box``."""

    data: Bounded
    origin: tuple[int, ...]
    mask: Array | None = None


def conjunction(masks: Iterable[Array | None]) -> Array | None:
    """All of the masks; None where nothing is masked."""
    result: Array | None = None
    for mask in masks:
        if mask is None or (mask.size and mask.all()):
            continue
        result = mask if result is None else result & mask
    return result


def enclose(
    ranges: tuple[Range, ...],
    constraints: tuple[Int, ...],
    dims: Mapping[str, int],
    read: Lookup,
    outer: tuple[Axis, ...] = (),
    *,
    fixed: tuple[Axis, ...] | None = None,
) -> Box:
    """The smallest box around ``ranges`` inside ``outer``, with the mask of the domain.

    Bounds may depend on outer indices and on data; then the box takes the extremes and
    the mask the rest. ``fixed`` gives the axes of ``ranges`` instead of their bounds.
    """
    axes = list(outer)
    for k, r in enumerate(ranges):
        if fixed is not None:
            axes.append(fixed[k])
            continue
        known = Box(tuple(axes)).indices()
        lower, upper = (over(v, dims, known, read) for v in (r.lower, r.upper))
        start = int(lower.min()) if lower.size else 0
        stop = int(upper.max()) if upper.size else 0
        axes.append(Axis(r.index, start, max(start, stop)))
    box = Box(tuple(axes))
    values = box.indices()
    masks: list[Array | None] = []
    for r in ranges:
        lower, upper = (over(v, dims, values, read) for v in (r.lower, r.upper))
        masks.append((values[r.index] >= lower) & (values[r.index] < upper))
    masks += [over(c, dims, values, read) >= 0 for c in constraints]
    return Box(box.axes, conjunction(masks))
