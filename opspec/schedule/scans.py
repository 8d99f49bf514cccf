"""Scans that are read just before a point.

A scan stands in a loop over its index in order. A read of the value before the point,
``s[t - 1]``, is a scan of its own that leaves its last point out: it needs no value of another
point, so it stays in the launch.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.dtypes import BOOL, I64
from opspec.ir.integers import ZERO, Index, Int
from opspec.ir.program import Define
from opspec.ir.values import Binary, Compare, Extent, Read, Reduce, Scan, Select, Value, map_values


def split_exclusive(body: tuple[Define, ...]) -> tuple[tuple[Define, ...], frozenset[str]]:
    """Statements in which scans are read at the point only, and the names of those that leave it out."""
    local = {d.name: d for d in body}
    made: dict[str, Define] = {}
    out: list[Define] = []
    for define in body:
        extents = {r.index: r.upper for r in define.ranges}
        if isinstance(define.value, Reduce):
            extents |= {r.index: r.upper for r in define.value.ranges}

        def change(value: Value, extents: dict[str, Int] = extents) -> Value:
            value = map_values(value, change)
            if not isinstance(value, Read) or not isinstance(source := local.get(value.name), Define):
                return value
            return _before(value, source, extents, made) or value

        out.append(replace(define, value=change(define.value)))
    placed: list[Define] = []
    for define in out:
        placed.append(define)
        if define.name in made:
            placed.append(made[define.name])
    return tuple(placed), frozenset(d.name for d in made.values())


def _before(read: Read, source: Define, extents: dict[str, Int], made: dict[str, Define]) -> Value | None:
    """The read of the point before as a read of the scan without its last point; None if it is none."""
    scan = source.value
    if not isinstance(scan, Scan):
        return None
    place = source.indices.index(scan.index)
    point = read.indices[place] + (-1 if scan.reverse else 1)
    here = (*read.indices[:place], point, *read.indices[place + 1 :])
    names = [i.index for i in here]
    widths = [r.upper for r in source.ranges]
    if any(n is None or extents.get(n) != w for n, w in zip(names, widths, strict=True)):
        return None
    name = f"{source.name}.before"
    made[source.name] = replace(source, name=name, kind="temp", output=None, storage=None)
    new: Value = replace(read, name=name, indices=here, otherwise=None)
    if read.otherwise is None:
        return new
    at = dict(zip(source.indices, read.indices, strict=True))
    edge = widths[place] - 1 - read.indices[place] if scan.reverse else read.indices[place]
    test = _holds(edge)
    for c in source.constraints:
        moved = c.substitute(lambda a: at.get(a.name) if isinstance(a, Index) else None)
        test = Binary(op="and", a=test, b=_holds(moved), dtype=BOOL)
    return Select(condition=test, a=new, b=read.otherwise, dtype=read.dtype, span=read.span)


def _holds(constraint: Int) -> Value:
    a, b = (Extent(value=v, dtype=I64) for v in (constraint, ZERO))
    return Compare(op="ge", a=a, b=b, dtype=BOOL)
