"""Syntax → ``Int``: extents, indices, bounds and the conditions of domains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import names, values
from opspec.frontend.faults.naming import short
from opspec.frontend.scope import Axis, Env, IndexVar, OpScope, Pack, Skip
from opspec.ir.dtypes import choices
from opspec.ir.integers import ONE, Datum, Index, Int, dim, floor_div, greatest, least, mod
from opspec.ir.values import Extent, Literal, Read, Value
from opspec.source import Span

MAX_TERMS = 400
MAX_ATOMS = 1_000  # in the operands of a division, nested ones included


class NotInteger(Exception):
    """The expression is none of dims, indices and integers; carries the fault to report, and the declaration that
    is its cause where one is: what else that makes wrong is not told again."""

    def __init__(self, diagnostic: Diagnostic, cause: str = "") -> None:
        super().__init__(diagnostic.message)
        self.diagnostic, self.cause = diagnostic, cause


def integer(expr: s.Expr, scope: OpScope, env: Env) -> Int:
    """The expression as an ``Int``, or a report and Skip."""
    try:
        return try_integer(expr, scope, env)
    except NotInteger as e:
        if e.cause in scope.blamed:
            raise Skip from e
        if e.cause:
            scope.blamed.add(e.cause)
        scope.fail(e.diagnostic)


def try_integer(expr: s.Expr, scope: OpScope, env: Env) -> Int:
    """The expression as an ``Int``; raises NotInteger without reporting."""
    match expr:
        case s.Number(value=int(value)):
            return Int.of(value)
        case s.Number():
            raise _not(expr, "is not an integer")
        case s.Name():
            return _name(expr, scope, env)
        case s.Prefix(op="-", x=x):
            return -try_integer(x, scope, env)
        case s.Prefix(op="+", x=x):
            return try_integer(x, scope, env)
        case s.Infix(op="**", a=a, b=s.Number(value=int(power))) if 0 <= power <= 64:
            base, result = try_integer(a, scope, env), ONE
            _small(expr, len(base.terms) ** min(power, 8))
            for _ in range(power):
                result = result * base
            return result
        case s.Infix(op="+" | "-" | "*" | "//" | "%" as op, a=a, b=b):
            return _arithmetic(expr, op, try_integer(a, scope, env), try_integer(b, scope, env))
        case s.Infix(op="/"):
            raise _not(expr, "is not an integer", "an integer division is written `//`")
        case s.Call(name=s.Ident(text="min" | "max" as f), binders=None, arguments=arguments) if arguments:
            args = [try_integer(a, scope, env) for a in arguments]
            return least(*args) if f == "min" else greatest(*args)
        case s.Subscript():
            return _datum(expr, scope, env)
        case _:
            raise _not(expr, "is no integer of dims and indices")


def _arithmetic(expr: s.Infix, op: str, x: Int, y: Int) -> Int:
    if is_wide(op, x, y):
        raise _not(expr, "has too many terms")
    match op:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
    if y.constant is not None and y.constant <= 0:
        raise NotInteger(values.integer(expr.b.span, expr.b.span.text, "is not a positive divisor"))
    return floor_div(x, y) if op == "//" else mod(x, y)


def is_wide(op: str, x: Int, y: Int) -> bool:
    """Whether the result has more terms, or a division more inside of it, than proofs are tried on."""
    if op in ("//", "%"):
        return sum(1 for _ in islice(chain(x.atoms(), y.atoms()), MAX_ATOMS + 1)) > MAX_ATOMS
    return (len(x.terms) * len(y.terms) if op == "*" else len(x.terms) + len(y.terms)) > MAX_TERMS


def _small(expr: s.Expr, terms: int) -> None:
    if terms > MAX_TERMS:
        raise _not(expr, "has too many terms")


def _name(expr: s.Name, scope: OpScope, env: Env) -> Int:
    local = env.find(expr.name)
    if isinstance(local, IndexVar):
        return Int.of(Index(local.name))
    if isinstance(local, Pack):
        raise NotInteger(names.several(expr.span, expr.name))
    if local is not None:
        found = value_to_integer(local)
        if found is None or any(n not in scope.tensors for n in found.tensors()):
            raise _not(expr, "is a value, not an integer of dims and indices")
        return found
    if not env.is_closed:
        if expr.name in scope.derived:
            return scope.derived[expr.name]
        if expr.name in scope.dims:
            return dim(expr.name)
        if expr.name in scope.scalars:
            raise _not(
                expr, "is a scalar parameter, which cannot bound or index anything", "declare it as a dim"
            )
        if expr.name in scope.broken:
            raise Skip
        tensor = scope.tensors.get(expr.name)
        if tensor is not None and not tensor.extents and choices(tensor.dtype)[0].kind != "float":
            return Int.of(Datum(expr.name, ()))
        if tensor is not None or expr.name in scope.defines:
            raise _not(expr, "is a tensor, not an integer of dims and indices")
    raise NotInteger(names.unknown(expr.span, expr.name, candidates(scope, env)))


def candidates(scope: OpScope, env: Env) -> set[str]:
    """Names that could have been meant."""
    return {*env.visible(), *(() if env.is_closed else scope.names())}


def value_to_integer(value: Value) -> Int | None:
    """A value that is an integer of dims, indices and integer tensors, as such."""
    match value:
        case Extent(value=v):
            return v
        case Literal(value=int(v)) if not isinstance(v, bool):
            return Int.of(v)
        case Read(name=name, indices=indices, otherwise=None, dtype=dtype) if dtype.kind == "int":
            return Int.of(Datum(name, indices))
        case _:
            return None


def _picked(text: str) -> str:
    return (
        f"pick an element by it with `sum[k](where(k == {short(text)}, …, 0))`, or compute it in an op before this one "
        "and take it as a parameter of integers"
    )


def _datum(expr: s.Subscript, scope: OpScope, env: Env) -> Int:
    local = env.find(expr.name.text)
    if env.is_closed or not (local is None or isinstance(local, IndexVar)):
        raise _not(expr, "is no integer of dims and indices")
    tensor = scope.tensors.get(expr.name.text)
    if tensor is None:
        if expr.name.text in scope.broken:
            raise Skip
        if expr.name.text in scope.defines:
            why = "is computed; an index or bound is read from an input tensor"
            raise _not(expr, why, _picked(expr.span.text), scope.defines[expr.name.text].span)
        raise NotInteger(names.unknown(expr.name.span, expr.name.text, candidates(scope, env)))
    if choices(tensor.dtype)[0].kind == "float":
        why = f"is read from a tensor of `{tensor.dtype.name}`, not of integers"
        raise _not(expr, why, f"declare `{tensor.name}` as `i32` or `i64`", tensor.span)
    if tensor.role != "in":
        why = "is read from an output; an index or bound is read from an input tensor"
        raise _not(expr, why, _picked(expr.span.text), tensor.span)
    if expr.otherwise is not None:
        raise _not(expr, "has an `else`, which an index or bound cannot have")
    if len(expr.indices) != len(tensor.extents):
        raise NotInteger(
            names.arity(
                expr.span,
                f"`{tensor.name}`",
                plural(len(tensor.extents), "index", "indices"),
                len(expr.indices),
                tensor.span,
            )
        )
    at = tuple(try_integer(i, scope, env) for i in expr.indices)
    note_axes(at, expr.indices, tensor.extents, tensor.name, env, weak=True)
    return Int.of(Datum(tensor.name, at))


def plural(n: int, one: str, many: str) -> str:
    """``1 index``, ``2 indices``."""
    return f"{n} {one if n == 1 else many}"


def note_axes(
    at: tuple[Int, ...],
    written: tuple[s.Expr, ...],
    extents: tuple[Int, ...],
    name: str,
    env: Env,
    *,
    weak: bool = False,
) -> None:
    """Tell each index that stands bare on an axis which extent it has there."""
    for k, (index, expr, extent) in enumerate(zip(at, written, extents, strict=True)):
        words = f"axis {k} of `{name}`" if len(extents) > 1 else f"`{name}`"
        if index.index is None:
            _note_offset(index, expr, Axis(extent, words, expr.span, weak), env)
            continue
        var = _variable(expr, env)
        if var is not None:
            var.axes.append(Axis(extent, words, expr.span, weak))


def _note_offset(index: Int, expr: s.Expr, axis: Axis, env: Env) -> None:
    """Tell an index that stands on an axis with an offset of dims alone, or with a factor of it, about that axis."""
    found = {
        v.name: v
        for part in s.walk(expr)
        if isinstance(part, s.Name) and (v := _variable(part, env)) is not None
    }
    if index.tensors():
        return
    for name, var in found.items():
        rest = index - Int.of(Index(name))
        if not rest.free_indices():
            var.beside.append(axis)
            continue
        factor = next((c for m, c in index.terms if m == ((Index(name), 1),)), 0)
        if factor > 1 and (part := floor_div(axis.upper, Int.of(factor))) * factor == axis.upper:
            var.beside.append(replace(axis, upper=part, whole=axis.upper))


def _variable(expr: s.Expr, env: Env) -> IndexVar | None:
    local = env.find(expr.name) if isinstance(expr, s.Name) else None
    return local if isinstance(local, IndexVar) else None


@dataclass(frozen=True, slots=True)
class Domain:
    """Conditions as expressions that are ``>= 0``, and those on data that stay conditions."""

    constraints: tuple[Int, ...]
    rest: tuple[s.Expr, ...]


def conditions(given: tuple[s.Expr | s.Interval, ...], scope: OpScope, env: Env) -> Domain:
    """Split conditions into those that bound a domain and those on data."""
    constraints: list[Int] = []
    rest: list[s.Expr] = []
    for condition in given:
        if isinstance(condition, s.Interval):
            n = integer(condition.index, scope, env)
            lower, upper = integer(condition.lower, scope, env), integer(condition.upper, scope, env)
            found = [n - lower, upper - 1 - n]
            scope.places.update(dict.fromkeys(found, condition.span))
            constraints += found
            continue
        try:
            found = _bounds(condition, scope, env)
            scope.places.update(dict.fromkeys(found, condition.span))
            constraints += found
        except NotInteger as e:
            if e.diagnostic.code.code in ("OP201", "OP207"):
                scope.fail(e.diagnostic)
            rest.append(condition)
    return Domain(tuple(constraints), tuple(rest))


def _bounds(condition: s.Expr, scope: OpScope, env: Env) -> list[Int]:
    match condition:
        case s.Infix(op="and", a=a, b=b):
            return [*_bounds(a, scope, env), *_bounds(b, scope, env)]
        case s.Chain(first=first, rest=rest):
            result: list[Int] = []
            left = try_integer(first, scope, env)
            for op, expr in rest:
                right = try_integer(expr, scope, env)
                result += comparison(op, left, right) or _refuse(condition)
                left = right
            return result
        case s.Subscript(name=name) if _is_bool(name.text, scope):
            return [_datum(condition, scope, env) - 1]
        case s.Prefix(op="not", x=s.Subscript(name=name) as x) if _is_bool(name.text, scope):
            return [-_datum(x, scope, env)]
        case _:
            return _refuse(condition)


def _refuse(condition: s.Expr) -> list[Int]:
    raise NotInteger(values.condition(condition.span, condition.span.text))


def _is_bool(name: str, scope: OpScope) -> bool:
    tensor = scope.tensors.get(name)
    return tensor is not None and choices(tensor.dtype)[0].kind == "bool"


def comparison(op: str, a: Int, b: Int) -> list[Int]:
    """A comparison as expressions ``>= 0``; empty if it is not a conjunction of such."""
    match op:
        case "<" | "lt":
            return [b - a - 1]
        case "<=" | "le":
            return [b - a]
        case ">" | "gt":
            return [a - b - 1]
        case ">=" | "ge":
            return [a - b]
        case "==" | "eq":
            return [a - b, b - a]
        case _:
            return []


def _not(expr: s.Expr, why: str, help: str = "", declared: Span | None = None) -> NotInteger:
    cause = "" if not isinstance(expr, s.Subscript) or declared is None else expr.name.text
    return NotInteger(values.integer(expr.span, expr.span.text, why, help, declared), cause)
