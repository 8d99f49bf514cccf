"""Syntax → values: arithmetic, comparisons and logic."""

from __future__ import annotations

from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.drafts import Draft, is_trivial
from opspec.frontend.faults import values
from opspec.frontend.integer_exprs import is_wide
from opspec.frontend.scope import Env, OpScope
from opspec.ir.dtypes import BOOL
from opspec.ir.integers import ONE, Int, floor_div, mod
from opspec.ir.values import (
    BinaryOp,
    Compare,
    CompareOp,
    Literal,
    Unary,
    Value,
)

_COMPARE: dict[str, CompareOp] = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_BINARY: dict[str, BinaryOp] = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod"}


def prefix(expr: s.Prefix, draft: Draft, env: Env) -> Value:
    """A sign, or `not`."""
    x = draft.lower(expr.x, env)
    if expr.op == "not":
        return Unary(op="not", x=t.to_bool(x, draft.scope, expr.span), dtype=BOOL, span=expr.span)
    if x.dtype is BOOL:
        t.to_float(x, draft.scope, expr.span)
    if expr.op == "+":
        return x
    if isinstance(x, Literal):
        return Literal(value=-x.value, dtype=x.dtype, span=expr.span)
    w = t.whole(x)
    if w is not None:
        return t.extent(-w, expr.span)
    return Unary(op="neg", x=x, dtype=x.dtype, span=expr.span)


def infix(expr: s.Infix, draft: Draft, env: Env) -> Value:
    """A sum, product or quotient, or two truth values together."""
    a, b = draft.lower_all((expr.a, expr.b), env)
    if expr.op in ("and", "or"):
        a, b = t.to_bool(a, draft.scope, expr.a.span), t.to_bool(b, draft.scope, expr.b.span)
        return t.binary("and" if expr.op == "and" else "or", a, b, expr.span)
    return _arithmetic(expr, a, b, draft.scope)


def _arithmetic(expr: s.Infix, a: Value, b: Value, scope: OpScope) -> Value:
    x, y = t.whole(a), t.whole(b)
    if expr.op == "/":
        a, b = t.to_float(a, scope, expr.a.span), t.to_float(b, scope, expr.b.span)
        return t.binary("div", a, b, expr.span)
    if x is not None and y is not None:
        return _whole(expr, x, y, scope)
    for side, v in ((expr.a, a), (expr.b, b)):
        if v.dtype is BOOL:
            t.to_float(v, scope, side.span)
    a, b = t.promote([a, b], scope, expr.span)
    if expr.op in ("//", "%") and a.dtype.kind == "float":
        help_ = "write `floor(a / b)`" if expr.op == "//" else "write `a - b * floor(a / b)`"
        scope.fail(values.mismatch(expr.span, f"`{expr.op}` is for integers, and this is a float", help_))
    return t.binary(_BINARY[expr.op], a, b, expr.span)


def _whole(expr: s.Infix, x: Int, y: Int, scope: OpScope) -> Value:
    if is_wide(expr.op, x, y):
        scope.fail(values.integer(expr.span, expr.span.text, "has too many terms"))
    match expr.op:
        case "+":
            return t.extent(x + y, expr.span)
        case "-":
            return t.extent(x - y, expr.span)
        case "*":
            return t.extent(x * y, expr.span)
        case _:
            if y.constant is not None and y.constant <= 0:
                scope.fail(values.integer(expr.b.span, expr.b.span.text, "is not a positive divisor"))
            return t.extent(floor_div(x, y) if expr.op == "//" else mod(x, y), expr.span)


def power(expr: s.Infix, draft: Draft, env: Env) -> Value:
    """A power, as a product that is written out."""
    exponent, base = _exponent(expr.b), draft.lower(expr.a, env)
    if exponent is None:
        draft.scope.fail(values.power(expr.b.span, expr.b.span.text))
    x = t.whole(base)
    if x is not None and exponent >= 0:
        result = ONE
        for _ in range(exponent):
            result = result * x
        return t.extent(result, expr.span)
    if base.dtype is BOOL or exponent < 0:
        base = t.to_float(base, draft.scope, expr.a.span)
    if not is_trivial(base) and abs(exponent) > 1:
        base = draft.temp("base", base, expr.a.span)
    product: Value | None = None
    for _ in range(abs(exponent)):
        product = base if product is None else t.binary("mul", product, base, expr.span)
    if product is None:
        return t.literal(1, expr.span)
    if exponent < 0:
        return Unary(op="reciprocal", x=product, dtype=product.dtype, span=expr.span)
    return product


def _exponent(expr: s.Expr) -> int | None:
    match expr:
        case s.Number(value=int(value)) if value <= 64:
            return value
        case s.Prefix(op="-", x=s.Number(value=int(value))) if value <= 64:
            return -value
        case _:
            return None


def chain(expr: s.Chain, draft: Draft, env: Env) -> Value:
    """Comparisons that share operands."""
    operands = draft.lower_all((expr.first, *(x for _, x in expr.rest)), env)
    result: Value | None = None
    for k, (op, right) in enumerate(expr.rest):
        a, b = t.promote(operands[k : k + 2], draft.scope, expr.span)
        if a.dtype is BOOL and op not in ("==", "!="):
            t.to_float(a, draft.scope, right.span)
        one: Value = Compare(op=_COMPARE[op], a=a, b=b, dtype=BOOL, span=expr.span)
        result = one if result is None else t.binary("and", result, one, expr.span)
    assert result is not None
    return result
