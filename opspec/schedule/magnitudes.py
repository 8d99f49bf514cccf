"""Between which numbers the finite values of a block variable lie.

Infinity and NaN are left out: either may stand where a range is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Cast, Literal, Read, Select, Unary, Value
from opspec.schedule.tile import Begin, Collapse, Combine, Let, TileProgram, statements

GREATEST = float.fromhex("0x1.fffffep127")
Range = tuple[float, float]
ANY: Range = (-GREATEST, GREATEST)


def ranges_of(program: TileProgram) -> dict[str, Range]:
    """The range of every variable that is defined once, or by a running reduction alone."""
    found: dict[str, Range] = {}
    plain: set[str] = set()
    loose: set[str] = set()
    for s in statements(program.body):
        match s:
            case Let(var=var, value=value):
                own = range_of(value, found)
                if var.name in found and found[var.name] != own:
                    loose.add(var.name)
                found[var.name] = own
                plain.add(var.name)
            case Collapse(var=var, monoid=monoid, value=value) | Combine(var=var, monoid=monoid, value=value):
                inner = range_of(value, found)
                kept = inner if monoid in ("max", "min") else (0.0, GREATEST) if inner[0] >= 0 else ANY
                if monoid not in ("max", "min", "sum"):
                    kept = ANY
                if var.name in plain or found.get(var.name, kept) != kept:
                    loose.add(var.name)
                found[var.name] = kept
            case Begin():
                pass
            case _:
                if (other := getattr(s, "var", None)) is not None:
                    loose.add(other.name)
        for name in loose:
            found[name] = ANY
    return found


def range_of(value: Value, known: Mapping[str, Range]) -> Range:
    """The range of a value whose variables have ``known`` ranges."""
    if value.dtype is not F32:
        return ANY
    match value:
        case Literal(value=number):
            return (float(number), float(number)) if math.isfinite(number) else ANY
        case Read(name=name):
            return known.get(name, ANY)
        case Unary(op="exp" | "exp2"):
            return 0.0, GREATEST
        case Unary(op="one_plus_erf"):
            return 0.0, 2.0
        case Unary(op="neg", x=x):
            low, high = range_of(x, known)
            return -high, -low
        case Unary(op="abs", x=x):
            low, high = range_of(x, known)
            return max(low, -high, 0.0), max(high, -low)
        case Unary(op="sqrt", x=x):
            low, high = range_of(x, known)
            return math.sqrt(max(low, 0.0)) * 0.999999, math.sqrt(max(high, 0.0)) * 1.000001
        case Binary(op="add", a=a, b=b):
            (low, high), (low_b, high_b) = range_of(a, known), range_of(b, known)
            return max(low + low_b, -GREATEST), min(high + high_b, GREATEST)
        case Binary(op="mul", a=a, b=b) if a == b:
            low, high = range_of(Unary(op="abs", x=a, dtype=F32), known)
            return low * low, min(high * high, GREATEST)
        case Binary(op="mul" | "div" | "div_near" as op, a=a, b=Literal(value=number)) if (
            number and math.isfinite(number)
        ):
            factor = float(number) if op == "mul" else 1 / float(number)
            ends = sorted(min(max(end * factor, -GREATEST), GREATEST) for end in range_of(a, known))
            return ends[0], ends[1]
        case Binary(op="max", a=a, b=b):
            (low, high), (low_b, high_b) = range_of(a, known), range_of(b, known)
            return max(low, low_b), max(high, high_b)
        case Binary(op="min", a=a, b=b):
            (low, high), (low_b, high_b) = range_of(a, known), range_of(b, known)
            return min(low, low_b), min(high, high_b)
        case Select(a=a, b=b):
            (low, high), (low_b, high_b) = range_of(a, known), range_of(b, known)
            return min(low, low_b), max(high, high_b)
        case Cast(x=x, to=to) if to is F32 and not value.implicit:
            return range_of(x, known)
    return ANY
