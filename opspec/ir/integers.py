"""Integer expressions: extents, indices and bounds, as canonical polynomials.

An ``Int`` is a sum of integer multiples of products of *atoms*: dims, loop
indices, floor divisions, remainders, minima, maxima and integers read from a
tensor (``len[b]``). Equal polynomials are equal objects by value, so that
``2*i + 1 - i`` and ``i + 1`` compare equal. This world is separate from tensor
values: nothing here ever describes floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Dim:
    """A dim of the op, declared or derived (``let G = Hq // Hkv`` is substituted, not kept)."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """A loop index of a statement."""

    name: str


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """``num // den``, rounded towards minus infinity."""

    num: Int
    den: Int


@dataclass(frozen=True, slots=True)
class Mod:
    """``num % den`` with the sign of ``den``: ``num - den * (num // den)``."""

    num: Int
    den: Int


@dataclass(frozen=True, slots=True)
class Datum:
    """An integer read from a tensor of i32 or i64: ``table[b, t // P]``, ``len[b]``."""

    tensor: str
    indices: tuple[Int, ...]


@dataclass(frozen=True, slots=True)
class Least:
    """The minimum of several integers."""

    args: tuple[Int, ...]


@dataclass(frozen=True, slots=True)
class Greatest:
    """The maximum of several integers."""

    args: tuple[Int, ...]


Atom = Dim | Index | FloorDiv | Mod | Datum | Least | Greatest
Monomial = tuple[tuple[Atom, int], ...]


class _Hashed:
    """What keeps the hash of a whole tree once it has been asked for."""

    __slots__ = ("kept_hash",)
    kept_hash: int


@dataclass(frozen=True, slots=True)
class Int(_Hashed):
    """A polynomial: ``terms`` maps monomials to non-zero integer coefficients, sorted."""

    terms: tuple[tuple[Monomial, int], ...]

    def __hash__(self) -> int:
        try:
            return self.kept_hash
        except AttributeError:
            object.__setattr__(self, "kept_hash", found := hash(self.terms))
            return found

    # construction ---------------------------------------------------------
    @staticmethod
    def of(value: int | Atom | Int) -> Int:
        """Wrap a Python integer or an atom."""
        if isinstance(value, Int):
            return value
        if isinstance(value, int):
            return Int((((), value),)) if value else ZERO
        return Int(((((value, 1),), 1),))

    def __add__(self, other: int | Int) -> Int:
        more = Int.of(other)
        if not (self.terms and more.terms):
            return self if self.terms else more
        if (c := more.constant) is not None:  # a constant stands last
            *varying, (monomial, last) = self.terms
            if monomial:
                return Int((*self.terms, *more.terms))
            return Int((*varying, ((), last + c)) if last + c else tuple(varying))
        return _gather([*self.terms, *more.terms])

    __radd__ = __add__

    def __neg__(self) -> Int:
        return Int(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: int | Int) -> Int:
        return self + -Int.of(other)

    def __rsub__(self, other: int | Int) -> Int:
        return Int.of(other) - self

    def __mul__(self, other: int | Int) -> Int:
        by = Int.of(other)
        for a, b in ((self, by), (by, self)):
            if (factor := b.constant) is not None:
                return a if factor == 1 else Int(tuple((m, c * factor) for m, c in a.terms if factor))
        return _gather([(_times(m, n), c * d) for m, c in self.terms for n, d in by.terms])

    __rmul__ = __mul__

    # questions ------------------------------------------------------------
    @property
    def constant(self) -> int | None:
        """The value if this is a literal integer, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def atom(self) -> Atom | None:
        """The atom if this is exactly one atom with coefficient 1, else None."""
        match self.terms:
            case ((((atom, 1),), 1),):
                return atom
        return None

    @property
    def index(self) -> str | None:
        """The index name if this is a bare index, else None."""
        atom = self.atom
        return atom.name if isinstance(atom, Index) else None

    def atoms(self) -> Iterator[Atom]:
        """Every atom in it, nested ones too, outermost first; may repeat."""
        for monomial, _ in self.terms:
            for atom, _ in monomial:
                yield atom
                for child in children(atom):
                    yield from child.atoms()

    def free_indices(self) -> frozenset[str]:
        """Names of the indices that it depends on, through data and divisions too."""
        return _free_indices(self)

    def dims(self) -> frozenset[str]:
        """Names of the dims in it."""
        return frozenset(a.name for a in self.atoms() if isinstance(a, Dim))

    def tensors(self) -> frozenset[str]:
        """Names of the integer tensors that it reads."""
        return frozenset(a.tensor for a in self.atoms() if isinstance(a, Datum))

    def affine(self, names: Iterable[str]) -> tuple[dict[str, Int], Int] | None:
        """Split into ``sum(coefficient[i] * i) + rest`` over the given indices.

        Coefficients and rest are free of those indices; None if it is not
        affine in them (a product of two, or one inside a division or a read).
        """
        wanted = frozenset(names)
        coefficients: dict[str, Int] = {}
        rest = ZERO
        for monomial, c in self.terms:
            here = [a for a, _ in monomial if isinstance(a, Index) and a.name in wanted]
            hidden = any(
                not isinstance(a, Index | Dim) and Int.of(a).free_indices() & wanted for a, _ in monomial
            )
            if hidden or len(here) > 1 or (here and dict(monomial)[here[0]] != 1):
                return None
            if here:
                others = tuple((a, p) for a, p in monomial if a != here[0])
                name = here[0].name
                coefficients[name] = coefficients.get(name, ZERO) + Int(((others, c),))
            else:
                rest = rest + Int(((monomial, c),))
        return {k: v for k, v in coefficients.items() if v != ZERO}, rest

    # transformation -------------------------------------------------------
    def substitute(self, replace: Callable[[Atom], Int | None]) -> Int:
        """Replace atoms, outermost first; None keeps the atom and visits its children."""
        if self.constant is not None:
            return self
        total = ZERO
        for monomial, c in self.terms:
            product = Int.of(c)
            for atom, power in monomial:
                new = replace(atom)
                factor = new if new is not None else rebuild(atom, lambda x: x.substitute(replace))
                for _ in range(power):
                    product = product * factor
            total = total + product
        return total

    def rename(self, names: Mapping[str, str]) -> Int:
        """Rename indices."""
        return self.substitute(
            lambda a: Int.of(Index(names[a.name])) if isinstance(a, Index) and a.name in names else None
        )

    def evaluate(
        self, env: Mapping[str, int], read: Callable[[str, tuple[int, ...]], int] | None = None
    ) -> int:
        """Its value; ``env`` maps dims and indices, ``read`` answers integer tensors."""
        total = 0
        for monomial, c in self.terms:
            product = c
            for atom, power in monomial:
                product *= _evaluate(atom, env, read) ** power
            total += product
        return total

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts: list[str] = []
        for monomial, c in self.terms:
            factors = [f"{_show(a)}**{p}" if p > 1 else _show(a) for a, p in monomial]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            sign = "-" if c < 0 else "+"
            text = "*".join(factors)
            parts.append(f" {sign} {text}" if parts else (f"-{text}" if c < 0 else text))
        return "".join(parts)


@lru_cache(maxsize=65536)
def _free_indices(value: Int) -> frozenset[str]:
    return frozenset(a.name for a in value.atoms() if isinstance(a, Index))


ZERO = Int(())
ONE = Int((((), 1),))


def children(atom: Atom) -> tuple[Int, ...]:
    """The integer expressions directly inside an atom."""
    match atom:
        case Dim() | Index():
            return ()
        case FloorDiv(num, den) | Mod(num, den):
            return (num, den)
        case Datum(_, indices):
            return indices
        case Least(args) | Greatest(args):
            return args
        case _:
            assert_never(atom)


def rebuild(atom: Atom, change: Callable[[Int], Int]) -> Int:
    """The atom with its children changed, simplified."""
    match atom:
        case Dim() | Index():
            return Int.of(atom)
        case FloorDiv(num, den):
            return floor_div(change(num), change(den))
        case Mod(num, den):
            return mod(change(num), change(den))
        case Datum(tensor, indices):
            return Int.of(Datum(tensor, tuple(change(i) for i in indices)))
        case Least(args):
            return least(*(change(a) for a in args))
        case Greatest(args):
            return greatest(*(change(a) for a in args))
        case _:
            assert_never(atom)


def floor_div(num: Int, den: Int) -> Int:
    """``num // den``; exact multiples of the divisor leave the division."""
    if den == ONE:
        return num
    n, d = num.constant, den.constant
    if d == 0:
        raise ZeroDivisionError("division of an extent by zero")
    if n is not None and d is not None:
        return Int.of(n // d)
    whole, rest = _divide_terms(num, den)
    if rest == ZERO:
        return whole
    if whole != ZERO:
        return whole + floor_div(rest, den)
    return Int.of(FloorDiv(num, den))


def mod(num: Int, den: Int) -> Int:
    """``num % den``; exact multiples of the divisor vanish."""
    if den == ONE:
        return ZERO
    n, d = num.constant, den.constant
    if d == 0:
        raise ZeroDivisionError("remainder of an extent by zero")
    if n is not None and d is not None:
        return Int.of(n % d)
    _, rest = _divide_terms(num, den)
    return ZERO if rest == ZERO else Int.of(Mod(rest, den))


def least(*args: Int) -> Int:
    """The minimum; duplicates and differing constants fold."""
    return _extreme(args, min, Least)


def greatest(*args: Int) -> Int:
    """The maximum; duplicates and differing constants fold."""
    return _extreme(args, max, Greatest)


def dim(name: str) -> Int:
    """A dim as an expression."""
    return Int.of(Dim(name))


def index(name: str) -> Int:
    """An index as an expression."""
    return Int.of(Index(name))


def _extreme(args: tuple[Int, ...], pick: Callable[..., int], node: type[Least] | type[Greatest]) -> Int:
    flat: list[Int] = []
    for arg in args:
        inner = arg.atom
        flat.extend(inner.args if isinstance(inner, node) else (arg,))
    constants = [a.constant for a in flat if a.constant is not None]
    rest = sorted({a for a in flat if a.constant is None}, key=str)
    if constants:
        rest.append(Int.of(pick(constants)))
    return rest[0] if len(rest) == 1 else Int.of(node(tuple(rest)))


def _divide_terms(num: Int, den: Int) -> tuple[Int, Int]:
    """Split ``num`` into ``whole * den + rest`` by terms that ``den`` (one monomial) divides."""
    if len(den.terms) != 1:
        return (ONE, ZERO) if num == den else (ZERO, num)
    (base, c), whole, rest = den.terms[0], ZERO, ZERO
    for monomial, k in num.terms:
        powers = dict(monomial)
        divides = all(powers.get(a, 0) >= p for a, p in base) and k % c == 0
        if divides:
            for a, p in base:
                powers[a] -= p
            left = tuple(sorted(((a, p) for a, p in powers.items() if p), key=_order))
            whole = whole + Int(((left, k // c),))
        else:
            rest = rest + Int(((monomial, k),))
    return whole, rest


def _evaluate(atom: Atom, env: Mapping[str, int], read: Callable[[str, tuple[int, ...]], int] | None) -> int:
    match atom:
        case Dim(name) | Index(name):
            return env[name]
        case FloorDiv(num, den):
            return num.evaluate(env, read) // den.evaluate(env, read)
        case Mod(num, den):
            return num.evaluate(env, read) % den.evaluate(env, read)
        case Datum(tensor, indices):
            if read is None:
                raise LookupError(tensor)
            return read(tensor, tuple(i.evaluate(env, read) for i in indices))
        case Least(args):
            return min(a.evaluate(env, read) for a in args)
        case Greatest(args):
            return max(a.evaluate(env, read) for a in args)
        case _:
            assert_never(atom)


def _show(atom: Atom) -> str:
    match atom:
        case Dim(name) | Index(name):
            return name
        case FloorDiv(num, den):
            return f"({_wrap(num)} // {_wrap(den)})"
        case Mod(num, den):
            return f"({_wrap(num)} % {_wrap(den)})"
        case Datum(tensor, indices):
            return f"{tensor}[{', '.join(map(str, indices))}]"
        case Least(args):
            return f"min({', '.join(map(str, args))})"
        case Greatest(args):
            return f"max({', '.join(map(str, args))})"
        case _:
            assert_never(atom)


def _wrap(value: Int) -> str:
    text = str(value)
    return text if value.atom is not None or value.constant is not None else f"({text})"


@lru_cache(maxsize=65536)
def _rank(atom: Atom) -> tuple[int, str]:
    kinds = (Index, Dim, FloorDiv, Mod, Datum, Least, Greatest)
    return kinds.index(type(atom)), _show(atom)


def _order(entry: tuple[Atom, int]) -> tuple[int, str]:
    return _rank(entry[0])


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers: dict[Atom, int] = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=_order))


def _gather(terms: list[tuple[Monomial, int]]) -> Int:
    total: dict[Monomial, int] = {}
    for monomial, c in terms:
        total[monomial] = total.get(monomial, 0) + c
    kept = [(m, c) for m, c in total.items() if c]
    if len(kept) > 1:
        kept.sort(key=lambda t: (-len(t[0]), [(_rank(a), -p) for a, p in t[0]]))
    return Int(tuple(kept))
