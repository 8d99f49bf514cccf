"""Syntax → values: what a name or a subscript refers to."""

from __future__ import annotations

from opspec.diagnostics import Note
from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.builtins import CONSTANTS
from opspec.frontend.drafts import Draft
from opspec.frontend.faults import domains, names, values
from opspec.frontend.faults import syntax as forms
from opspec.frontend.faults.naming import nearest
from opspec.frontend.integer_exprs import candidates, integer, note_axes, plural
from opspec.frontend.scope import Env, IndexVar, OpScope, Pack, Skip
from opspec.ir.bounds import equal
from opspec.ir.dtypes import BOOL, compute_dtype
from opspec.ir.integers import Index, Int, dim
from opspec.ir.program import Define, Tensor
from opspec.ir.values import (
    Read,
    Scalar,
    Value,
)


def name_value(expr: s.Name, draft: Draft, env: Env) -> Value:
    """The value of a bare name."""
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
    return (
        not env.is_closed
        and len(expr.name) == 1
        and expr.name.islower()
        and not nearest(expr.name, (c for c in candidates(draft.scope, env) if len(c) > 1))
    )


def read_value(expr: s.Subscript, draft: Draft, env: Env) -> Value:
    """The value of ``x[i, j]``."""
    scope, name = draft.scope, expr.name.text
    local = env.find(name)
    if local is not None and not (
        isinstance(local, IndexVar) and name in scope.names() and not env.is_closed
    ):
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
    note_axes(tuple(at), written, extents, name, env, weak=otherwise is not None)
    scope.written_indices[expr.span] = tuple(i.span for i in written)
    other: Value | None = None
    if otherwise is not None:
        other = draft.lower(otherwise, env)
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
