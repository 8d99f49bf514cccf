"""``apart``: a value that is read at fixed places alone, made at these and nowhere else.

``u[m, n, c]`` of which ``u[m, n, 0]`` and ``u[m, n, 1]`` are read has an axis of two that no block dimension should
have: as two values it takes no lanes that are filled up, and each of two products has the tile of a plain one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from opspec.ir.integers import Index, Int
from opspec.ir.program import Define, Kernel
from opspec.ir.values import Read, Scan, Value, map_integers, map_values, walk
from opspec.schedule.applied import Applied

MOST = 8  # places of one value


def make_apart(kernel: Kernel, crossing: Container[str] = ()) -> tuple[Kernel, tuple[Applied, ...]]:
    """``kernel`` with such values taken apart, and what was done. ``crossing``: values that another kernel reads."""
    body = list(kernel.body)
    applied: list[Applied] = []
    # from the last to the first: what a value is made of is then read at the same places
    for k in reversed(range(len(body))):
        source = body[k]
        if source.output is not None or source.name in crossing:
            continue
        while (found := _fixed(source, body[k + 1 :])) is not None:
            axis, places = found
            copies = {at: _at(source, axis, at) for at in places}
            later = [_retarget(d, source.name, axis, copies) for d in body[k + 1 :]]
            if not any(a.statement == source.origin for a in applied):
                applied.append(_applied(source, axis, places))
            body[k:] = [*copies.values(), *later]
            if len(places) > 1:
                break
            source = body[k]
    return (replace(kernel, body=tuple(body)) if applied else kernel), tuple(applied)


def _applied(source: Define, axis: int, places: tuple[int, ...]) -> Applied:
    name, at = source.ranges[axis].index, " and ".join(map(str, places))
    text = f"made where {name} is {at}, and nowhere else"
    return Applied(rule="apart", statement=source.origin, text=text)


def _fixed(source: Define, later: list[Define]) -> tuple[int, tuple[int, ...]] | None:
    """An axis at which every read of a value names a number, and these numbers."""
    reads = [n for d in later for n in walk(d.value) if isinstance(n, Read) and n.name == source.name]
    along = source.value.index if isinstance(source.value, Scan) else None
    for axis, own in enumerate(source.ranges):
        places = {r.indices[axis].constant for r in reads}
        if not reads or None in places or any(r.otherwise is not None for r in reads) or own.index == along:
            continue
        numbers = sorted(int(p) for p in places if p is not None)
        if len(numbers) <= MOST and not own.lower.free_indices():
            return axis, tuple(numbers)
    return None


def _at(source: Define, axis: int, place: int) -> Define:
    """A value where its index along ``axis`` is a number."""
    name = source.ranges[axis].index

    def moved(i: Int) -> Int:
        return i.substitute(lambda a: Int.of(place) if a == Index(name) else None)

    ranges = (
        replace(r, lower=moved(r.lower), upper=moved(r.upper))
        for k, r in enumerate(source.ranges)
        if k != axis
    )
    conditions = (moved(c) for c in source.constraints)
    return replace(
        source,
        name=f"{source.name}.at.{place}",
        ranges=tuple(ranges),
        constraints=tuple(c for c in conditions if c.constant is None or c.constant < 0),
        value=map_integers(source.value, moved),
    )


def _retarget(define: Define, name: str, axis: int, copies: dict[int, Define]) -> Define:
    """A statement whose reads of a value go to the copies of it."""

    def change(value: Value) -> Value:
        value = map_values(value, change)
        if not isinstance(value, Read) or value.name != name:
            return value
        at = copies[int(value.indices[axis].constant or 0)]
        kept = tuple(i for k, i in enumerate(value.indices) if k != axis)
        return replace(value, name=at.name, indices=kept)

    value = change(define.value)
    return define if value is define.value else replace(define, value=value)
