"""Closed forms for people and programs: tidying, evaluation, Python source.

Evaluation substitutes integers for symbols; nothing here parses text.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import gcd

import sympy

from opspec.analysis.lattice.symbols import symbol

_LARGEST_TIDIED = 400
_TAKEN = frozenset({"max", "min", "math", "inf", "nan", "True", "False", "None"})


@lru_cache(maxsize=4096)
def tidy(expr: sympy.Expr) -> sympy.Expr:
    """An equal, shorter form: common factors cancelled and taken out. Never a search."""
    if not isinstance(expr, sympy.Expr) or expr.is_Atom:
        return expr
    if expr.count_ops() > _LARGEST_TIDIED or expr.has(sympy.oo, sympy.zoo, sympy.nan):
        return expr
    numerator, denominator = sympy.fraction(sympy.together(expr)) if _divides(expr) else (expr, sympy.Integer(1))
    if denominator.free_symbols:
        expr = sympy.cancel(numerator / denominator)
        numerator, denominator = sympy.fraction(expr)
        return _short(numerator) / _short(denominator)
    return _short(expr)


def _divides(expr: sympy.Expr) -> bool:
    return any(p.exp.is_negative and p.base.free_symbols for p in expr.atoms(sympy.Pow))


def _short(expr: sympy.Expr) -> sympy.Expr:
    """The shortest of the form itself, its expansion, and both with common factors taken out."""
    flat = sympy.expand(expr)
    forms = (sympy.factor_terms(flat), sympy.factor_terms(expr), flat, expr)
    return min(forms, key=lambda f: (f.count_ops(), str(f)))


def evaluate(expr: sympy.Expr, env: Mapping[str, int]) -> sympy.Expr:
    """The form with symbols replaced by integers; a number if all of them are given."""
    names = {s: sympy.Integer(env[s.name]) for s in expr.free_symbols if s.name in env}
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


def closed_form_python(expr: sympy.Expr, names: Mapping[str, str] | None = None) -> str:
    """Python source of a form, over ``+ - * // **``, ``max`` and ``min`` of integers.

    ``names`` maps symbols to identifiers (``python_names`` of all of them by default).
    An integer count divides exactly with ``//``; a form that is not an integer, such as
    an intensity, divides once, at the end, with ``/``.

    Raises: TypeError for a form that no count has.
    """
    if names is None:
        names = python_names(unbound(expr))
    numerator, denominators = _print(expr, names)
    if not denominators:
        return numerator
    return f"{_factor(numerator)} {'//' if expr.is_integer else '/'} {_product(denominators)}"


# A denominator is an integer (last, merged) and source texts of symbolic factors.
_Den = tuple[int, tuple[str, ...]] | None


def _print(expr: sympy.Expr, names: Mapping[str, str]) -> tuple[str, _Den]:
    if isinstance(expr, sympy.Symbol):
        return names.get(expr.name, expr.name), None
    if isinstance(expr, sympy.Integer):
        return str(int(expr)), None
    if isinstance(expr, sympy.Rational):
        return str(int(expr.p)), (int(expr.q), ())
    if isinstance(expr, sympy.Float):
        return repr(float(expr)), None
    if expr is sympy.oo:
        return "math.inf", None
    if isinstance(expr, sympy.Add):
        return _print_sum(expr, names)
    if isinstance(expr, sympy.Mul):
        return _print_product(expr, names)
    if isinstance(expr, sympy.Pow):
        return _print_power(expr, names)
    if isinstance(expr, sympy.Max | sympy.Min):
        args = sorted((_whole(a, names) for a in expr.args), key=lambda t: (t.lstrip("-").isdigit(), t))
        return f"{'max' if isinstance(expr, sympy.Max) else 'min'}({', '.join(args)})", None
    if isinstance(expr, sympy.floor):
        text, den = _print(expr.args[0], names)
        return (text if den is None else f"({_factor(text)} // {_product(den)})"), None
    if isinstance(expr, sympy.ceiling):
        text, den = _print(expr.args[0], names)
        return (text if den is None else f"(-(-{_factor(text)} // {_product(den)}))"), None
    raise TypeError(f"no Python form for {type(expr).__name__}")


def _whole(expr: sympy.Expr, names: Mapping[str, str]) -> str:
    text, den = _print(expr, names)
    if den is None:
        return text
    return f"{_factor(text)} {'//' if expr.is_integer is not False else '/'} {_product(den)}"


def _print_sum(expr: sympy.Add, names: Mapping[str, str]) -> tuple[str, _Den]:
    parts = [_print(t, names) for t in expr.as_ordered_terms()]
    number, factors = 1, dict[str, None]()
    for _, den in parts:
        if den is not None:
            number = number * den[0] // gcd(number, den[0])
            factors.update(dict.fromkeys(den[1]))
    text = ""
    for numerator, den in parts:
        scale, own = (1, ()) if den is None else den
        missing = [f for f in factors if f not in own]
        k = number // scale
        term = numerator
        if missing or k != 1:
            term = " * ".join([*([str(k)] if k != 1 else []), *([_factor(term)] if term != "1" else []), *missing]) or "1"
        if not text:
            text = term
        elif term.startswith("-"):
            text += f" - {term[1:]}"
        else:
            text += f" + {term}"
    return text, (None if number == 1 and not factors else (number, tuple(factors)))


def _print_product(expr: sympy.Mul, names: Mapping[str, str]) -> tuple[str, _Den]:
    number, factors, texts, negative = 1, list[str](), list[str](), False
    for factor in expr.as_ordered_factors():
        numerator, den = _print(factor, names)
        if den is not None:
            number *= den[0]
            factors += den[1]
        if numerator == "-1":
            negative = not negative
        elif numerator != "1":
            if numerator.lstrip("-").isdigit() and numerator.startswith("-"):
                negative, numerator = not negative, numerator[1:]
            texts.append(_factor(numerator))
    text = " * ".join(texts) or "1"
    return (f"-{text}" if negative else text), (None if number == 1 and not factors else (number, tuple(factors)))


def _print_power(expr: sympy.Pow, names: Mapping[str, str]) -> tuple[str, _Den]:
    base, power = expr.args
    if not isinstance(power, sympy.Integer):
        if power == sympy.Rational(1, 2):
            return f"math.sqrt({_whole(base, names)})", None
        raise TypeError(f"no Python form for the exponent {power}")
    text = _factor(_whole(base, names))
    n = abs(int(power))
    raised = text if n == 1 else f"{text}**{n}"
    return (raised, None) if power > 0 else ("1", (1, (raised,)))


def _factor(text: str) -> str:
    """The text as an operand of a product: in brackets if it is a sum or a quotient."""
    depth = 0
    for at, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and c in "+-/ " and not (at > 0 and text[at - 1] == "*" and c != "/"):
            if c == " " and text[at : at + 3] == " * ":
                continue
            if c == " " and at > 0 and text[at - 2 : at + 1] == " * ":
                continue
            return f"({text})"
    return text


def _product(den: tuple[int, tuple[str, ...]]) -> str:
    number, factors = den
    parts = [*([str(number)] if number != 1 else []), *factors]
    return parts[0] if len(parts) == 1 and "*" not in parts[0] else f"({' * '.join(parts)})"


__all__ = ["closed_form_python", "evaluate", "python_names", "symbol", "tidy", "unbound"]
