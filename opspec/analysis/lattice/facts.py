"""What is known about the dims of an op, and a small prover of ``e >= 0``.

The prover removes what could make ``e`` negative, one term after another, by
subtracting non-negative multiples of known facts. It is sound and incomplete: True
means proven, False means only that no short proof was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from opspec.ir.dtypes import choices
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
)
from opspec.ir.program import Op

_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Facts:
    """``known``: integers that are ``>= 0``; ``multiples``: pairs with ``num % den == 0``;
    ``lengths``: tensors whose elements are declared to be bounded, as slacks in one ``Datum``;
    ``distinct``: those whose elements differ; ``extents``: of all integer tensors."""

    known: tuple[Int, ...] = ()
    multiples: tuple[tuple[Int, Int], ...] = ()
    lengths: tuple[tuple[str, Int], ...] = ()
    distinct: frozenset[str] = field(default=frozenset())
    extents: tuple[tuple[str, tuple[Int, ...]], ...] = ()

    @classmethod
    def of(cls, op: Op) -> Facts:
        """The facts that an op states with ``require`` and ``assume``."""
        known: list[Int] = []
        multiples: list[tuple[Int, Int]] = []
        for r in op.requires:
            match r.op:
                case "ge":
                    known.append(r.left - r.right)
                case "gt":
                    known.append(r.left - r.right - 1)
                case "le":
                    known.append(r.right - r.left)
                case "lt":
                    known.append(r.right - r.left - 1)
                case "eq":
                    known += [r.left - r.right, r.right - r.left]
                    atom = (r.left - r.right).atom or (r.right - r.left).atom
                    if isinstance(atom, Mod):
                        multiples.append((atom.num, atom.den))
                case "ne":
                    pass
        lengths = tuple((a.tensor, a.slack) for a in op.assumes if a.kind == "bound" and a.slack is not None)
        distinct = frozenset(a.tensor for a in op.assumes if a.kind == "distinct")
        facts = cls((), tuple(multiples), lengths, distinct)
        lengths = tuple((t, facts.canonical(s)) for t, s in lengths)
        extents = tuple(
            (t.name, tuple(facts.canonical(e) for e in t.extents))
            for t in op.tensors
            if choices(t.dtype)[0].kind == "int"
        )
        return replace(
            facts, known=tuple(facts.canonical(k) for k in known), lengths=lengths, extents=extents
        )

    def with_known(self, more: Iterable[Int]) -> Facts:
        """The same facts and some more integers that are ``>= 0``."""
        return replace(self, known=(*self.known, *more))

    def canonical(self, value: Int) -> Int:
        """The value with each dim that must be a multiple written as one: ``D`` as ``2*(D // 2)``."""
        rules: dict[str, Int] = {}
        for num, den in self.multiples:
            atom = num.atom
            if isinstance(atom, Dim) and atom.name not in rules and atom.name not in den.dims():
                rules[atom.name] = den * Int.of(FloorDiv(num, den))
        if not rules:
            return value

        def change(atom: Atom) -> Int | None:
            match atom:
                case Dim(name) if name in rules:
                    return rules[name]
                case FloorDiv(num, den) if (num, den) in self.multiples:
                    return Int.of(atom)
                case FloorDiv(num, den):
                    return floor_div(num.substitute(change), den.substitute(change))
            return None

        return value.substitute(change)

    def divides(self, num: Int, den: Int) -> bool:
        """Whether ``num`` is known to be a multiple of ``den``."""
        return any(num == n and den == d for n, d in self.multiples)

    def proves(self, value: Int, context: Iterable[Int] = (), *, least: int = 0) -> bool:
        """Whether ``value >= 0`` follows, where every dim is at least ``least`` (0 or 1)."""
        facts = (*self.known, *context)
        if least:
            proven = _prove(_raised(value, self.multiples), tuple(_raised(f, self.multiples) for f in facts))
        else:
            proven = _prove(value, facts)
        if proven:
            return True
        parts = split(value)
        return parts is not None and all(
            self.proves(part, (*context, *given), least=least) for part, given in parts
        )

    def relaxed(self, constraint: Int) -> Int | None:
        """A weaker constraint without data, by the declared bounds of lengths; None if there is none."""
        value = constraint
        for monomial, c in constraint.terms:
            for atom, _ in monomial:
                if not Int.of(atom).tensors():
                    continue
                if len(monomial) > 1 or monomial[0][1] != 1 or not isinstance(atom, Datum) or c < 0:
                    return None
                slack = next((s for t, s in self.lengths if t == atom.tensor and _upper(s)), None)
                if slack is None:
                    return None
                top = slack.substitute(lambda a: ZERO if isinstance(a, Datum) else None)
                value = value + (top - Int.of(atom)) * c
        return value

    def quotient(self, num: Int, den: Int) -> Int:
        """``num // den`` for a positive den, without the division where its remainder is known."""
        found = floor_div(num, den)
        for monomial, c in found.terms:
            atom = monomial[0][0] if len(monomial) == 1 else None
            if isinstance(atom, FloorDiv) and atom.den == den and (c, monomial[0][1]) == (1, 1):
                rest, whole = atom.num, found - Int.of(atom)
                if self.proves(rest, least=1) and self.proves(den - 1 - rest, least=1):
                    return whole
                if self.proves(-rest - 1, least=1) and self.proves(rest + den, least=1):
                    return whole - 1
        return found

    def positive(self, value: Int) -> bool:
        """Whether ``value >= 1`` follows where no extent is empty."""
        return self.proves(value - 1, least=1)


@lru_cache(maxsize=65536)
def _raised(value: Int, multiples: tuple[tuple[Int, Int], ...]) -> Int:
    """Each dim, and each exact quotient of dims, written as its own excess over 1."""

    def change(atom: Atom) -> Int | None:
        match atom:
            case Dim():
                return Int.of(atom) + 1
            case FloorDiv(num, den) if (num, den) in multiples:
                return Int.of(Dim(f"{num}//{den}")) + 1
        return None

    return value.substitute(change)


def split(value: Int) -> list[tuple[Int, tuple[Int, ...]]] | None:
    """Integers that are all ``>= 0`` exactly if ``value`` is, each with facts that come with it; None if
    no minimum, maximum or division stands in it alone. A divisor is at least 1."""
    for monomial, k in value.terms:
        if len(monomial) != 1 or monomial[0][1] != 1:
            continue
        atom = monomial[0][0]
        if not isinstance(atom, Least | Greatest | FloorDiv):
            continue
        rest = value - Int(((monomial, k),))
        match atom:
            case Least(args) if k > 0:
                return [(rest + a * k, ()) for a in args]
            case Greatest(args) if k < 0:
                return [(rest + a * k, ()) for a in args]
            case FloorDiv(num, den) if k == 1:
                return [(num + rest * den, (den - 1,))]
            case FloorDiv(num, den) if k == -1:
                return [((rest + 1) * den - 1 - num, (den - 1,))]
    return None


def _upper(slack: Int) -> bool:
    """Whether a slack bounds its datum from above: ``T - len[b]``."""
    return any(c == -1 and len(m) == 1 and isinstance(m[0][0], Datum) for m, c in slack.terms)


@lru_cache(maxsize=65536)
def _prove(value: Int, facts: tuple[Int, ...]) -> bool:
    signed = frozenset(f.index for f in facts if f.index is not None)
    everything = list(facts)
    seen: set[Atom] = set()
    for expression in (value, *facts):
        for atom in expression.atoms():
            if atom not in seen:
                seen.add(atom)
                everything.extend(_bounds(atom))
    return _search(value, tuple(everything), signed, _DEPTH, set())


def _bounds(atom: Atom) -> Iterator[Int]:
    """Facts that hold for an atom by its meaning."""
    this = Int.of(atom)
    match atom:
        case Mod(_, den):
            yield den - 1 - this
        case FloorDiv(num, den):
            yield num - den * this
            yield den * this + den - 1 - num
        case Least(args):
            yield from (a - this for a in args)
        case Greatest(args):
            yield from (this - a for a in args)
        case _:
            return


def _natural(atom: Atom, signed: frozenset[str | None]) -> bool:
    """Whether the atom is known to be ``>= 0``; ``signed`` are the indices that are."""
    match atom:
        case Dim():
            return True
        case Index(name):
            return name in signed
        case FloorDiv(num, den):
            return _plainly_natural(num, signed) and _plainly_natural(den, signed)
        case Mod(_, den):
            return _plainly_natural(den, signed)
        case Least(args):
            return all(_plainly_natural(a, signed) for a in args)
        case Greatest(args):
            return any(_plainly_natural(a, signed) for a in args)
        case Datum():
            return False


def _plainly_natural(value: Int, signed: frozenset[str | None]) -> bool:
    return all(c > 0 and all(_natural(a, signed) for a, _ in m) for m, c in value.terms)


def _search(
    value: Int, facts: tuple[Int, ...], signed: frozenset[str | None], depth: int, seen: set[Int]
) -> bool:
    obstacle = next(
        ((m, c) for m, c in value.terms if c < 0 or not all(_natural(a, signed) for a, _ in m)), None
    )
    if obstacle is None:
        return True
    if depth == 0 or value in seen:
        return False
    seen.add(value)
    monomial, c = obstacle
    for fact in facts:
        for part, k in fact.terms:
            if (k < 0) != (c < 0) or not part:
                continue
            rest = _quotient(monomial, part)
            if rest is None or not all(_natural(a, signed) for a, _ in rest):
                continue
            reduced = value * abs(k) - Int(((rest, abs(c)),)) * fact
            if _search(reduced, facts, signed, depth - 1, seen):
                return True
    return False


def _quotient(whole: Monomial, part: Monomial) -> Monomial | None:
    powers = dict(whole)
    for atom, p in part:
        if powers.get(atom, 0) < p:
            return None
        powers[atom] -= p
    return tuple((a, powers[a]) for a, _ in whole if powers[a])


def positive_part(value: Int, facts: Facts) -> Int:
    """``max(0, value)``, without the maximum where it is provably not needed."""
    if value.constant is not None:
        return value if value.constant > 0 else ZERO
    if facts.proves(value):
        return value
    return ZERO if facts.proves(-value) else greatest(value, ZERO)
