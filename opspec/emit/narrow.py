"""Operands of 16-bit products that are computed in 16 bits, where that gives what 32 bits and a rounding would.

Packed elements of four bits enter a matrix unit as bf16 or f16. Widened to f32, freed of a zero point, scaled
and rounded, each takes a handful of instructions; two at a time in 16 bits a third of them. That changes no
bit where every step is exact, small whole numbers and their sums and differences, and where the last one is a
single product of exact values, which both ways round once.

Where whole numbers are only taken from such elements, these stay above what they are by ``LIFT``, as they come out of
their bits: one subtraction then does for both. A factor that many places of a sum share can go behind their product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opspec.emit.expressions import ATOM, Expressions, Text, wrap
from opspec.ir.dtypes import BF16, F16, F32, I4, I8, Storage, choices
from opspec.ir.values import Binary, Cast, Literal, Read, Value, walk
from opspec.schedule.access import plain
from opspec.schedule.tile import Fetch, Let, Multiply, TileProgram, statements, values_of

WHOLE = {BF16: 1 << 8, F16: 1 << 11}  # up to which a type holds every whole number
LIFT = {BF16: 72, F16: 1032}  # how far above what they are ``lifted_words`` of the runtime leaves elements
INTEGERS: dict[Storage, tuple[int, int]] = {I4: (-8, 7), I8: (-128, 127)}
SUMS = {"add": "plus_halves", "sub": "minus_halves"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """``packed``: variables loaded from packed tensors that nothing needs in more than 16 bits, and ``values``: those
    computed from them, each with the type in which it enters a product. ``loaded``: what each load has in memory;
    ``lifted``: packed variables from which whole numbers are taken and nothing else; ``factors``: variables that are
    a product of what 16 bits hold exactly, and that nothing but the rows of one block product reads."""

    packed: Mapping[str, Storage]
    values: Mapping[str, Storage]
    loaded: Mapping[str, Storage]
    lifted: frozenset[str]
    factors: frozenset[str]

    def inline(self, value: Value, to: Storage) -> bool:
        """Whether an operand that is written out is one that is computed in 16 bits."""
        reads = _read(value)
        return any(self.packed.get(n) == to for n in reads) and _rounds_once(value, self.loaded, to)


def narrow(program: TileProgram) -> Narrow:
    """What of a program can be in 16 bits all along."""
    body = tuple(statements(program.body))
    tensors = {t.name: t.dtype for t in program.tensors}
    loaded = {s.var.name: tensors[s.tensor] for s in body if isinstance(s, Fetch)}
    lets = {s.var.name: s.value for s in body if isinstance(s, Let)}
    entered: dict[str, set[Storage]] = {}
    wide: set[str] = set()
    for s in body:
        if isinstance(s, Multiply):
            wide |= {n for o in (s.a, s.b) for m in o.masks for n in _read(m)}
            for value, to in ((plain(o.value), o.cast) for o in (s.a, s.b)):
                if to is None or not (isinstance(value, Read) or _rounds_once(value, loaded, to)):
                    wide |= _read(value)
                else:
                    for n in _read(value):
                        entered.setdefault(n, set()).add(to)
        elif not isinstance(s, Let):
            wide |= {n for v in values_of(s) for n in _read(v)}
    values: dict[str, Storage] = {}
    for n, v in lets.items():
        types = entered.get(n, set())
        if len(types) == 1 and n not in wide and _rounds_once(v, loaded, next(iter(types))):
            values[n] = next(iter(types))
            for r in _read(v):
                entered.setdefault(r, set()).add(values[n])
        else:
            wide |= _read(v)
    packed = {
        n: next(iter(types))
        for n, types in entered.items()
        if loaded.get(n) == I4 and n not in wide and len(types) == 1 and _halves(next(iter(types)))
    }
    kept = {n: to for n, to in values.items() if any(r in packed for r in _read(lets[n]))}
    uses = [v for s in body for v in values_of(s)]
    inner = [v for value in uses for v in walk(value)]
    lifted = {n for n, to in packed.items() if _only_lowered(n, inner, loaded, to)}
    rows = {v.name for s in body if isinstance(s, Multiply) and isinstance(v := plain(s.a.value), Read)}
    factors = {
        n
        for n in kept.keys() & rows
        if isinstance(own := lets[n], Binary) and own.op == "mul" and sum(_reads(v, n) for v in uses) == 1
    }
    return Narrow(
        packed=packed, values=kept, loaded=loaded, lifted=frozenset(lifted), factors=frozenset(factors)
    )


def _reads(value: Value, name: str) -> int:
    return sum(isinstance(v, Read) and v.name == name for v in walk(value))


def _only_lowered(name: str, values: list[Value], loaded: Mapping[str, Storage], to: Storage) -> bool:
    """Whether whole numbers are taken from a packed variable, which its type holds exactly with ``LIFT``, and no
    value uses it otherwise."""
    found = 0
    for v in values:
        match v:
            case Binary(op="sub", a=a, b=b) if _reads(plain(a), name) and isinstance(plain(a), Read):
                span = _span(b, loaded, _whole(to))
                if span is None or _reads(b, name):
                    return False
                if any(d not in LIFT or span[1] + LIFT[d] > WHOLE[d] for d in choices(to)):
                    return False
                found += 1
    # each use is seen where it stands and in whatever it stands in
    return found > 0 and found == sum(isinstance(v, Read) and v.name == name for v in values)


def _read(value: Value) -> set[str]:
    return {v.name for v in walk(value) if isinstance(v, Read)}


def _halves(to: Storage) -> bool:
    return all(d in WHOLE for d in choices(to))


def _whole(to: Storage) -> int:
    """Up to which every type that a storage type may stand for holds every whole number."""
    return min(WHOLE[d] for d in choices(to))


def _rounds_once(value: Value, fetched: Mapping[str, Storage], to: Storage) -> bool:
    """Whether a value in 16 bits is what it is when rounded from 32: exact, or one product of exact values."""
    if not _halves(to):
        return False
    match value:
        case Binary(op="mul", a=a, b=b, dtype=dtype) if dtype is F32:
            return _exact(a, fetched, to) and _exact(b, fetched, to)
    return _exact(value, fetched, to)


def _exact(value: Value, fetched: Mapping[str, Storage], to: Storage) -> bool:
    """Whether a 16-bit type holds a value exactly, and all that it is computed from."""
    stored = isinstance(value, Read) and fetched.get(value.name) == to
    return stored or _span(value, fetched, _whole(to)) is not None


def _span(value: Value, fetched: Mapping[str, Storage], most: int) -> tuple[int, int] | None:
    """The range of a whole number that stays within ``most`` of 0, it and all that it is computed from."""
    found: tuple[int, int] | None = None
    match value:
        case Read(name=name):
            found = INTEGERS.get(fetched[name]) if name in fetched else None
        case Literal(value=number) if not isinstance(number, bool) and float(number).is_integer():
            found = int(number), int(number)
        case Cast(x=x, implicit=True):
            found = _span(x, fetched, most)
        case Binary(op="add" | "sub" as op, a=a, b=b):
            left, right = _span(a, fetched, most), _span(b, fetched, most)
            if left is None or right is None:
                return None
            low, high = right if op == "add" else (-right[1], -right[0])
            found = left[0] + low, left[1] + high
    return found if found is not None and -most <= found[0] and found[1] <= most else None


def print_narrow(x: Expressions, value: Value, target: tuple[str, ...], to: Storage) -> Text:
    """A value in 16 bits; what it reads from packed tensors is held so already."""
    match value:
        case Read(name=name) if x.stored.get(name) == to:
            return x.expand((name, ATOM), x.axes[name], target)
        case Cast(x=inner):
            return print_narrow(x, inner, target, to)
        case Binary(op="mul", a=a, b=b):
            return x.call("times_halves", *_both(x, a, b, target, to))
        case Binary(op="sub", a=a, b=b) if isinstance(low := plain(a), Read) and low.name in x.lifted:
            return x.call("lowered", print_narrow(x, a, target, to)[0], x.value(b, target)[0])
        case Binary(op="add" | "sub" as op, a=a, b=b):
            return x.call(SUMS[op], *_both(x, a, b, target, to))
        case Literal(value=number):
            return f"tl.cast({float(number)}, {x.storage(to)})", ATOM
    return f"{wrap(x.value(value, target), ATOM)}.to({x.storage(to)})", ATOM


def _both(x: Expressions, a: Value, b: Value, target: tuple[str, ...], to: Storage) -> tuple[str, str]:
    return print_narrow(x, a, target, to)[0], print_narrow(x, b, target, to)[0]


__all__ = ["Narrow", "narrow", "print_narrow"]
