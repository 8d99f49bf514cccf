"""Index domains: integers that must be ``>= 0``, and exact projections of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from opspec.analysis.lattice.cases import any_of, settle
from opspec.analysis.lattice.facts import Facts, split
from opspec.ir.integers import ONE, ZERO, Datum, FloorDiv, Int, index
from opspec.ir.values import Range
from opspec.source import Span


class Inexact(Exception):
    """The set can't be described exactly by what we have; the message says what is in the way, and
    ``span`` where in the text, if known."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message)
        self.span = span


@dataclass(frozen=True, slots=True)
class Domain:
    """Integer points of ``indices`` where every constraint is ``>= 0``.

    Bounds of the indices are constraints like any other.
    """

    indices: tuple[str, ...]
    constraints: tuple[Int, ...]

    @classmethod
    def of(cls, ranges: Iterable[Range], constraints: Iterable[Int] = ()) -> Domain:
        """The domain of a statement or reduction."""
        names: list[str] = []
        found: list[Int] = []
        for r in ranges:
            x = index(r.index)
            names.append(r.index)
            found += [x - r.lower, r.upper - 1 - x]
        return cls(tuple(names), tuple(simplify([*found, *constraints])))

    def within(self, more: Domain) -> Domain:
        """The points of the combined indices that satisfy both."""
        names = tuple(dict.fromkeys((*self.indices, *more.indices)))
        return Domain(names, tuple(simplify([*self.constraints, *more.constraints])))

    def where(self, constraints: Iterable[Int]) -> Domain:
        """The points that satisfy further constraints."""
        return Domain(self.indices, tuple(simplify([*self.constraints, *constraints])))


def simplify(constraints: Iterable[Int]) -> Iterator[Int]:
    """Split minima, maxima and divisions out of constraints; drop repeats and truths."""
    seen: set[Int] = set()
    queue = list(constraints)[::-1]
    while queue:
        c = queue.pop()
        parts = split(c) if c.free_indices() and not _divides_by_index(c) else None
        if parts is not None:
            queue.extend(part for part, _ in parts[::-1])
        elif (c.constant is None or c.constant < 0) and c not in seen:
            seen.add(c)
            yield c


def _divides_by_index(c: Int) -> bool:
    return any(isinstance(a, FloorDiv) and a.den.free_indices() for a in c.atoms())


def data_in(c: Int) -> bool:
    """Whether a constraint depends on data."""
    return bool(c.tensors())


def bounds_of(
    name: str, constraints: Iterable[Int], facts: Facts
) -> tuple[list[tuple[Int, Int]], list[tuple[Int, Int]]]:
    """Lower bounds ``a*x + r >= 0`` and upper bounds ``s - b*x >= 0`` of an index as ``(a, r)``
    and ``(b, s)`` with positive a, b.

    Raises: Inexact if it occurs in another way.
    """
    lowers: list[tuple[Int, Int]] = []
    uppers: list[tuple[Int, Int]] = []
    for c in constraints:
        if name not in c.free_indices():
            continue
        linear = c.affine([name])
        if linear is None or name not in linear[0]:
            raise Inexact(f"`{c} >= 0` is not linear in the index `{name}`")
        k, rest = linear[0][name], linear[1]
        if (k.constant is not None and k.constant > 0) or (k.constant is None and facts.positive(k)):
            lowers.append((k, rest))
        elif k.constant is not None or facts.positive(-k):
            uppers.append((-k, rest))
        else:
            raise Inexact(f"the sign of `{k}` in `{c} >= 0` is not known")
    return lowers, uppers


@lru_cache(maxsize=16384)
def project(domain: Domain, keep: frozenset[str], facts: Facts) -> Domain:
    """The shadow of the domain on some of its indices, exact over the integers.

    Data addressed by a removed index counts as its bound, and a condition left on data alone as met
    (rule 18). Conditions left on dims alone that hold for non-empty extents are dropped.

    Raises: Inexact if the shadow is not the points of a constraint set.
    """
    constraints = list(domain.constraints)
    gone = [x for x in domain.indices if x not in keep]
    while gone:
        gone.sort(key=lambda x: sum(x in c.free_indices() for c in constraints), reverse=True)
        name = gone.pop()
        touching = [c for c in constraints if name in c.free_indices()]
        others = [c for c in constraints if name not in c.free_indices()]
        plain = [c for c in touching if name not in _addressing(c)]
        plain += [w for c in touching if name in _addressing(c) and (w := facts.relaxed(c)) is not None]
        settled = settle(name, plain, _ends(name, plain, facts))
        others += [c for c in settled if name not in c.free_indices()]
        constraints = others + _eliminate(
            name, [c for c in settled if name in c.free_indices()], others, facts
        )
    kept = tuple(x for x in domain.indices if x in keep)
    return Domain(kept, tuple(simplify(constraints)))


def _ends(name: str, touching: list[Int], facts: Facts) -> tuple[Int, Int] | None:
    """The least and the greatest value of an index; None if one of several bounds may be the nearest."""
    plain = [c for c in touching if (k := c.affine([name])) is not None and name in k[0]]
    lowers, uppers = bounds_of(name, plain, facts)
    if len(lowers) != 1 or len(uppers) != 1 or lowers[0][0] != ONE or uppers[0][0] != ONE:
        return None
    return -lowers[0][1], uppers[0][1]


def _addressing(c: Int) -> frozenset[str]:
    """The indices that address data in a constraint."""
    return frozenset().union(*(Int.of(a).free_indices() for a in c.atoms() if isinstance(a, Datum)))


def _on_data_alone(c: Int) -> bool:
    """Whether a constraint has no index outside the data that it reads."""
    plain = c.substitute(lambda a: ZERO if isinstance(a, Datum) else None)
    return data_in(c) and not plain.free_indices()


def _eliminate(name: str, touching: list[Int], others: list[Int], facts: Facts) -> list[Int]:
    lowers, uppers = bounds_of(name, touching, facts)
    found: list[Int] = []
    for a, r in lowers:
        for b, s in uppers:
            c = b * r + a * s
            if _on_data_alone(c) or (not c.free_indices() and facts.proves(c, least=1)):
                continue
            if any(facts.proves(x, [*others, *found]) for x in (c, *any_of(c))):
                continue
            if ONE not in {a, b} and not _dense(a, b, r, s, facts):
                raise Inexact(f"index `{name}` is bounded by multiples of itself on both sides")
            found.append(c)
    return found


def _dense(a: Int, b: Int, r: Int, s: Int, facts: Facts) -> bool:
    """Whether the interval is always long enough to hold a multiple: no shadow is lost."""
    return facts.proves(b * r + a * s - (a - 1) * (b - 1), least=1)


def canonical(domain: Domain, order: tuple[str, ...]) -> tuple[str, ...]:
    """A key equal for domains that differ in the names of their indices only."""
    names = {x: f"#{k}" for k, x in enumerate(order)}
    return tuple(sorted(str(c.rename(names)) for c in domain.constraints))
