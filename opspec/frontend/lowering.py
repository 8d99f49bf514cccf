"""Syntax → values: the one place that knows which file lowers which expression.

Those files lower their parts through ``Draft.lower``, so that none of them imports another's way back here.
"""

from __future__ import annotations

from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.calls import call
from opspec.frontend.drafts import Draft
from opspec.frontend.references import name_value, read_value
from opspec.frontend.scope import Env
from opspec.frontend.value_exprs import chain, infix, power, prefix
from opspec.ir.values import Value


def lower(expr: s.Expr, draft: Draft, env: Env) -> Value:
    """The value of an expression; everything that needs a name gets one in ``draft``."""
    match expr:
        case s.Number(value=value):
            return t.literal(value, expr.span)
        case s.Name():
            return name_value(expr, draft, env)
        case s.Prefix():
            return prefix(expr, draft, env)
        case s.Infix(op="**"):
            return power(expr, draft, env)
        case s.Infix():
            return infix(expr, draft, env)
        case s.Chain():
            return chain(expr, draft, env)
        case s.Subscript():
            return read_value(expr, draft, env)
        case s.Call():
            return call(expr, draft, env)
