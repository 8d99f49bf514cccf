"""Reductions, scans and counts, and the indices that they bind."""

from __future__ import annotations

from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.builtins import MONOIDS, SCANS, USING
from opspec.frontend.drafts import Draft
from opspec.frontend.faults import domains, names, values
from opspec.frontend.faults import syntax as forms
from opspec.frontend.integer_exprs import Domain, conditions
from opspec.frontend.scope import Env, IndexVar, Local, Pack
from opspec.ir import bounds
from opspec.ir.dtypes import BOOL, F32, I64
from opspec.ir.integers import ONE, Index, Int
from opspec.ir.values import Literal, Monoid, Range, Reduce, Scan, Select, Value

_IDENTITY: dict[str, float] = {
    "sum": 0.0,
    "prod": 1.0,
    "max": float("-inf"),
    "min": float("inf"),
    "argmax": float("-inf"),
    "argmin": float("inf"),
}


def reduction(expr: s.Call, draft: Draft, env: Env) -> Value:
    """``sum[i, j | condition] using bf16 (body) else identity``, under a name of its own."""
    scope, name = draft.scope, expr.name.text
    monoid = MONOIDS[name]
    variables, inner = binders(expr, draft, env)
    if len(expr.arguments) != 1:
        scope.fail(names.arity(expr.span, f"`{name}`", "1 argument", len(expr.arguments)))
    if monoid in ("argmax", "argmin") and len(variables) != 1:
        scope.fail(names.arity(expr.span, f"`{name}`", "1 index", len(variables)))
    domain = conditions(expr.conditions, scope, inner)
    _attach(domain.constraints, variables)
    body = _body(draft.lower(expr.arguments[0], inner), monoid, expr, draft)
    empty = _identity(expr, monoid, draft, env)
    if empty is not None and monoid in ("max", "min"):
        body, empty = t.promote([body, empty], scope, expr.span)
    guard = _data_guard(domain, draft, inner)
    if guard is not None:
        body = _guarded(body, guard, monoid, empty, expr, draft)
    value: Value = Reduce(
        monoid=monoid,
        ranges=tuple(Range(index=v.name, upper=ONE) for v in variables),
        constraints=_joined(
            domain.constraints, draft.pending(variables, inner), _extra(variables), draft.inherited(body)
        ),
        body=body,
        using=_using(expr, draft),
        empty=empty,
        dtype=I64 if monoid in ("argmax", "argmin") else body.dtype,
        span=expr.span,
    )
    return value if draft.at_root(expr) else draft.temp(draft.label(expr, name), value, expr.span)


def scan(expr: s.Call, draft: Draft, env: Env) -> Value:
    """``scan_sum[t](body)``, or ``scan_sum[-t](body)`` from the end; ``scan_sum[t](body, decay)`` forgets."""
    scope, name = draft.scope, expr.name.text
    if expr.binders is None or len(expr.binders) != 1 or expr.conditions:
        scope.fail(names.arity(expr.span, f"`{name}`", "1 index in `[ ]`", len(expr.binders or ())))
    if expr.otherwise is not None:
        scope.fail(forms.form(expr.otherwise.span, f"`{name}` has no `else`: it never combines nothing"))
    binder = expr.binders[0]
    reverse = isinstance(binder, s.Prefix) and binder.op == "-"
    if isinstance(binder, s.Prefix) and reverse:
        binder = binder.x
    if not isinstance(binder, s.Name):
        scope.fail(names.not_index(binder.span, binder.span.text, f"`{name}`"))
    var = env.find(binder.name)
    if not isinstance(var, IndexVar):
        scope.fail(
            names.not_index(
                binder.span,
                binder.name,
                f"`{name}`",
                f"a scan gives a value at each point: put `{binder.name}` on the left-hand side",
            )
        )
    monoid = SCANS[name]
    most = 2 if monoid == "sum" else 1
    if not 1 <= len(expr.arguments) <= most:
        wanted = "1 or 2 arguments" if most == 2 else "1 argument"
        scope.fail(names.arity(expr.span, f"`{name}`", wanted, len(expr.arguments)))
    body = _body(draft.lower(expr.arguments[0], env), monoid, expr, draft)
    decay: Value | None = None
    if len(expr.arguments) == 2:
        body = t.to_float(body, scope, expr.arguments[0].span)
        decay = t.to_float(draft.lower(expr.arguments[1], env), scope, expr.arguments[1].span)
    value = Scan(
        monoid=monoid,
        index=var.name,
        reverse=reverse,
        body=body,
        decay=decay,
        dtype=body.dtype,
        span=expr.span,
    )
    return value if draft.at_root(expr) else draft.temp(draft.label(expr, name), value, expr.span)


def count(expr: s.Call, draft: Draft, env: Env) -> Value:
    """``count[t](x)``: the number of points of the domain of x along t, as a number."""
    scope = draft.scope
    variables, inner = binders(expr, draft, env)
    if len(expr.arguments) > 1:
        scope.fail(names.arity(expr.span, "`count`", "at most 1 argument", len(expr.arguments)))
    if expr.otherwise is not None:
        scope.fail(forms.form(expr.otherwise.span, "`count` has no `else`: over nothing it is 0"))
    domain = conditions(expr.conditions, scope, inner)
    _attach(domain.constraints, variables)
    body = draft.lower(expr.arguments[0], inner) if expr.arguments else t.literal(1, expr.span)
    guard = _data_guard(domain, draft, inner)
    constraints = _joined(
        domain.constraints, draft.pending(variables, inner), _extra(variables), draft.inherited(body)
    )
    closed = None if guard is not None else _closed(variables, constraints, draft)
    if closed is not None:
        return t.extent(closed, expr.span)
    one: Value = Literal(value=1.0, dtype=F32, span=expr.span)
    if guard is not None:
        zero = Literal(value=0.0, dtype=F32, span=expr.span)
        one = Select(condition=guard, a=one, b=zero, dtype=F32, span=expr.span)
    value = Reduce(
        monoid="sum",
        ranges=tuple(Range(index=v.name, upper=ONE) for v in variables),
        constraints=constraints,
        body=one,
        dtype=F32,
        span=expr.span,
    )
    return draft.temp(draft.label(expr, "count"), value, expr.span)


def _closed(variables: list[IndexVar], constraints: tuple[Int, ...], draft: Draft) -> Int | None:
    """The number of points as one integer expression, where there is one."""
    product = ONE
    facts = draft.scope.facts
    for v in variables:
        axes = list(dict.fromkeys(a.upper for a in v.axes))
        mine = [c for c in constraints if v.name in c.free_indices()]
        if any(w is not v and w.name in c.free_indices() for c in mine for w in variables):
            return None
        i = Int.of(Index(v.name))
        box = [i, *(upper - 1 - i for upper in axes)]
        if not axes and not mine:
            return None
        context = facts.extended(_boxes(draft, v))
        size = bounds.count(v.name, [*box, *mine], context)
        if size is None:
            return None
        product = product * size
    if any(c.free_indices().isdisjoint(v.name for v in variables) for c in constraints):
        return None
    return product


def _boxes(draft: Draft, besides: IndexVar) -> list[Int]:
    """What is known of the other indices of the statement from the axes that they stand on."""
    known: list[Int] = []
    for v in draft.variables.values():
        strong = [a.upper for a in v.axes if not a.weak]
        if v is not besides and strong:
            i = Int.of(Index(v.name))
            known += [i, *(upper - 1 - i for upper in dict.fromkeys(strong))]
    return known


def binders(expr: s.Call, draft: Draft, env: Env) -> tuple[list[IndexVar], Env]:
    """The indices that a reduction binds, and the environment of its body."""
    scope = draft.scope
    if not expr.binders:
        scope.fail(
            forms.form(
                expr.name.span,
                f"`{expr.name.text}` says no index",
                f"write `{expr.name.text}[i](…)`: there are no implicit reductions",
            )
        )
    variables: list[IndexVar] = []
    fresh: dict[str, Local] = {}
    for binder in expr.binders:
        if not isinstance(binder, s.Name):
            scope.fail(names.not_index(binder.span, binder.span.text, f"`{expr.name.text}`"))
        found = env.find(binder.name)
        if isinstance(found, IndexVar) and env.is_parameter(binder.name):
            variables.append(found)
            continue
        if isinstance(found, Pack):
            variables += found.variables
            continue
        scope.check_index(binder)
        if binder.name in fresh:
            scope.fail(names.duplicate(binder.span, binder.name, None, "bound here"))
        var = draft.variable(binder.name, binder.span)
        fresh[binder.name] = var
        variables.append(var)
    return variables, env.inner(fresh)


def _attach(constraints: tuple[Int, ...], variables: list[IndexVar]) -> None:
    for var in variables:
        var.conditions += [c for c in constraints if var.name in c.free_indices()]


def _body(body: Value, monoid: Monoid, expr: s.Call, draft: Draft) -> Value:
    if monoid in ("any", "all"):
        return t.to_bool(body, draft.scope, expr.arguments[0].span)
    if body.dtype is BOOL:
        draft.scope.fail(
            values.mismatch(
                body.span or expr.span,
                f"`{expr.name.text}` of truth values",
                "count them with `sum[…](where(condition, 1, 0))`, or use `any` or `all`",
            )
        )
    return body


def _identity(expr: s.Call, monoid: Monoid, draft: Draft, env: Env) -> Value | None:
    if expr.otherwise is None:
        return None
    if monoid not in ("max", "min", "argmax", "argmin"):
        draft.scope.fail(
            forms.form(
                expr.otherwise.span,
                f"`{expr.name.text}` over nothing is already its identity",
                "remove the `else`",
            )
        )
    value = draft.lower(expr.otherwise, env)
    if monoid in ("argmax", "argmin"):
        if value.dtype.kind != "int":
            draft.scope.fail(
                values.mismatch(expr.otherwise.span, "the `else` of an arg-reduction is an index")
            )
        return t.widen(value, I64)
    if value.dtype is BOOL:
        t.to_float(value, draft.scope, expr.otherwise.span)
    return value


def _data_guard(domain: Domain, draft: Draft, env: Env) -> Value | None:
    guard: Value | None = None
    for condition in domain.rest:
        value = t.to_bool(draft.lower(condition, env), draft.scope, condition.span)
        guard = value if guard is None else t.binary("and", guard, value, condition.span)
    return guard


def _guarded(
    body: Value, guard: Value, monoid: Monoid, empty: Value | None, expr: s.Call, draft: Draft
) -> Value:
    """A condition on data: points that fail it contribute the identity."""
    span = expr.span
    if monoid in ("any", "all"):
        neutral: Value = Literal(value=monoid == "all", dtype=BOOL, span=span)
        return Select(condition=guard, a=body, b=neutral, dtype=BOOL, span=span)
    identity = _IDENTITY[monoid]
    if monoid in ("argmax", "argmin"):
        draft.scope.fail(
            values.condition(
                expr.conditions[0].span,
                expr.conditions[0].span.text,
                "an arg-reduction over chosen data is `argmax[i](where(condition, x, -inf))`",
                "cannot bound the domain of an arg-reduction",
            )
        )
    if monoid in ("max", "min"):
        if not (isinstance(empty, Literal) and empty.value == identity):
            place = expr.conditions[0].span
            draft.scope.fail(domains.may_select_nothing(place, monoid, place.text))
        body = t.to_float(body, draft.scope, span)
    outside: Value = Literal(value=identity, dtype=F32, span=span)
    if body.dtype.kind == "int":
        outside = Literal(value=int(identity), dtype=body.dtype, span=span)
    return Select(condition=guard, a=body, b=outside, dtype=body.dtype, span=span)


def _using(expr: s.Call, draft: Draft) -> str | None:
    if expr.using is None:
        return None
    if expr.using.text in draft.scope.dtypes:
        draft.scope.fail(names.dtype_parameter(expr.using.span, expr.using.text, USING))
    if expr.using.text not in USING:
        draft.scope.fail(names.unknown_dtype(expr.using.span, expr.using.text, USING))
    return expr.using.text


def _joined(*groups: tuple[Int, ...]) -> tuple[Int, ...]:
    return tuple(dict.fromkeys(c for group in groups for c in group))


def _extra(variables: list[IndexVar]) -> tuple[Int, ...]:
    return tuple(c for v in variables for c in v.extra)
