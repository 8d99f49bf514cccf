"""``select``: one element of a value that is never stored, taken from the stream that computes it.

``z[m, label[m]]`` asks for one point of a row that lives in chunks, or in a block product that nobody can
index. The sum over all v of z[m, v] where v is label[m] has that one term, so it is exact, and it runs
beside whatever else is made of z. It costs a comparison and a select per point, no load and no recomputation.
A read whose place depends on a further index (``z[m, n + 1]``) would cost a row per point and is left alone.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.dtypes import BOOL
from opspec.ir.integers import Datum, Int, index
from opspec.ir.program import Define, Kernel
from opspec.ir.values import Range, Read, Reduce, Value, map_values, walk
from opspec.schedule.applied import Applied


def select_elements(kernel: Kernel) -> tuple[Kernel, tuple[Applied, ...]]:
    """``kernel`` with every such read replaced by a reduction of its own, and what was done."""
    local: dict[str, Define] = {}
    body: list[Define] = []
    applied: list[Applied] = []
    for define in kernel.body:
        fresh: dict[tuple[str, tuple[Int, ...]], Define] = {}
        bound = _ranges(define)

        def change(value: Value) -> Value:
            value = map_values(value, change)
            if not isinstance(value, Read) or value.name not in local:
                return value
            key = value.name, value.indices
            made = fresh.get(key) or _selection(value, local[value.name], bound, define, len(fresh))  # noqa: B023 - used in this turn
            if made is None:
                return value
            fresh[key] = made  # noqa: B023 - as above
            at = tuple(index(i) for i in made.indices)
            return Read(name=made.name, indices=at, dtype=value.dtype, span=value.span)

        value = change(define.value)
        for (name, at), made in fresh.items():
            place = ", ".join(map(str, at))
            text = f"{name}[{place}] is selected where {name} is computed"
            applied.append(Applied(rule="select", statement=define.origin, text=text))
            body.append(made)
        local[define.name] = define
        body.append(define if value is define.value else replace(define, value=value))
    return (replace(kernel, body=tuple(body)) if applied else kernel), tuple(applied)


def _ranges(define: Define) -> dict[str, Range]:
    inner = (r for n in walk(define.value) if isinstance(n, Reduce) for r in n.ranges)
    return {r.index: r for r in (*define.ranges, *inner)}


def _selection(
    read: Read, source: Define, bound: dict[str, Range], reader: Define, count: int
) -> Define | None:
    """The reduction that yields what ``read`` reads; None if this is no read of one element per row."""
    # of a diagonal, the first axis is the row and the others are a place in it
    bare = [i.index for i in read.indices]
    kept = [name is not None and name not in bare[:k] for k, name in enumerate(bare)]
    rows = [str(name) for name, row in zip(bare, kept, strict=True) if row]
    if all(kept) or read.otherwise is not None:
        return None
    ranges = tuple(bound[name] for name in rows if name in bound)
    if len(ranges) < len(rows) or any(_free(r.lower, r.upper) - set(rows) for r in ranges):
        return None
    places = [i for i, row in zip(read.indices, kept, strict=True) if not row]
    if any(i.free_indices() - set(rows) or not _plain(i) for i in places):
        return None
    inner: list[Range] = []
    at: list[Int] = []
    conditions: list[Int] = []
    names: dict[str, str] = {}
    for i, r, row in zip(read.indices, source.ranges, kept, strict=True):
        names[r.index] = str(i.index) if row else f"{count}.{r.index}"
        if not row:
            walked = index(names[r.index])
            inner.append(
                replace(r, index=names[r.index], lower=r.lower.rename(names), upper=r.upper.rename(names))
            )
            conditions += [walked - i, i - walked]
        at.append(index(names[r.index]))
    conditions += [c.rename(names) for c in source.constraints]
    value = Reduce(
        monoid="any" if read.dtype is BOOL else "sum",
        ranges=tuple(inner),
        constraints=tuple(conditions),
        body=Read(name=read.name, indices=tuple(at), dtype=read.dtype, span=read.span),
        dtype=read.dtype,
        span=read.span,
    )
    return Define(
        name=f"{reader.name}.select.{count + 1}",
        origin=reader.origin,
        kind="temp",
        ranges=ranges,
        value=value,
        span=read.span or reader.span,
    )


def _free(*bounds: Int) -> frozenset[str]:
    return frozenset().union(*(b.free_indices() for b in bounds))


def _plain(place: Int) -> bool:
    """Whether the tensors in an index expression are read where no condition has to guard them."""
    data = [a for a in place.atoms() if isinstance(a, Datum)]
    return all(i.index is not None or i.constant is not None for d in data for i in d.indices)
