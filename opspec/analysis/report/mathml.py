"""Closed forms as MathML, which browsers typeset by themselves. Names are escaped; nothing else is a user's."""

from __future__ import annotations

from html import escape

import sympy


def to_mathml(form: sympy.Expr) -> str:
    """A ``<math>`` element in display style."""
    return f'<math display="block">{_row(form)}</math>'


def _row(form: sympy.Expr) -> str:
    numerator, denominator = sympy.fraction(form)
    if denominator != 1:
        return f"<mfrac><mrow>{_plain(numerator)}</mrow><mrow>{_plain(denominator)}</mrow></mfrac>"
    return _plain(form)


def _plain(form: sympy.Expr) -> str:
    match form:
        case sympy.Symbol():
            return _name(form.name)
        case sympy.Rational() if form.q != 1:
            return _row(
                sympy.Mul(sympy.Integer(form.p), sympy.Pow(form.q, -1, evaluate=False), evaluate=False)
            )
        case sympy.Number():
            return f"<mn>{escape(str(form))}</mn>"
        case sympy.Add():
            return f"<mrow>{_sum(form)}</mrow>"
        case sympy.Mul():
            sign, rest = ("<mo>−</mo>", -form) if form.could_extract_minus_sign() else ("", form)
            if not isinstance(rest, sympy.Mul):
                return f"<mrow>{sign}{_plain(rest)}</mrow>"
            numbers = [f for f in rest.args if f.is_number]
            others = sorted(
                (f for f in rest.args if not f.is_number), key=lambda f: (isinstance(f, sympy.Add), str(f))
            )
            factors = "<mo>⁢</mo><mspace width='0.15em'/>".join(_factor(f) for f in [*numbers, *others])
            return f"<mrow>{sign}{factors}</mrow>"
        case sympy.Pow():
            base, power = form.as_base_exp()
            return f"<msup>{_factor(base)}<mrow>{_plain(power)}</mrow></msup>"
        case sympy.floor():
            return f"<mrow><mo>⌊</mo>{_row(form.args[0])}<mo>⌋</mo></mrow>"
        case sympy.ceiling():
            return f"<mrow><mo>⌈</mo>{_row(form.args[0])}<mo>⌉</mo></mrow>"
        case sympy.Max() | sympy.Min():
            word = "max" if isinstance(form, sympy.Max) else "min"
            inside = "<mo>,</mo>".join(_row(a) for a in form.args)
            return f"<mrow><mi>{word}</mi><mo>(</mo>{inside}<mo>)</mo></mrow>"
        case _:
            return f"<mtext>{escape(str(form))}</mtext>"


def _sum(form: sympy.Add) -> str:
    terms = sorted(form.args, key=lambda t: (t.could_extract_minus_sign(), t.is_number, str(t)))
    parts = []
    for k, t in enumerate(terms):
        minus = t.could_extract_minus_sign()
        sign = "<mo>−</mo>" if minus else "<mo>+</mo>" if k else ""
        parts.append(sign + _row(-t if minus else t))
    return "".join(parts)


def _factor(form: sympy.Expr) -> str:
    inner = _row(form)
    return f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>" if isinstance(form, sympy.Add) else inner


def _name(name: str) -> str:
    variant = "" if len(name) == 1 else ' mathvariant="normal"'
    return f"<mi{variant}>{escape(name)}</mi>"
