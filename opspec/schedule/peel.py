"""Split a stream into the tiles that lie wholly inside the domain and those at its edge.

A mask costs a comparison and a select per element and step, and beside a block product the steps
are many. Where a mask on the stream follows from the position of the tile alone, the loop gets the
part in which it holds for every element; the printer then leaves it out there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opspec.ir.dtypes import I64
from opspec.ir.integers import Datum, Greatest, Index, Int, Least, greatest, least
from opspec.ir.values import Compare, Extent, Value, integers, walk
from opspec.schedule.tile import (
    Collapse,
    Combine,
    Inner,
    Loop,
    Multiply,
    Statement,
    TileProgram,
    statements,
)


def peel(program: TileProgram) -> TileProgram:
    """The program with the inner part of every stream that carries a block product under masks."""
    return replace(program, body=tuple(_statement(s, program) for s in program.body))


def _statement(s: Statement, program: TileProgram) -> Statement:
    if not isinstance(s, Loop):
        return s
    s = replace(s, body=tuple(_statement(x, program) for x in s.body))
    if (
        s.reverse
        or s.segments is not None
        or len(program.axis(s.axis).dims) != 1
        or not any(isinstance(x, Multiply) for x in statements(s.body))
    ):
        return s
    grid = {a.name for a in program.axes if a.role == "grid" and a.blocked}
    blocked = {a.name for a in program.axes if a.blocked}
    implied: list[Value] = []
    lows: list[Int] = []
    highs: list[Int] = []
    kept = False
    ends = [v.value for v in (s.start, s.stop) if isinstance(v, Extent)]
    known = {a for v in ends for a in v.atoms() if isinstance(a, Datum)}
    for mask in dict.fromkeys(_masks(s.body)):
        bound = _bound(mask, s.axis, grid, blocked, known)
        if bound is None:
            kept = kept or s.axis in {
                i for part in walk(mask) for v in integers(part) for i in v.free_indices()
            }
            continue
        implied.append(mask)
        lows += bound[0]
        highs += bound[1]
    if not implied or not isinstance(s.start, Extent) or not isinstance(s.stop, Extent):
        return s
    lows = [x for x in dict.fromkeys(lows) if x != s.start.value]
    low = Extent(value=greatest(s.start.value, *lows), dtype=I64) if lows else None
    # where a mask stays, the stream may end before the others do
    highs += [s.stop.value] if not highs or (kept and not _ends(highs, s.stop.value)) else []
    high = Extent(value=least(*dict.fromkeys(highs)), dtype=I64)
    return replace(s, inner=Inner(start=low, stop=high, implied=tuple(implied)))


def _ends(highs: Iterable[Int], stop: Int) -> bool:
    """Whether every end of a stream is one of ``highs``, or what one of these is at the last row."""
    known = {h.rename({n: n.replace(".first", ".last") for n in h.free_indices()}) for h in highs} | {*highs}
    return set(stop.atom.args if isinstance(stop.atom, Least) else (stop,)) <= known


def _masks(body: Iterable[Statement]) -> Iterable[Value]:
    for s in body:
        match s:
            case Collapse(masks=masks, points=points):
                yield from (*masks, *points)
            case Combine(masks=masks):
                yield from masks
            case Multiply(a=a, b=b):
                yield from (*a.masks, *b.masks)
            case _:
                pass


def _bound(
    mask: Value, axis: str, grid: set[str], blocked: set[str], known: set[Datum]
) -> tuple[tuple[Int, ...], tuple[Int, ...]] | None:
    """Where a mask holds for a whole tile: from which index on, and before which. None if that can't be said.

    Grid axes with a block stand at the edge that admits least. Of data only what is ``known`` in front of the
    stream, because it ends there, can say.
    """
    constraint = _constraint(mask)
    if constraint is None or axis not in constraint.free_indices():
        return None
    data = {a for a in constraint.atoms() if isinstance(a, Datum)}
    if not data <= known or any(i.free_indices() & blocked for a in data for i in a.indices):
        return None
    split = constraint.affine([axis])
    if split is None or split[0][axis].constant not in (1, -1):
        return None
    rest = split[1]
    others = rest.free_indices() & blocked
    if not others <= grid:
        return None
    if others:
        signs = {name: _slope(rest, name) for name in others}
        if any(k is None for k in signs.values()):
            return None
        rest = rest.rename({n: f"{n}.first" if (k or 0) > 0 else f"{n}.last" for n, k in signs.items()})
    if split[0][axis].constant == 1:
        return (-rest,), ()
    return (), (rest + 1,)


def _slope(value: Int, name: str) -> int | None:
    """1 where a value grows with an index, -1 where it falls, 0 where it does neither; None if that can't be said."""
    found: set[int] = set()
    for monomial, c in value.terms:
        here = [a for a, _ in monomial if name in Int.of(a).free_indices()]
        if not here:
            continue
        if len(monomial) > 1 or monomial[0][1] != 1:
            return None
        match here[0]:
            case Index():
                own: set[int | None] = {1}
            case Least(args=args) | Greatest(args=args):
                own = {_slope(a, name) for a in args}
            case _:
                return None
        if None in own:
            return None
        found |= {(k or 0) * (1 if c > 0 else -1) for k in own}
    found -= {0}
    return None if len(found) > 1 else next(iter(found), 0)


def _constraint(mask: Value) -> Int | None:
    """A comparison of integers as an expression that is ``>= 0`` where it holds."""
    match mask:
        case Compare(op=op, a=Extent(value=a), b=Extent(value=b)):
            match op:
                case "lt":
                    return b - a - 1
                case "le":
                    return b - a
                case "gt":
                    return a - b - 1
                case "ge":
                    return a - b
                case _:
                    return None
    return None
