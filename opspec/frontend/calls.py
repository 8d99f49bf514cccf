"""Calls: functions of the language, casts, and functions written with ``fn``."""

from __future__ import annotations

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.builtins import MONOIDS, SCANS, SCATTERS, UNARY, function_names
from opspec.frontend.drafts import Draft, height, is_trivial
from opspec.frontend.faults import domains, names, values
from opspec.frontend.faults import syntax as forms
from opspec.frontend.integer_exprs import conditions, plural
from opspec.frontend.reductions import count, reduction, scan
from opspec.frontend.scope import Env, IndexVar, Local, Pack
from opspec.ir.dtypes import BOOL, DTYPES
from opspec.ir.integers import greatest, least
from opspec.ir.values import Select, Unary, Value, free_indices

MAX_INLINING = 40


def call(expr: s.Call, draft: Draft, env: Env) -> Value:
    """The value of any call."""
    scope, name = draft.scope, expr.name.text
    function = (scope.library if draft.in_library else scope.functions).get(name)
    if expr.mode is not None or t.storage(name, scope) is not None:
        return _cast(expr, draft, env)
    if expr.using is not None and name not in ("sum", *SCANS):
        scope.fail(forms.form(expr.using.span, "`using` belongs to a `sum`", "write it after `sum[…]`"))
    if name in SCANS:
        return scan(expr, draft, env)
    if name == "count":
        return count(expr, draft, env)
    if name in MONOIDS and (expr.binders is not None or name not in ("min", "max")):
        return reduction(expr, draft, env)
    if function is not None:
        return _inline(expr, function, draft, env)
    if expr.binders is not None or expr.conditions:
        if name in UNARY or name == "where":
            scope.fail(forms.form(expr.name.span, f"`{name}` takes no index", f"write `{name}(…)`"))
        scope.fail(_unknown(expr, draft))
    if expr.otherwise is not None:
        scope.fail(
            forms.form(
                expr.otherwise.span,
                f"`{name}` has no `else`",
                "`else` follows a read, or a `max`, `min` or arg-reduction",
            )
        )
    if name in UNARY:
        return _unary(expr, draft, env)
    if name in ("min", "max"):
        return _extreme(expr, draft, env)
    if name == "where":
        return _where(expr, draft, env)
    return scope.fail(_unknown(expr, draft))


def _unknown(expr: s.Call, draft: Draft) -> Diagnostic:
    name = expr.name.text
    if name in SCATTERS:
        return domains.scatter(expr.name.span, name)
    known = {*function_names(), *draft.scope.functions, "where", "count"}
    hint = "a value is read with `[ ]`: " + f"`{name}[…]`" if name in draft.scope.names() else ""
    return names.unknown_function(expr.name.span, name, known, hint)


def _arguments(expr: s.Call, n: int, draft: Draft, env: Env) -> list[Value]:
    if len(expr.arguments) != n:
        draft.scope.fail(
            names.arity(
                expr.span, f"`{expr.name.text}`", plural(n, "argument", "arguments"), len(expr.arguments)
            )
        )
    return draft.lower_all(expr.arguments, env)


def _cast(expr: s.Call, draft: Draft, env: Env) -> Value:
    scope, name = draft.scope, expr.name.text
    to = t.storage(name, scope)
    mode = expr.mode.text if expr.mode is not None else None
    if to is None:
        scope.fail(names.unknown_dtype(expr.name.span, name, {*DTYPES, *scope.dtypes}))
    if expr.binders is not None:
        scope.fail(forms.form(expr.span, f"`{name}` is a dtype and takes no index", f"write `{name}(x)`"))
    (x,) = _arguments(expr, 1, draft, env)
    place = expr.name.span if expr.mode is None else expr.name.span.to(expr.mode.span)
    return t.cast(to, mode, x, scope, expr.span, place)


def _unary(expr: s.Call, draft: Draft, env: Env) -> Value:
    (x,) = _arguments(expr, 1, draft, env)
    op = UNARY[expr.name.text]
    whole = t.whole(x)
    if op == "abs" and whole is not None:
        return t.extent(greatest(whole, -whole), expr.span)
    if op == "abs" and x.dtype.kind == "int":
        return Unary(op="abs", x=x, dtype=x.dtype, span=expr.span)
    x = t.to_float(x, draft.scope, expr.span)
    return Unary(op=op, x=x, dtype=x.dtype, span=expr.span)


def _extreme(expr: s.Call, draft: Draft, env: Env) -> Value:
    name = expr.name.text
    if len(expr.arguments) < 2:
        draft.scope.fail(
            names.arity(expr.span, f"`{name}`", "two arguments or more", len(expr.arguments))
            if not expr.arguments
            else forms.form(
                expr.span,
                f"`{name}` of one value",
                f"over an index it is `{name}[i](…)`, between values `{name}(a, b)`",
            )
        )
    args = draft.lower_all(expr.arguments, env)
    ints = [t.whole(a) for a in args]
    known = [i for i in ints if i is not None]
    if len(known) == len(args):
        return t.extent(least(*known) if name == "min" else greatest(*known), expr.span)
    args = t.promote(args, draft.scope, expr.span)
    result = args[0]
    for x in args[1:]:
        if x.dtype is BOOL:
            t.to_float(x, draft.scope, expr.span)
        result = t.binary("min" if name == "min" else "max", result, x, expr.span)
    return result


def _where(expr: s.Call, draft: Draft, env: Env) -> Value:
    condition, a, b = _arguments(expr, 3, draft, env)
    condition = t.to_bool(condition, draft.scope, expr.arguments[0].span)
    if (a.dtype is BOOL) != (b.dtype is BOOL):
        draft.scope.fail(values.mismatch(expr.span, "the branches of `where` are a number and a truth value"))
    a, b = t.promote([a, b], draft.scope, expr.span)
    return Select(condition=condition, a=a, b=b, dtype=a.dtype, span=expr.span)


def _inline(expr: s.Call, function: s.Function, draft: Draft, env: Env) -> Value:
    scope, name = draft.scope, expr.name.text
    if expr.otherwise is not None:
        scope.fail(forms.form(expr.otherwise.span, f"`{name}` is a function and has no `else`"))
    binders = expr.binders or ()
    packed = len(function.indices) == 1 and len(binders) > 1
    if len(binders) != len(function.indices) and not packed:
        scope.fail(
            names.arity(
                expr.span,
                f"`{name}`",
                plural(len(function.indices), "index in `[ ]`", "indices in `[ ]`"),
                len(binders),
                function.name.span,
            )
        )
    if len(expr.arguments) != len(function.params):
        scope.fail(
            names.arity(
                expr.span,
                f"`{name}`",
                plural(len(function.params), "argument", "arguments"),
                len(expr.arguments),
                function.name.span,
            )
        )
    if draft.inlined >= MAX_INLINING:
        scope.fail_once(forms.too_deep(expr.span, MAX_INLINING))
    outer = _bind_indices(binders, draft, env)
    arguments = _restricted(draft.lower_all(expr.arguments, outer), expr, function, draft, outer)
    local: dict[str, Local] = {}
    bound = [outer.find(b.name) for b in binders if isinstance(b, s.Name)]
    variables = [
        w for v in bound for w in (v.variables if isinstance(v, Pack) else (v,)) if isinstance(w, IndexVar)
    ]
    if packed:
        local[function.indices[0].text] = Pack(tuple(variables))
    else:
        local.update((p.text, v) for p, v in zip(function.indices, bound, strict=True) if v is not None)
    uses = _uses(function)
    for param, argument in zip(function.params, arguments, strict=True):
        once = uses.get(param.text, 0) <= 1 and height(argument, 32) < 32
        local[param.text] = (
            argument
            if once or is_trivial(argument)
            else draft.temp(param.text, argument, argument.span or expr.span)
        )
    inside = Env(local, None, closed=True, parameters=frozenset(p.text for p in function.indices))
    outside, draft.in_library = draft.in_library, scope.library.get(name) is function
    draft.inlined += 1
    try:
        for binding in function.bindings:
            draft.labels[id(binding.value)] = binding.name.text
            value = draft.lower(binding.value, inside)
            if not is_trivial(value):
                value = draft.temp(binding.name.text, value, binding.span)
            local[binding.name.text] = value
            inside.names[binding.name.text] = value
        result = draft.lower(function.value, inside)
    finally:
        draft.inlined -= 1
        draft.in_library = outside
    if outer is not env:
        free = free_indices(result)
        for v in outer.names.values():
            if isinstance(v, IndexVar) and v.name in free:
                scope.fail(names.escapes(v.span, v.shown, name, draft.origin))
    return result


def _restricted(
    arguments: list[Value], expr: s.Call, function: s.Function, draft: Draft, env: Env
) -> list[Value]:
    """Arguments with the condition of the call as their domain: ``mean[t | t <= i](x[t])``."""
    if not expr.conditions:
        return arguments
    domain = conditions(expr.conditions, draft.scope, env)
    for rest in domain.rest:
        draft.scope.fail(values.condition(rest.span, rest.span.text))
    bound = [env.find(b.name) for b in expr.binders or () if isinstance(b, s.Name)]
    variables = [
        w for v in bound for w in (v.variables if isinstance(v, Pack) else (v,)) if isinstance(w, IndexVar)
    ]
    for v in variables:
        v.conditions += [c for c in domain.constraints if v.name in c.free_indices()]
    result: list[Value] = []
    for param, x in zip(function.params, arguments, strict=True):
        if free_indices(x).isdisjoint(v.name for v in variables):
            result.append(x)
        else:
            result.append(draft.temp(param.text, x, x.span or expr.span, domain.constraints))
    return result


def _bind_indices(binders: tuple[s.Expr, ...], draft: Draft, env: Env) -> Env:
    """An environment in which the arguments of a function are read: its indices are bound there."""
    fresh: dict[str, Local] = {}
    for binder in binders:
        if not isinstance(binder, s.Name):
            draft.scope.fail(names.not_index(binder.span, binder.span.text, "a function with `[ ]`"))
        found = env.find(binder.name)
        for var in found.variables if isinstance(found, Pack) else (found,):
            if isinstance(var, IndexVar):
                var.shared = True
        if not isinstance(found, IndexVar | Pack):
            draft.scope.check_index(binder)
            fresh[binder.name] = draft.variable(binder.name, binder.span)
    if not fresh:
        return env
    inner = env.inner(fresh)
    variables = [v for v in fresh.values() if isinstance(v, IndexVar)]
    for condition in draft.pending(variables, inner):
        for v in variables:
            if v.name in condition.free_indices():
                v.extra.append(condition)
    return inner


def _uses(function: s.Function) -> dict[str, int]:
    """How often each name stands in the body of a function (a count only looks at its domain)."""
    found: dict[str, int] = {}

    def visit(expr: s.Expr | s.Interval) -> None:
        if isinstance(expr, s.Name):
            found[expr.name] = found.get(expr.name, 0) + 1
        if not (isinstance(expr, s.Call) and expr.name.text == "count"):
            for part in s.parts(expr):
                visit(part)

    for root in (*(b.value for b in function.bindings), function.value):
        visit(root)
    return found
