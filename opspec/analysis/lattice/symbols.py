"""From integers of the IR to SymPy. Names become ``Symbol`` objects and are never parsed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

import sympy

from opspec.ir.integers import Atom, Datum, Dim, FloorDiv, Greatest, Index, Int, Least, Mod

if TYPE_CHECKING:
    from opspec.analysis.lattice.facts import Facts


@lru_cache(maxsize=4096)
def symbol(name: str) -> sympy.Symbol:
    """The non-negative integer called ``name``: a dim, ``sizeof(X)`` or a moment ``sum(len)``."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


@lru_cache(maxsize=16384)
def to_sympy(value: Int, facts: Facts) -> sympy.Expr:
    """The integer as a SymPy expression; divisions known to be exact become quotients."""
    return sympy.Add(*(_term(m, c, facts) for m, c in value.terms))


def _term(monomial: tuple[tuple[Atom, int], ...], c: int, facts: Facts) -> sympy.Expr:
    return sympy.Mul(sympy.Integer(c), *(_atom(a, facts) ** p for a, p in monomial))


def _atom(atom: Atom, facts: Facts) -> sympy.Expr:
    match atom:
        case Dim(name) | Index(name):
            return symbol(name)
        case FloorDiv(num, den):
            quotient = to_sympy(num, facts) / to_sympy(den, facts)
            return quotient if facts.divides(num, den) else sympy.floor(quotient)
        case Mod(num, den):
            n, d = to_sympy(num, facts), to_sympy(den, facts)
            return sympy.Integer(0) if facts.divides(num, den) else n - d * sympy.floor(n / d)
        case Datum(tensor, indices):
            return symbol(f"{tensor}[{', '.join(map(str, indices))}]")
        case Least(args):
            return smallest(*(to_sympy(a, facts) for a in args))
        case Greatest(args):
            return largest(*(to_sympy(a, facts) for a in args))
        case _:
            assert_never(atom)


def largest(*args: sympy.Expr) -> sympy.Expr:
    """The maximum, built without SymPy's search for arguments that dominate others."""
    return _extreme(sympy.Max, max, args)


def smallest(*args: sympy.Expr) -> sympy.Expr:
    """The minimum, built without SymPy's search for arguments that dominate others."""
    return _extreme(sympy.Min, min, args)


def _extreme(
    kind: type[sympy.Expr], pick: Callable[..., sympy.Expr], args: tuple[sympy.Expr, ...]
) -> sympy.Expr:
    flat: dict[sympy.Expr, None] = {}
    for a in args:
        flat.update(dict.fromkeys(a.args if isinstance(a, kind) else (a,)))
    numbers = [a for a in flat if a.is_number]
    rest = [a for a in flat if not a.is_number]
    if numbers:
        rest.append(pick(numbers))
    return rest[0] if len(rest) == 1 else kind(*rest, evaluate=False)


def abstract(expr: sympy.Expr) -> tuple[sympy.Expr, dict[sympy.Symbol, sympy.Expr]]:
    """The form as a rational function, with a symbol for each maximum, minimum and rounded division;
    and what these symbols stand for."""
    steps = _outermost(expr)
    names = {f: sympy.Symbol(f"~{k}", integer=True) for k, f in enumerate(steps)}
    return expr.xreplace(names), {v: k for k, v in names.items()}


def _outermost(expr: sympy.Expr) -> list[sympy.Expr]:
    if isinstance(expr, sympy.Max | sympy.Min | sympy.floor | sympy.ceiling):
        return [expr]
    return list(dict.fromkeys(f for a in expr.args for f in _outermost(a)))
