"""Closed forms for people and programs: tidying, evaluation, Python source.

Evaluation substitutes integers for symbols; nothing here parses text.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import comb, gcd, prod

import sympy

from opspec.analysis.lattice.symbols import abstract, symbol

_LARGEST_TIDIED = 400
_LONGEST_EXPANSION = 1_000
_TAKEN = frozenset({"max", "min", "math", "inf", "nan", "True", "False", "None"})


@lru_cache(maxsize=4096)
def tidy(expr: sympy.Expr) -> sympy.Expr:
    """An equal, shorter form: common factors cancelled and taken out. Never a search.

    Maxima, minima and rounded divisions stand for themselves, as symbols would.
    """
    if not isinstance(expr, sympy.Expr) or expr.is_Atom or expr.has(sympy.oo, sympy.zoo, sympy.nan):
        return expr
    flat, back = abstract(expr)
    if flat.count_ops() > _LARGEST_TIDIED or _expanded(flat) > _LONGEST_EXPANSION:
        return expr
    if not _divides(flat):
        return _short(flat).xreplace(back)
    numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(flat)))
    return (_short(numerator) / _short(denominator)).xreplace(back)


def _expanded(expr: sympy.Expr) -> int:
    """At most how many terms the expansion has; powers of sums count by their degree, above a line or below."""
    if expr.is_Add:
        return sum(map(_expanded, expr.args))
    if expr.is_Mul:
        return prod(map(_expanded, expr.args))
    if expr.is_Pow and expr.exp.is_Integer:
        terms, power = _expanded(expr.base), abs(int(expr.exp))
        return comb(min(terms, _LONGEST_EXPANSION) + power - 1, power) if terms > 1 else 1
    return 1


def _divides(expr: sympy.Expr) -> bool:
    return any(p.exp.is_negative and p.base.free_symbols for p in expr.atoms(sympy.Pow))


def _short(expr: sympy.Expr) -> sympy.Expr:
    """The shortest of the form itself, its expansion, and both with common factors taken out."""
    flat = sympy.expand(expr)
    if not flat.is_Add:
        return flat
    given = () if expr == flat else (sympy.factor_terms(expr), expr)
    forms = dict.fromkeys((sympy.factor_terms(flat), flat, *given))
    sizes = {f: f.count_ops() for f in forms}
    least = min(sizes.values())
    return min((f for f, n in sizes.items() if n == least), key=str)


def evaluate(expr: sympy.Expr, env: Mapping[str, int | Fraction]) -> sympy.Expr:
    """The form with symbols replaced by integers (moments: by fractions); a number if all are given."""
    names = {
        s: sympy.Rational(v.numerator, v.denominator)
        for s in expr.free_symbols
        if (v := env.get(s.name)) is not None
    }
    return expr.xreplace(names) if names else expr


def unbound(expr: sympy.Expr) -> tuple[str, ...]:
    """Names of the symbols left in a form, sorted."""
    return tuple(sorted(s.name for s in expr.free_symbols))


def python_names(names: Iterable[str]) -> dict[str, str]:
    """A distinct Python identifier for each name of a dim or a moment.

    Names that Python can take stay as they are; ``lambda`` becomes ``lambda_``,
    ``sizeof(X)`` becomes ``sizeof_X`` and ``sum(len^2)`` ``sum_len_2``.
    """
    ordered = list(dict.fromkeys(names))
    plain = [n for n in ordered if _usable(n)]
    result = {n: n for n in plain}
    used = set(plain)
    for name in ordered:
        if name in result:
            continue
        made = "_".join("".join(c if c.isalnum() or c == "_" else " " for c in name).split()) or "x"
        if not made.isidentifier():
            made = f"x_{made}" if f"x_{made}".isidentifier() else "x"
        while not _usable(made) or made in used:
            made += "_"
        result[name] = made
        used.add(made)
    return result


def _usable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN and name.isascii()


def closed_form_python(
    expr: sympy.Expr, names: Mapping[str, str] | None = None, *, integer: bool = True
) -> str:
    """Python source of a form, over ``+ - * // **``, ``max`` and ``min`` of integers.

    ``names`` maps symbols to identifiers (``python_names`` of all of them by default).
    A count (``integer``) divides once, at the end and exactly, with ``//``; any other
    form, such as an intensity, divides with ``/``.

    Raises: TypeError for a form that no count has.
    """
    if names is None:
        names = python_names(unbound(expr))
    return _Printer(names, integer).whole(expr)


# A denominator is an integer (last, merged) and source texts of symbolic factors.
_Den = tuple[int, tuple[str, ...]] | None


class _Printer:
    """Prints a form as a numerator text and a denominator."""

    def __init__(self, names: Mapping[str, str], integer: bool) -> None:
        self.names, self.slash = names, "//" if integer else "/"

    def whole(self, expr: sympy.Expr) -> str:
        """The text with its denominator, if it has one."""
        text, den = self.parts(expr)
        return text if den is None else f"{_factor(text)} {self.slash} {_product(den)}"

    def parts(self, expr: sympy.Expr) -> tuple[str, _Den]:
        """Numerator and denominator of any form."""
        if isinstance(expr, sympy.Symbol):
            return self.names.get(expr.name, expr.name), None
        if isinstance(expr, sympy.Integer):
            return str(int(expr)), None
        if isinstance(expr, sympy.Rational):
            return str(int(expr.p)), (int(expr.q), ())
        if isinstance(expr, sympy.Float):
            return repr(float(expr)), None
        if expr is sympy.oo:
            return "math.inf", None
        if isinstance(expr, sympy.Add):
            return self._sum(expr)
        if isinstance(expr, sympy.Mul):
            return self._multiple(expr)
        if isinstance(expr, sympy.Pow):
            return self._power(expr)
        if isinstance(expr, sympy.Max | sympy.Min):
            args = sorted(map(self.whole, expr.args), key=lambda t: (t.lstrip("-").isdigit(), t))
            return f"{'max' if isinstance(expr, sympy.Max) else 'min'}({', '.join(args)})", None
        if isinstance(expr, sympy.floor):
            text, den = self.parts(expr.args[0])
            return (text if den is None else f"({_factor(text)} // {_product(den)})"), None
        if isinstance(expr, sympy.ceiling):
            text, den = self.parts(expr.args[0])
            return (text if den is None else f"(-(-{_factor(text)} // {_product(den)}))"), None
        raise TypeError(f"no Python form for {type(expr).__name__}")

    def _sum(self, expr: sympy.Add) -> tuple[str, _Den]:
        parts = [self.parts(t) for t in expr.as_ordered_terms()]
        number, factors = 1, dict[str, None]()
        for _, den in parts:
            if den is not None:
                number = number * den[0] // gcd(number, den[0])
                factors.update(dict.fromkeys(den[1]))
        text = ""
        for numerator, den in parts:
            scale, own = (1, ()) if den is None else den
            term = _scaled(numerator, number // scale, [f for f in factors if f not in own])
            if not text:
                text = term
            else:
                text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
        return text, (None if number == 1 and not factors else (number, tuple(factors)))

    def _multiple(self, expr: sympy.Mul) -> tuple[str, _Den]:
        number, value, factors, texts = 1, 1, list[str](), list[str]()
        for factor in expr.as_ordered_factors():
            numerator, den = self.parts(factor)
            if den is not None:
                number *= den[0]
                factors += den[1]
            if numerator.lstrip("-").isdigit():
                value *= int(numerator)
            else:
                texts.append(_factor(numerator))
        shared = gcd(value, number)
        text = _scaled(" * ".join(texts) or "1", value // shared, [])
        number //= shared
        return text, (None if number == 1 and not factors else (number, tuple(factors)))

    def _power(self, expr: sympy.Pow) -> tuple[str, _Den]:
        base, power = expr.args
        if not isinstance(power, sympy.Integer):
            if isinstance(power, sympy.Rational) and power.q == 2:
                root, n = f"math.sqrt({self.whole(base)})", abs(int(power.p))
                root = root if n == 1 else f"{root}**{n}"
                return (root, None) if power > 0 else ("1", (1, (root,)))
            raise TypeError(f"no Python form for the exponent {power}")
        text = _factor(self.whole(base))
        n = abs(int(power))
        raised = text if n == 1 else f"{text}**{n}"
        return (raised, None) if power > 0 else ("1", (1, (raised,)))


def _scaled(text: str, number: int, factors: list[str]) -> str:
    """``number * text * factors``, with the sign in front and literals folded."""
    if text.lstrip("-").isdigit():
        text, number = "1", number * int(text)
    elif number != 1 or factors:
        if text.startswith("-") and _factor(text[1:]) == text[1:]:
            text, number = text[1:], -number
        lead, _, rest = text.partition(" * ")
        if lead.isdigit() and rest and _factor(text) == text:
            text, number = rest, number * int(lead)
    parts = [str(abs(number))] if abs(number) != 1 else []
    if text != "1":
        parts.append(_factor(text) if parts or factors or number < 0 else text)
    product = " * ".join([*parts, *factors]) or "1"
    return f"-{product}" if number < 0 else product


def _factor(text: str) -> str:
    """The text as an operand of a product: in brackets if it is a sum or a quotient."""
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth == 0 and c in "+-/":
            return f"({text})"
    return text


def _product(den: tuple[int, tuple[str, ...]]) -> str:
    number, factors = den
    parts = [*([str(number)] if number != 1 else []), *factors]
    return (
        parts[0]
        if len(parts) == 1 and (" " not in parts[0] or parts[0].startswith("("))
        else f"({' * '.join(parts)})"
    )


__all__ = ["closed_form_python", "evaluate", "python_names", "symbol", "tidy", "unbound"]
