"""Few tiles for rows whose length varies: two, and what streams beyond them.

A tile holds a row to the next power of two. Its instructions are issued whether a lane holds an element or
not, and a copy's bandwidth leaves room for about twice as many as a norm or a softmax takes, so that a row
in a tile four times its length runs at half the speed. A length that a workload states as a distribution
says that compiling a tile for each power of two would cost more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opspec.emit.choice import Sizes
from opspec.ir.integers import Int
from opspec.ir.program import Workload

Lengths = tuple[int, ...]


def varying(workloads: Iterable[Workload]) -> frozenset[str]:
    """Dims that a workload states as a distribution of several values."""
    found: set[str] = set()
    for w in workloads:
        first = dict(w.cases[0][1])
        found |= {d for _, dims in w.cases for d, n in dims if n != first[d]}
    return frozenset(found)


def classes(extent: Int, cases: Sequence[Mapping[str, int]], dims: frozenset[str], sizes: Sizes) -> Lengths:
    """The tiles of a whole axis along memory, smallest first; none where its extent does not vary.

    The largest holds every length of the workloads that a program can hold whole; the other is the one with
    which these waste the fewest lanes.
    """
    if not extent.dims() & dims:
        return ()
    tiles = [max(sizes.least, 1 << max(extent.evaluate(c) - 1, 0).bit_length()) for c in cases]
    held = sorted(t for t in tiles if t <= sizes.resident)
    if not held:
        return ()
    largest = held[-1]

    def lanes(small: int) -> int:
        return sum(small if t <= small else largest for t in held)

    return tuple(dict.fromkeys((min(held, key=lanes), largest)))


__all__ = ["classes", "varying"]
