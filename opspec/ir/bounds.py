"""Proofs that an integer expression is never negative on a domain.

The method is substitution of extremes: an index whose coefficient has a known sign is
replaced by a bound of it, until only dims remain, which are at least 0 (at least 1
where an index ranges over them). Incomplete by design: what is not proven is refused
with a message, and never assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

from opspec.ir.integers import (
    ZERO,
    Atom,
    Datum,
    Dim,
    FloorDiv,
    Greatest,
    Index,
    Int,
    Least,
    Mod,
    Monomial,
    floor_div,
    greatest,
    least,
)
from opspec.ir.values import Range

Terms = tuple[tuple[Monomial, int], ...]
EFFORT = 600  # goals that one proof looks at, fewer where each is compared with more facts than usual
USUAL = 12


@dataclass(frozen=True, slots=True)
class DataBound:
    """``slack >= 0`` for the element of ``tensor`` at ``indices``, whatever the indices are."""

    tensor: str
    indices: tuple[str, ...]
    slack: Int


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be used in a proof: expressions known to be ``>= 0``, dims known to be
    multiples (``D`` is ``2 * (D // 2)``), and bounds on data.
    """

    known: tuple[Int, ...] = ()
    multiples: tuple[tuple[str, Int], ...] = ()
    data: tuple[DataBound, ...] = ()

    def extended(self, more: Iterable[Int]) -> Facts:
        """These facts and some more."""
        return Facts((*self.known, *more), self.multiples, self.data)


def domain(ranges: Iterable[Range], constraints: Iterable[Int] = ()) -> tuple[Int, ...]:
    """A domain as expressions that are ``>= 0`` on it, with each range known not to be empty."""
    known: list[Int] = []
    for r in ranges:
        i = Int.of(Index(r.index))
        known += [i - r.lower, r.upper - 1 - i]
        if not (r.upper.free_indices() or r.lower.free_indices()):
            known.append(r.upper - r.lower - 1)
    return (*known, *constraints)


def canonical(value: Int, facts: Facts) -> Int:
    """The expression with divisible dims written as multiples, so that equal extents are equal."""
    return _canonical(value, facts.multiples) if facts.multiples else value


@lru_cache(maxsize=8192)
def _canonical(value: Int, multiples: tuple[tuple[str, Int], ...]) -> Int:
    table = dict(multiples)

    def replace(atom: Atom) -> Int | None:
        if isinstance(atom, Dim) and atom.name in table:
            return table[atom.name]
        if isinstance(atom, FloorDiv):
            if any(
                Int.of(atom) in {x for t in table[d].terms for x in map(_of, t[0])}
                for d in atom.num.dims() & set(table)
            ):
                return Int.of(atom)
            return floor_div(atom.num.substitute(replace), atom.den.substitute(replace))
        return None

    return value.substitute(replace)


def _of(entry: tuple[Atom, int]) -> Int:
    return Int.of(entry[0])


def equal(a: Int, b: Int, facts: Facts) -> bool:
    """Whether two expressions are provably equal."""
    return a == b or canonical(a - b, facts) == ZERO or (prove(a - b, facts) and prove(b - a, facts))


def prove(goal: Int, facts: Facts) -> bool:
    """Whether ``goal >= 0`` follows from the facts; False means "not proven".

    Raises: Exhausted where an allowance ends.
    """
    proven, steps = _prove(goal, facts)
    _spend(steps)
    return proven


@lru_cache(maxsize=16384)
def _prove(goal: Int, facts: Facts) -> tuple[bool, int]:
    search = _Search(_ground(facts))
    return search.run(canonical(goal, facts), 12), search.steps


class Exhausted(Exception):
    """The proofs about one thing take more steps than it was allowed."""


_left: ContextVar[int | None] = ContextVar("_left", default=None)


@contextmanager
def allowance(steps: int) -> Iterator[None]:
    """Let the proofs inside take so many steps; kept ones count as often as they are asked for."""
    token = _left.set(steps)
    try:
        yield
    finally:
        _left.reset(token)


def remaining() -> int:
    """Steps that are left of the allowance; 0 outside of one."""
    return _left.get() or 0


def _spend(steps: int) -> None:
    left = _left.get()
    if left is not None:
        _left.set(left - steps)
        if left < steps:
            raise Exhausted


class _Ground:
    """What proofs from the same facts share: the facts in the one form, and what is plain by them."""

    def __init__(self, facts: Facts) -> None:
        known = [canonical(k, facts) for k in facts.known]
        self.bounds = facts.data
        self.positive: set[Atom] = set()
        for k in known:
            m = k + 1
            if len(m.terms) == 1 and m.terms[0][1] == 1:
                self.positive.update(a for a, _ in m.terms[0][0])
        self.known = list(dict.fromkeys(k for k in known if k.constant is None))
        self.least: dict[Terms, int] = {}
        for varying, constant in map(_parts, self.known):
            self.least[varying] = min(constant, self.least.get(varying, constant))
        self.plain = [k for k in self.known if not k.free_indices() and not self.obvious(k)]

    def obvious(self, goal: Int) -> bool:
        """All terms are non-negative once positive atoms are written as 1 + something."""
        c = goal.constant
        if c is not None:
            return c >= 0
        if self.positive and any(c < 0 for _, c in goal.terms):
            goal = goal.substitute(lambda a: Int.of(a) + 1 if a in self.positive else _keep(a))
        return all(c > 0 and all(p % 2 == 0 or self._non_negative(a) for a, p in m) for m, c in goal.terms)

    def close(self, goal: Int) -> bool:
        """The goal is a fact plus a constant that is not negative."""
        varying, constant = _parts(goal)
        least_known = self.least.get(varying)
        return least_known is not None and constant >= least_known

    def sign(self, coefficient: Int) -> int:
        """1 or -1 where it is plain, else 0."""
        return 1 if self.obvious(coefficient) else -1 if self.obvious(-coefficient) else 0

    def data(self, atom: Datum) -> list[Int]:
        """What the facts say of one element."""
        result = []
        for bound in self.bounds:
            if bound.tensor == atom.tensor and len(bound.indices) == len(atom.indices):
                table = dict(zip(bound.indices, atom.indices, strict=True))
                result.append(
                    bound.slack.substitute(lambda a, t=table: t.get(a.name) if isinstance(a, Index) else None)  # type: ignore[misc]
                )
        return result

    def _non_negative(self, atom: Atom) -> bool:
        match atom:
            case Dim() | Mod():
                return True
            case Index():
                return Int.of(atom) in self.known
            case FloorDiv(num, den):
                return self.obvious(num) and self.obvious(den)
            case Datum():
                return any(b == Int.of(atom) for b in self.data(atom))
            case Least(args):
                return all(self.obvious(a) for a in args)
            case Greatest(args):
                return any(self.obvious(a) for a in args)


@lru_cache(maxsize=1024)
def _ground(facts: Facts) -> _Ground:
    return _Ground(facts)


class _Search:
    """The search for a proof of one goal."""

    def __init__(self, ground: _Ground) -> None:
        self.ground = ground
        self.steps = 0
        self.seen: dict[Int, int] = {}
        self.effort = EFFORT * USUAL // max(USUAL, len(ground.known))

    def run(self, goal: Int, depth: int) -> bool:
        self.steps += len(goal.terms) + len(self.ground.known)
        if self.ground.obvious(goal) or self.ground.close(goal):
            return True
        self.effort -= 1
        if depth == 0 or self.effort <= 0 or self.seen.get(goal, -1) >= depth:
            return False
        self.seen[goal] = depth
        return any(self.run_all(option, depth - 1) for option in self._options(goal))

    def run_all(self, goals: tuple[Int, ...], depth: int) -> bool:
        return all(self.run(g, depth) for g in goals)

    def _options(self, goal: Int) -> Iterable[tuple[Int, ...]]:
        """Sets of goals, each set of which implies this one."""
        atoms = list(dict.fromkeys(a for m, _ in goal.terms for a, _ in m))
        for atom in atoms:
            split = _split(goal, atom)
            if split is None:
                continue
            coefficient, rest = split
            sign = self.ground.sign(coefficient)
            if sign:
                yield from self._replace(atom, coefficient, rest, sign)
        for fact in self.ground.plain:
            yield (goal - fact,)
            for atom in {a for m, _ in goal.terms for a, _ in m if isinstance(a, Dim)}:
                if any(m for m, _ in goal.terms if len(m) > 1):
                    yield (goal - fact * Int.of(atom),)

    def _replace(self, atom: Atom, coefficient: Int, rest: Int, sign: int) -> Iterable[tuple[Int, ...]]:
        unit = coefficient.constant in (1, -1)
        match atom:
            case Index() | Datum():
                facts = [*self.ground.known, *(self.ground.data(atom) if isinstance(atom, Datum) else ())]
                for fact in facts:
                    bound = _split(fact, atom)
                    if bound is not None and bound[0].constant == sign:
                        yield (rest + coefficient * (-sign * bound[1]),)
            case FloorDiv(num, den):
                if unit and sign > 0:
                    yield (num + den * rest,)
                elif unit:
                    yield (den * rest + den - 1 - num,)
                elif coefficient * -sign == -den:  # a multiple of den: at most num, and more than num - den
                    yield (rest - num if sign < 0 else rest + num - den + 1,)
            case Mod(num, den):
                yield (rest + coefficient * (den - 1) if sign < 0 else rest,)
                if sign < 0:
                    yield (rest + coefficient * num, num)
            case Least(args) | Greatest(args):
                goals = tuple(rest + coefficient * a for a in args)
                if isinstance(atom, Least) == (sign > 0):
                    yield goals
                else:
                    yield from ((g,) for g in goals)
            case Dim():
                return


def _parts(value: Int) -> tuple[Terms, int]:
    """What varies in an expression, and its constant term."""
    constant = next((c for m, c in value.terms if not m), 0)
    return tuple(t for t in value.terms if t[0]), constant


def _keep(atom: Atom) -> Int:
    return Int.of(atom)


def _split(value: Int, atom: Atom) -> tuple[Int, Int] | None:
    """``value`` as ``coefficient * atom + rest``, or None if it is not linear in it or hides it deeper."""
    coefficient, rest = ZERO, ZERO
    for monomial, c in value.terms:
        powers = dict(monomial)
        power = powers.pop(atom, 0)
        if power > 1:
            return None
        if any(atom in set(Int.of(a).atoms()) for a in powers if not isinstance(a, Dim | Index)):
            return None
        left = Int(((tuple((a, p) for a, p in monomial if a != atom), c),))
        if power:
            coefficient = coefficient + left
        else:
            rest = rest + left
    return (coefficient, rest) if coefficient != ZERO else None


def eliminate(name: str, constraints: Iterable[Int]) -> tuple[tuple[Int, ...], bool]:
    """The constraints that remain when some value of an index fulfils all (Fourier–Motzkin).

    Second: whether the projection is exact; otherwise constraints were dropped, and the
    result describes a superset.
    """
    atom = Index(name)
    lower, upper, free, exact = [], [], [], True
    for c in constraints:
        if name not in c.free_indices():
            free.append(c)
            continue
        split = _split(c, atom)
        k = None if split is None else split[0].constant
        if split is None or k is None or abs(k) != 1:
            exact = False
        elif k == 1:
            lower.append(-split[1])
        else:
            upper.append(split[1])
    free += [u - low for u in upper for low in lower]
    return tuple(dict.fromkeys(c for c in free if c.constant is None or c.constant < 0)), exact


def interval(name: str, constraints: Iterable[Int]) -> tuple[list[Int], list[Int]] | None:
    """Lower bounds and inclusive upper bounds of an index, or None if one is not of that form."""
    lower, upper = [], []
    for c in constraints:
        if name not in c.free_indices():
            continue
        split = _split(c, Index(name))
        if split is None or split[0].constant not in (1, -1):
            return None
        if split[0].constant == 1:
            lower.append(-split[1])
        else:
            upper.append(split[1])
    return lower, upper


def count(name: str, constraints: Iterable[Int], facts: Facts) -> Int | None:
    """Number of values of an index within the constraints, where that has a closed form."""
    bounds = interval(name, constraints)
    if bounds is None or not bounds[0] or not bounds[1]:
        return None
    low = greatest(*prune(bounds[0], facts, largest=True))
    high = least(*prune(bounds[1], facts, largest=False))
    size = high - low + 1
    return size if prove(size, facts) else greatest(size, ZERO)


def prune(values: Iterable[Int], facts: Facts, *, largest: bool) -> tuple[Int, ...]:
    """Those that may be the largest (or smallest) of all."""
    kept: list[Int] = []
    for v in dict.fromkeys(values):
        if any(prove(k - v if largest else v - k, facts) for k in kept):
            continue
        kept = [k for k in kept if not prove(v - k if largest else k - v, facts)]
        kept.append(v)
    return tuple(kept)


def extreme(value: Int, ranges: Iterable[Range], constraints: Iterable[Int], facts: Facts) -> Int | None:
    """An upper bound of ``value`` in dims alone, attained where the bounds are tight."""
    known = list(domain(ranges, constraints))
    for _ in range(8):
        names = sorted(value.free_indices())
        if not names:
            return value
        split = _split(value, Index(names[0]))
        if split is None:
            return None
        up = prove(split[0], facts)
        if not up and not prove(-split[0], facts):
            return None
        bounds = interval(names[0], [k for k in known if not (k.tensors())])
        if bounds is None or not bounds[0] or not bounds[1]:
            return None
        value = split[1] + split[0] * (bounds[1][0] if up else bounds[0][0])
    return None
