"""Syntax → values: names, reads, arithmetic, choices. Calls are in ``calls.py``."""

from __future__ import annotations

from opspec.diagnostics import Note
from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.builtins import CONSTANTS
from opspec.frontend.drafts import Draft, is_trivial
from opspec.frontend.faults import domains, names, values
from opspec.frontend.faults import syntax as forms
from opspec.frontend.integer_exprs import candidates, integer, note_axes, plural
from opspec.frontend.scope import Env, IndexVar, OpScope, Pack, Skip
from opspec.ir.bounds import equal
from opspec.ir.dtypes import BOOL, compute_dtype
from opspec.ir.integers import ONE, Index, Int, dim, floor_div, mod
from opspec.ir.program import Define, Tensor
from opspec.ir.values import (
    BinaryOp,
    Compare,
    CompareOp,
    Literal,
    Read,
    Scalar,
    Unary,
    Value,
)

MAX_DEPTH = 120
MAX_NODES = 20_000

_COMPARE: dict[str, CompareOp] = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_BINARY: dict[str, BinaryOp] = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod"}


def lower(expr: s.Expr, draft: Draft, env: Env) -> Value:
    """The value of an expression; everything that needs a name gets one in ``draft``."""
    scope = draft.scope
    scope.nodes += 1
    draft.depth += 1
    try:
        if draft.depth > MAX_DEPTH:
            scope.fail(forms.too_deep(expr.span, MAX_DEPTH))
        if scope.nodes > MAX_NODES:
            scope.fail(forms.too_much(expr.span, MAX_NODES))
        return _lower(expr, draft, env)
    finally:
        draft.depth -= 1


def _lower(expr: s.Expr, draft: Draft, env: Env) -> Value:
    match expr:
        case s.Number(value=value):
            return t.literal(value, expr.span)
        case s.Name():
            return _name(expr, draft, env)
        case s.Prefix():
            return _prefix(expr, draft, env)
        case s.Infix(op="and" | "or" as word):
            a, b = lower_all((expr.a, expr.b), draft, env)
            a, b = t.to_bool(a, draft.scope, expr.a.span), t.to_bool(b, draft.scope, expr.b.span)
            return t.binary("and" if word == "and" else "or", a, b, expr.span)
        case s.Infix(op="**"):
            return _power(expr, draft, env)
        case s.Infix():
            a, b = lower_all((expr.a, expr.b), draft, env)
            return _infix(expr, a, b, draft.scope)
        case s.Chain():
            return _chain(expr, draft, env)
        case s.Subscript():
            return _read(expr, draft, env)
        case s.Call():
            from opspec.frontend.calls import call

            return call(expr, draft, env)


def lower_all(exprs: tuple[s.Expr, ...], draft: Draft, env: Env) -> list[Value]:
    """Each of several operands, so that faults in all of them are reported."""
    result: list[Value] = []
    failed = False
    for expr in exprs:
        try:
            result.append(lower(expr, draft, env))
        except Skip:
            failed = True
    if failed:
        raise Skip
    return result


def _name(expr: s.Name, draft: Draft, env: Env) -> Value:
    scope, name = draft.scope, expr.name
    local = env.find(name)
    if isinstance(local, IndexVar):
        return t.extent(Int.of(Index(local.name)), expr.span)
    if isinstance(local, Pack):
        scope.fail(names.several(expr.span, name))
    if local is not None:
        return local
    if name in CONSTANTS and name not in scope.names():
        return t.literal(CONSTANTS[name], expr.span)
    if not env.is_closed:
        if name in scope.derived:
            return t.extent(scope.derived[name], expr.span)
        if name in scope.dims:
            return t.extent(dim(name), expr.span)
        if name in scope.scalars:
            return Scalar(name=name, dtype=compute_dtype(scope.scalars[name].dtype), span=expr.span)
        if name in scope.broken:
            raise Skip
        if name in scope.tensors or name in scope.defines or name in scope.promised:
            return _element(s.Ident(name, expr.span), (), None, expr, draft, env)
    if looks_like_index(expr, draft, env):
        scope.fail(names.unbound(expr.span, name, draft.origin))
    return scope.fail(names.unknown(expr.span, name, candidates(scope, env)))


def looks_like_index(expr: s.Name, draft: Draft, env: Env) -> bool:
    """Whether an unknown name is more likely a missing index than a typo."""
    from opspec.frontend.faults.naming import nearest

    return (
        not env.is_closed
        and len(expr.name) == 1
        and expr.name.islower()
        and not nearest(expr.name, (c for c in candidates(draft.scope, env) if len(c) > 1))
    )


def _prefix(expr: s.Prefix, draft: Draft, env: Env) -> Value:
    x = lower(expr.x, draft, env)
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


def _infix(expr: s.Infix, a: Value, b: Value, scope: OpScope) -> Value:
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
    if len(x.terms) * len(y.terms) > 400:
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


def _power(expr: s.Infix, draft: Draft, env: Env) -> Value:
    power, base = _exponent(expr.b), lower(expr.a, draft, env)
    if power is None:
        draft.scope.fail(values.power(expr.b.span, expr.b.span.text))
    x = t.whole(base)
    if x is not None and power >= 0:
        result = ONE
        for _ in range(power):
            result = result * x
        return t.extent(result, expr.span)
    if base.dtype is BOOL or power < 0:
        base = t.to_float(base, draft.scope, expr.a.span)
    if not is_trivial(base) and abs(power) > 1:
        base = draft.temp("base", base, expr.a.span)
    product: Value | None = None
    for _ in range(abs(power)):
        product = base if product is None else t.binary("mul", product, base, expr.span)
    if product is None:
        return t.literal(1, expr.span)
    if power < 0:
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


def _chain(expr: s.Chain, draft: Draft, env: Env) -> Value:
    operands = lower_all((expr.first, *(x for _, x in expr.rest)), draft, env)
    result: Value | None = None
    for k, (op, right) in enumerate(expr.rest):
        a, b = t.promote(operands[k : k + 2], draft.scope, expr.span)
        if a.dtype is BOOL and op not in ("==", "!="):
            t.to_float(a, draft.scope, right.span)
        one: Value = Compare(op=_COMPARE[op], a=a, b=b, dtype=BOOL, span=expr.span)
        result = one if result is None else t.binary("and", result, one, expr.span)
    assert result is not None
    return result


def _read(expr: s.Subscript, draft: Draft, env: Env) -> Value:
    scope, name = draft.scope, expr.name.text
    if env.find(name) is not None:
        scope.fail(
            forms.form(
                expr.span,
                f"`{name}` is a value and takes no indices here",
                "the indices of an argument are those that the caller wrote",
            )
        )
    if env.is_closed:
        scope.fail(names.unknown(expr.name.span, name, candidates(scope, env)))
    if name in scope.broken:
        raise Skip
    if name in scope.dims or name in scope.derived or name in scope.scalars:
        scope.fail(names.arity(expr.span, f"`{name}`", "no index", len(expr.indices)))
    return _element(expr.name, expr.indices, expr.otherwise, expr, draft, env)


def _element(
    ident: s.Ident,
    written: tuple[s.Expr, ...],
    otherwise: s.Expr | None,
    expr: s.Expr,
    draft: Draft,
    env: Env,
) -> Value:
    scope, name = draft.scope, ident.text
    source = _source(ident, expr, draft, env)
    define = scope.defines.get(source)
    tensor = scope.tensors.get(name)
    if define is not None:
        extents: tuple[Int, ...] = tuple(r.upper for r in define.ranges)
        dtype, where = define.value.dtype, define.span
    else:
        assert tensor is not None
        extents, dtype, where = tensor.extents, compute_dtype(tensor.dtype), tensor.span
    if len(written) != len(extents):
        if not written:
            scope.fail(names.needs_indices(expr.span, name, len(extents), where))
        scope.fail(
            names.arity(expr.span, f"`{name}`", plural(len(extents), "index", "indices"), len(written), where)
        )
    at: list[Int] = []
    failed = False
    for index in written:
        try:
            if isinstance(index, s.Name) and _missing(index, scope, env):
                scope.fail(names.unbound(index.span, index.name, draft.origin))
            at.append(integer(index, scope, env))
        except Skip:
            failed = True
    if failed:
        raise Skip
    note_axes(tuple(at), written, extents, name, env)
    scope.written_indices[expr.span] = tuple(i.span for i in written)
    other: Value | None = None
    if otherwise is not None:
        other = lower(otherwise, draft, env)
        if dtype is BOOL:
            other = t.to_bool(other, scope, otherwise.span)
        elif dtype.kind == "float":
            other = t.to_float(other, scope, otherwise.span)
        elif other.dtype.kind != "int":
            scope.fail(values.mismatch(otherwise.span, f"`{name}` holds integers, and its `else` is none"))
        else:
            other = t.widen(other, dtype)
    return Read(name=source, indices=tuple(at), otherwise=other, dtype=dtype, span=expr.span)


def _missing(expr: s.Name, scope: OpScope, env: Env) -> bool:
    return (
        env.find(expr.name) is None
        and expr.name not in scope.names()
        and expr.name not in scope.broken
        and len(expr.name) <= 2
        and expr.name.islower()
    )


def _source(ident: s.Ident, expr: s.Expr, draft: Draft, env: Env) -> str:
    """Under which name a read finds its value: a statement of this or an earlier kernel, or a tensor."""
    scope, name = draft.scope, ident.text
    tensor = scope.tensors.get(name)
    if tensor is None:
        if name in scope.defines:
            return name
        if name in scope.promised:
            scope.fail(names.early(expr.span, name, ""))
        scope.fail(names.unknown(ident.span, name, candidates(scope, env)))
    writers = scope.written.get(name, [])
    if tensor.role == "in" or (tensor.role == "inout" and not writers):
        return name
    if not writers:
        scope.fail(names.early(expr.span, name, f"`{name}` is an output; only what was written can be read"))
    here = [w for w in writers if scope.homes.get(w.name) == scope.kernel]
    if len(writers) == 1 and _everywhere(writers[0], tensor, scope):
        return writers[0].name
    if here:
        scope.fail(domains.in_parts(expr.span, name, tuple(Note("written here", w.span) for w in here)))
    return name


def _everywhere(writer: Define, tensor: Tensor, scope: OpScope) -> bool:
    """Whether one statement holds the value of every element, index by index."""
    at = writer.output.at if writer.output is not None else ()
    return (
        [i.index for i in at] == list(writer.indices)
        and not writer.constraints
        and all(
            r.lower.constant == 0 and equal(r.upper, e, scope.facts)
            for r, e in zip(writer.ranges, tensor.extents, strict=True)
        )
    )
