"""Sums that move on with the states beside them by more than a factor.

``find_law`` asks for g with f(x; m_new) = g f(x; m_old). A sum of ``w (x - m)``, with ``w = exp(x - m)`` summed
beside it, has

    f(x; m + d) = g (f(x; m) - d w(x; m))

with the g of w: it is carried by g and by what its states moved, times the sum of w. Each state that the summand
is linear in may move; the coefficients are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from opspec.ir.values import Read
from opspec.schedule.graph import Fold, Graph
from opspec.schedule.laws import Translation


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """``fold`` is carried by the factor of ``base`` and by ``moves``: states and what of their move counts."""

    fold: str
    base: str
    moves: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """In words."""
        return "moved by what its maxima move, times the sum of weights"


def find_shift(graph: Graph, fold: Fold, base: Fold, states: tuple[Fold, ...]) -> Shift | None:
    """How ``fold`` moves on beside ``base``, which a law carries beside the first of ``states``."""
    import sympy

    first = states[0]
    if fold.monoid != "sum" or any(s.monoid != "max" for s in states):
        return None
    translation = Translation(graph, first)
    w, f = translation.of(base.body), translation.of(fold.body)
    if w is None or f is None:
        return None
    symbols = {first.name: translation.m}
    for value, symbol in translation.leaves.items():
        if isinstance(value, Read) and value.name in {s.name for s in states}:
            symbols[value.name] = symbol
    if set(symbols) != {s.name for s in states}:
        return None
    steps = {name: sympy.Symbol(f"d{k}", real=True) for k, name in enumerate(symbols)}
    here = translation.m
    factor = sympy.powsimp(sympy.cancel(w.subs(here, here + steps[first.name]) / w))
    moved = f.subs({s: s + steps[n] for n, s in symbols.items()}, simultaneous=True)
    rest = sympy.simplify(sympy.expand(sympy.powsimp(sympy.expand((moved / factor - f) / w))))
    if rest == 0 or rest.free_symbols - set(steps.values()):
        return None
    moves = []
    for name, step in steps.items():
        number = rest.coeff(step)
        if not number.is_number:
            return None
        moves.append((name, float(number)))
        rest = sympy.expand(rest - number * step)
    if rest != 0:
        return None
    return Shift(fold=fold.name, base=base.name, moves=tuple((n, c) for n, c in moves if c))
