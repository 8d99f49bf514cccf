"""Values with units: FLOPs, bytes and seconds never mix by accident."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from opspec.analysis.codes import BAD_UNITS
from opspec.diagnostics import Diagnostic, Failure
from opspec.source import Span


@dataclass(frozen=True, slots=True)
class Unit:
    """Exponents of FLOP, byte, second and multiply-add; ``plain`` marks a pure number of literals and dims,
    which takes any unit: ``flops == 2 * M * N * K``."""

    flop: int = 0
    byte: int = 0
    second: int = 0
    plain: bool = False
    mac: int = 0

    def times(self, other: Unit, sign: int = 1) -> Unit:
        """The unit of a product (sign 1) or quotient (sign -1)."""
        if self.plain and other.plain:
            return PLAIN
        return Unit(
            self.flop + sign * other.flop,
            self.byte + sign * other.byte,
            self.second + sign * other.second,
            mac=self.mac + sign * other.mac,
        )

    def __str__(self) -> str:
        named = (("FLOP", self.flop), ("MAC", self.mac), ("B", self.byte), ("s", self.second))
        above = [n if p == 1 else f"{n}^{p}" for n, p in named if p > 0]
        below = [n if p == -1 else f"{n}^{-p}" for n, p in named if p < 0]
        if not below:
            return "*".join(above)
        return f"{'*'.join(above) or '1'}/{'/'.join(below)}"


NONE = Unit()
PLAIN = Unit(plain=True)
FLOP = Unit(flop=1)
MAC = Unit(mac=1)
BYTE = Unit(byte=1)
SECOND = Unit(second=1)

UNITS = (
    "FLOP and MAC with k, M, G, T, P; B with k, M, G, T or Ki, Mi, Gi, Ti; s, ms, us, ns; and `…/s`, `…/B`"
)
_SCALES = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "ki": 10}
_TIMES = {"s": 0, "ms": -3, "us": -6, "ns": -9}


def unit_of(text: str) -> tuple[sympy.Rational, Unit]:
    """Factor and unit of a written unit such as ``TFLOP/s`` or ``GiB``."""
    above, _, below = text.partition("/")
    factor, unit = _simple(above)
    if below:
        scale, under = _simple(below)
        return factor / scale, unit.times(under, -1)
    return factor, unit


def _simple(text: str) -> tuple[sympy.Rational, Unit]:
    if text in _TIMES:
        return sympy.Rational(10) ** _TIMES[text], SECOND
    stem = next((s for s in ("FLOP", "MAC") if text.endswith(s)), "B")
    prefix = text.removesuffix(stem)
    scale = (
        sympy.Rational(2) ** _BINARY[prefix] if prefix in _BINARY else sympy.Rational(10) ** _SCALES[prefix]
    )
    return scale, {"FLOP": FLOP, "MAC": MAC, "B": BYTE}[stem]


@dataclass(frozen=True, slots=True)
class Move:
    """How a value moves with a dim: its elasticity, in percent for each percent of the dim."""

    dim: str
    elasticity: sympy.Expr
    note: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its unit. ``word``: a resource name or yes/no instead of a number.

    ``notes`` say what a reader must know: conditions, integers, choices made. ``moves``: the answer of
    ``sensitivity``, the dim that moves it most first.
    """

    value: sympy.Expr
    unit: Unit
    word: str = ""
    notes: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()


def word(text: str, *notes: str) -> Quantity:
    """A value that is a word."""
    return Quantity(sympy.Integer(0), NONE, text, notes)


def shared_unit(a: Quantity, b: Quantity, verb: str, span: Span) -> Unit:
    """The unit of a sum or comparison.

    Raises: Failure if the two differ.
    """
    if a.unit.plain:
        return b.unit
    if b.unit.plain or a.unit == b.unit:
        return a.unit
    left, right = (str(q.unit) or "a pure number" for q in (a, b))
    macs = {a.unit, b.unit} == {FLOP, MAC}
    raise Failure(
        Diagnostic(
            code=BAD_UNITS,
            message=f"can't {verb} {left} and {right}",
            span=span,
            help="a MAC is 2 FLOP, and nothing here turns one into the other by itself: write FLOP"
            if macs
            else "divide one by the other, or take quantities of one unit",
        )
    )
