"""Axes whose points are segments of another: ``y[n, f] = … w[e, k, f] … for n in offs[e]..offs[e + 1]``.

Each place n lies in one segment e, so that a program that owns a tile of n meets few of them: those from
where its first place lies to where its last does. Such an axis is walked one index at a time inside the
program, over these segments only, and the stores of each are masked to its own places.
"""

from __future__ import annotations

from dataclasses import dataclass

from opspec.ir.integers import Datum, Int, index
from opspec.schedule.graph import Fold, Graph, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """``axis`` numbers the segments that ``tensor`` bounds: ``tensor[axis] <= place < tensor[axis + 1]``."""

    axis: str
    tensor: str
    place: str


def segments_of(graph: Graph) -> dict[str, Segment]:
    """The axes that every store ties to a place that it writes, and that nothing reduces."""
    stores = [n for n in graph.nodes if isinstance(n, Store)]
    reduced = {a for n in graph.nodes if isinstance(n, Fold) for a in n.over}
    found: dict[str, Segment] = {}
    for axis in dict.fromkeys(a.name for a in graph.block.axes if a.name not in reduced):
        ties = {_tie(axis, s) for s in stores}
        tie = next(iter(ties)) if len(ties) == 1 else None
        if tie is not None:
            found[axis] = tie
    return found


def _tie(axis: str, store: Store) -> Segment | None:
    if axis not in store.axes or any(axis in i.free_indices() for i in store.at):
        return None
    places = [i.index for i in store.at if i.index is not None]
    for constraint in store.constraints:
        for datum in (a for a in constraint.atoms() if isinstance(a, Datum)):
            if datum.indices != (index(axis),):
                continue
            after = Int.of(Datum(datum.tensor, (index(axis) + 1,)))
            for place in places:
                at = index(place)
                if constraint == at - Int.of(datum) and after - at - 1 in store.constraints:
                    return Segment(axis=axis, tensor=datum.tensor, place=place)
    return None
