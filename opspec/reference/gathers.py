"""Which integers a tensor may hold: found from where the op uses them as indices.

A tensor that addresses an axis holds positions on it, one that bounds a range holds
lengths, and two neighbouring elements that bound one range hold rising offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opspec.ir.integers import Datum, Index, Int, children
from opspec.ir.program import Define, Op
from opspec.ir.values import Compare, Literal, Range, Read, Reduce, Scalar, Select, Value, operands


@dataclass(slots=True)
class Use:
    """What is known of the integers of one tensor.

    ``below``: exclusive upper bounds, in dims, of positions on an axis, with the factor
    that the integer is multiplied by. ``rising`` names the axis extent that offsets end
    at. ``compared``: literals and scalars that elements are compared with.
    """

    below: list[tuple[Int, int]] = field(default_factory=list)
    lengths: list[Int] = field(default_factory=list)
    rising: Int | None = None
    compared: list[float | str] = field(default_factory=list)
    guarded: bool = True
    distinct: bool = False
    slack: list[Int] = field(default_factory=list)


def uses(op: Op) -> dict[str, Use]:
    """The uses of each integer tensor of the op, by name."""
    found = {t.name: Use() for t in op.tensors if _integral(op, t.name)}
    for define in op.defines:
        _ranges(op, define, found)
        _value(op, define.value, found, guarded=False)
        for c in define.constraints:
            _lengths(c, define.ranges, found)
            _nested(op, c, found, guarded=False)
        _segments(define, found)
        if define.output is not None:
            _address(op, define.output.tensor, define.output.at, found, guarded=False)
    for assume in op.assumes:
        use = found.get(assume.tensor)
        if use is not None and assume.kind == "distinct":
            use.distinct = True
        elif use is not None and assume.slack is not None:
            use.slack.append(assume.slack)
    return found


def interval(use: Use, name: str, dims: Mapping[str, int]) -> tuple[int, int] | None:
    """The least and greatest integer allowed; None where the op uses it as a number only.

    The greatest is less than the least where no integer is allowed.
    """
    if not (use.below or use.lengths or use.slack or use.rising):
        return None
    low, high = 0, 1 << 30
    for bound, factor in use.below:
        high = min(high, -(-bound.evaluate(dims) // factor) - 1)
    if not use.below:
        for bound in use.lengths:
            high = min(high, bound.evaluate(dims))
    if use.rising is not None:
        high = min(high, use.rising.evaluate(dims))
    for slack in use.slack:
        at = [_slack(slack, name, dims, v) for v in (0, 1)]
        if at[0] is None or at[1] is None:
            continue
        step = at[1] - at[0]
        if step < 0:
            high = min(high, at[0] // -step)
        elif step > 0:
            low = max(low, -(at[0] // step))
    return low, min(high, max([low, *dims.values()])) if high == 1 << 30 else high


def _slack(slack: Int, name: str, dims: Mapping[str, int], value: int) -> int | None:
    free = dict.fromkeys(slack.free_indices(), 0)
    try:
        return slack.evaluate({**free, **dims}, lambda tensor, _: value if tensor == name else 0)
    except ZeroDivisionError:
        return None


def _integral(op: Op, name: str) -> bool:
    tensor = op.tensor(name)
    return tensor is not None and getattr(tensor.dtype, "kind", "float") == "int" and tensor.role != "out"


def _data(value: Int) -> Iterator[tuple[Datum, int]]:
    """Data at the top of an expression, with the factor each is multiplied by where constant."""
    for monomial, factor in value.terms:
        for atom, _ in monomial:
            if isinstance(atom, Datum):
                yield atom, abs(factor) if len(monomial) == 1 else 1
            else:
                for child in children(atom):
                    yield from _data(child)


def _nested(op: Op, value: Int, found: dict[str, Use], *, guarded: bool) -> None:
    for atom in value.atoms():
        if isinstance(atom, Datum):
            _address(op, atom.tensor, atom.indices, found, guarded=guarded)


def _address(op: Op, name: str, at: tuple[Int, ...], found: dict[str, Use], *, guarded: bool) -> None:
    tensor = op.tensor(name)
    extents = tensor.extents if tensor is not None else _extents(op, name)
    for position, bound in zip(at, extents, strict=False):
        for datum, factor in _data(position):
            use = found.get(datum.tensor)
            if use is not None and (bound, factor) not in use.below:
                use.below.append((bound, factor))
            if use is not None:
                use.guarded &= guarded
        _nested(op, position, found, guarded=guarded)


def _extents(op: Op, name: str) -> tuple[Int, ...]:
    define = next((d for d in op.defines if d.name == name), None)
    return () if define is None else tuple(r.upper for r in define.ranges)


def _value(op: Op, value: Value, found: dict[str, Use], *, guarded: bool) -> None:
    match value:
        case Read(name=name, indices=at, otherwise=otherwise):
            _address(op, name, at, found, guarded=guarded or otherwise is not None)
        case Select(condition=condition, a=a, b=b):
            _value(op, condition, found, guarded=guarded)
            for branch in (a, b):
                _value(op, branch, found, guarded=True)
            return
        case Compare(a=a, b=b):
            _compared(a, b, found)
            _compared(b, a, found)
        case Reduce(ranges=ranges, constraints=constraints):
            for c in constraints:
                _lengths(c, ranges, found)
                _nested(op, c, found, guarded=guarded)
        case _:
            pass
    for child in operands(value):
        _value(op, child, found, guarded=guarded)


def _compared(element: Value, other: Value, found: dict[str, Use]) -> None:
    while hasattr(element, "x"):
        element = element.x
    while hasattr(other, "x"):
        other = other.x
    if isinstance(element, Read) and element.name in found:
        use = found[element.name]
        if isinstance(other, Literal):
            use.compared.append(float(other.value))
        elif isinstance(other, Scalar):
            use.compared.append(other.name)


def _lengths(constraint: Int, ranges: tuple[Range, ...], found: dict[str, Use]) -> None:
    """A constraint such as ``len[b] - t - 1 >= 0``: an element counts points of an index."""
    inside = {a.name for a in constraint.atoms() if isinstance(a, Index)}
    for datum, _ in _data(constraint):
        use = found.get(datum.tensor)
        addressed = {a.name for i in datum.indices for a in i.atoms() if isinstance(a, Index)}
        for r in ranges:
            closed = not r.upper.free_indices() and not r.upper.tensors()
            if use is not None and closed and r.index in inside - addressed:
                use.lengths.append(r.upper)


def _ranges(op: Op, define: Define, found: dict[str, Use]) -> None:
    ranges = define.ranges + (define.value.ranges if isinstance(define.value, Reduce) else ())
    for r in ranges:
        lower, upper = r.lower.atom, r.upper.atom
        extent = _axis(op, define, r.index)
        for side in (r.lower, r.upper):
            for datum, _ in _data(side):
                use = found.get(datum.tensor)
                if use is not None and extent is not None:
                    use.lengths.append(extent)
            _nested(op, side, found, guarded=False)
        if isinstance(lower, Datum) and isinstance(upper, Datum) and lower.tensor == upper.tensor:
            use = found.get(lower.tensor)
            if use is not None:
                use.rising = extent


def _segments(define: Define, found: dict[str, Use]) -> None:
    """Offsets of a statement that writes each place of an axis in the segment that holds it."""
    for c in define.constraints:
        for r in define.ranges:
            place = Int.of(Index(r.index))
            datum = (place - c).atom
            if not isinstance(datum, Datum) or datum.tensor not in found or len(datum.indices) != 1:
                continue
            after = Int.of(Datum(datum.tensor, (datum.indices[0] + 1,)))
            if after - place - 1 in define.constraints:
                found[datum.tensor].rising = r.upper


def _axis(op: Op, define: Define, name: str) -> Int | None:
    """The extent of an axis that the index addresses bare."""

    def look(tensor: str, at: tuple[Int, ...]) -> Int | None:
        found = op.tensor(tensor)
        extents = found.extents if found is not None else _extents(op, tensor)
        for position, extent in zip(at, extents, strict=False):
            if position.index == name and not extent.free_indices() and not extent.tensors():
                return extent
        return None

    def below(value: Value) -> Int | None:
        if isinstance(value, Read):
            found = look(value.name, value.indices)
            if found is not None:
                return found
        return next((f for f in map(below, operands(value)) if f is not None), None)

    if define.output is not None:
        found = look(define.output.tensor, define.output.at)
        if found is not None:
            return found
    return below(define.value)
