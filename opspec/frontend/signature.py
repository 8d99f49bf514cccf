"""The head of an op: dims, dtypes, parameters, results, requirements, promises."""

from __future__ import annotations

from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.builtins import RESERVED
from opspec.frontend.faults import names, values
from opspec.frontend.faults import syntax as forms
from opspec.frontend.faults.naming import nearest
from opspec.frontend.integer_exprs import integer
from opspec.frontend.scope import Env, IndexVar, OpScope, Skip
from opspec.ir.dtypes import DTYPES, DType, DTypeParam, Storage, choices
from opspec.ir.program import Assume, Require, ScalarParam, Tensor

MAX_RANK = 32
_OPS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def dtype_param(node: s.DtypeDecl, scope: OpScope) -> DTypeParam | None:
    """A dtype parameter, or None after a report."""
    name = node.name.text
    if name in DTYPES:
        scope.report.append(names.duplicate(node.name.span, name, None, "a dtype of the language"))
        return None
    found: list[DType] = []
    for choice in node.choices:
        dtype = DTYPES.get(choice.text)
        if dtype is None:
            scope.report.append(names.unknown_dtype(choice.span, choice.text, DTYPES))
        elif found and dtype.kind != found[0].kind:
            scope.report.append(
                values.mismatch(
                    choice.span, f"`{name}` mixes floats and integers", "declare two dtype parameters"
                )
            )
        elif dtype in found:
            first = next(c for c in node.choices if c.text == choice.text)
            scope.report.append(names.duplicate(choice.span, choice.text, first.span))
        else:
            found.append(dtype)
    return DTypeParam(name, tuple(found)) if found else None


def declare_dims(node: s.OpDecl, scope: OpScope) -> None:
    """The dims in the square brackets."""
    for dim in node.dims:
        if check_name(dim, scope, "a dim"):
            scope.dims[dim.text] = dim.span


def check_name(name: s.Ident, scope: OpScope, what: str) -> bool:
    """Whether a name may be declared: free, and no word of the language."""
    if name.text in RESERVED:
        scope.report.append(forms.reserved(name.span, name.text, what))
        scope.broken.add(name.text)
        return False
    if name.text in scope.names():
        scope.report.append(names.duplicate(name.span, name.text, scope.place_of(name.text)))
        return False
    if name.text in scope.dtypes or name.text in DTYPES:
        scope.report.append(names.duplicate(name.span, name.text, None, "a dtype"))
        return False
    return True


def declare_parameters(node: s.OpDecl, scope: OpScope) -> tuple[str, ...]:
    """Tensors and scalars; the order of the signature."""
    order: list[str] = []
    for p in node.parameters:
        if not check_name(p.name, scope, "a parameter"):
            continue
        try:
            if p.extents is None:
                _scalar(p, scope)
            else:
                _tensor(p, scope, role="inout" if p.inout else "in")
            order.append(p.name.text)
        except Skip:
            scope.broken.add(p.name.text)
    for r in node.results:
        if not check_name(r.name, scope, "a result"):
            continue
        try:
            _tensor(r, scope, role="out")
        except Skip:
            scope.broken.add(r.name.text)
    return tuple(order)


def _dtype(p: s.Parameter, scope: OpScope) -> Storage:
    found = t.storage(p.dtype.text, scope)
    if found is None:
        scope.fail(names.unknown_dtype(p.dtype.span, p.dtype.text, {*DTYPES, *scope.dtypes}))
    return found


def _tensor(p: s.Parameter, scope: OpScope, role: str) -> None:
    dtype = _dtype(p, scope)
    if p.extents is None:
        scope.fail(
            forms.form(
                p.span,
                f"result `{p.name.text}` has no extents",
                f"a single number is `{p.name.text}: {p.dtype.text}[]`",
            )
        )
    if p.default is not None:
        scope.fail(values.default(p.default.span, p.name.text, "tensor"))
    if len(p.extents) > MAX_RANK:
        scope.fail(forms.form(p.span, f"`{p.name.text}` has {len(p.extents)} axes; the limit is {MAX_RANK}"))
    extents = tuple(integer(e, scope, Env({})) for e in p.extents)
    for extent, written in zip(extents, p.extents, strict=True):
        if extent.tensors():
            scope.fail(
                values.integer(written.span, written.span.text, "depends on data; an extent is made of dims")
            )
        if extent.constant is not None and extent.constant <= 0:
            scope.fail(values.integer(written.span, written.span.text, "is not a positive extent"))
    scope.tensors[p.name.text] = Tensor(
        name=p.name.text, dtype=dtype, extents=extents, role=role, span=p.span  # type: ignore[arg-type]
    )  # fmt: skip


def _scalar(p: s.Parameter, scope: OpScope) -> None:
    dtype = _dtype(p, scope)
    if isinstance(dtype, DTypeParam) or (dtype.bits not in (32, 64) and dtype.name != "bool"):
        scope.fail(
            values.mismatch(
                p.dtype.span, f"a scalar parameter is `f32`, `i32`, `i64` or `bool`, not `{dtype.name}`"
            )
        )
    if p.inout:
        scope.fail(values.mismatch(p.span, "a scalar cannot be `inout`", "make it a tensor"))
    default = None if p.default is None else _default(p, dtype, scope)
    scope.scalars[p.name.text] = ScalarParam(name=p.name.text, dtype=dtype, default=default, span=p.span)


def _default(p: s.Parameter, dtype: DType, scope: OpScope) -> float | int | bool:
    assert p.default is not None
    value = _literal(p.default)
    wrong = (
        value is None
        or isinstance(value, bool) != (dtype.kind == "bool")
        or (dtype.kind == "int" and not isinstance(value, int))
        or (dtype.kind == "int" and not -(2 ** (dtype.bits - 1)) <= value < 2 ** (dtype.bits - 1))
    )
    if wrong or value is None:
        scope.fail(values.default(p.default.span, p.name.text, dtype.name))
    return float(value) if dtype.kind == "float" else value


def _literal(expr: s.Expr) -> float | int | bool | None:
    match expr:
        case s.Number(value=value):
            return value
        case s.Name(name="inf" | "nan" as name):
            return float(name)
        case s.Name(name="true" | "false" as name):
            return name == "true"
        case s.Prefix(op="-", x=x):
            inner = _literal(x)
            return None if inner is None or isinstance(inner, bool) else -inner
        case _:
            return None


def derive(node: s.Binding, scope: OpScope) -> None:
    """``let C = D // 2``."""
    if not check_name(node.name, scope, "a derived dim"):
        raise Skip
    try:
        value = integer(node.value, scope, Env({}))
    except Skip:
        scope.broken.add(node.name.text)
        raise
    if value.tensors():
        scope.broken.add(node.name.text)
        scope.fail(
            values.integer(
                node.value.span, node.value.span.text, "depends on data; a derived dim is made of dims"
            )
        )
    scope.derived[node.name.text] = value


def requirements(node: s.RequireDecl, scope: OpScope) -> list[Require]:
    """``require`` as conditions on dims."""
    result: list[Require] = []
    for condition in node.conditions:
        for part in _conjuncts(condition):
            if not isinstance(part, s.Chain):
                scope.fail(values.condition(part.span, part.span.text, "write a comparison of dims"))
            left = integer(part.first, scope, Env({}))
            for op, expr in part.rest:
                right = integer(expr, scope, Env({}))
                if left.tensors() or right.tensors():
                    scope.fail(
                        values.on_data(
                            part.span,
                            part.span.text,
                            "`require` is about shapes; a promise about data is `assume`",
                        )
                    )
                result.append(
                    Require(op=_OPS[op], left=left, right=right, text=part.span.text, span=part.span)  # type: ignore[arg-type]
                )
                left = right
    return result


def _conjuncts(expr: s.Expr) -> list[s.Expr]:
    if isinstance(expr, s.Infix) and expr.op == "and":
        return [*_conjuncts(expr.a), *_conjuncts(expr.b)]
    return [expr]


def promises(node: s.AssumeDecl, scope: OpScope) -> list[Assume]:
    """``assume distinct(slot), len[b] <= T``."""
    result: list[Assume] = []
    for condition in node.conditions:
        match condition:
            case s.Call(name=s.Ident(text="distinct"), arguments=(s.Name(name=name, span=span),)):
                tensor = scope.tensors.get(name)
                if tensor is None:
                    scope.fail(names.unknown(span, name, scope.tensors, "tensor"))
                if choices(tensor.dtype)[0].kind != "int":
                    scope.fail(values.mismatch(span, f"`{name}` holds no integers that could be distinct"))
                scope.distinct.add(name)
                result.append(Assume(kind="distinct", tensor=name, span=condition.span))
            case s.Chain():
                result += _bounds(condition, scope)
            case _:
                help_ = "a promise is `distinct(slot)` or a bound like `len[b] <= T`"
                if isinstance(condition, s.Call):
                    help_ = nearest(condition.name.text, ("distinct",)) or help_
                scope.fail(values.condition(condition.span, condition.span.text, help_))
    return result


def _bounds(condition: s.Chain, scope: OpScope) -> list[Assume]:
    local: dict[str, IndexVar] = {}
    for part in s.walk(condition):
        if isinstance(part, s.Subscript):
            for index in part.indices:
                for name in s.walk(index):
                    if isinstance(name, s.Name) and name.name not in scope.names():
                        local.setdefault(name.name, IndexVar(name.name, name.name, name.span, [], []))
    env = Env(dict(local))
    values_ = [integer(x, scope, env) for x in (condition.first, *(e for _, e in condition.rest))]
    result: list[Assume] = []
    for k, (op, _) in enumerate(condition.rest):
        a, b = values_[k], values_[k + 1]
        slacks = {
            "<": [b - a - 1], "<=": [b - a], ">": [a - b - 1], ">=": [a - b], "==": [a - b, b - a], "!=": [],
        }[op]  # fmt: skip
        tensors = sorted(a.tensors() | b.tensors())
        if len(tensors) != 1 or not slacks:
            scope.fail(
                values.condition(
                    condition.span,
                    condition.span.text,
                    "a promise bounds the elements of one integer tensor: `len[b] <= T`",
                )
            )
        result += [
            Assume(kind="bound", tensor=tensors[0], slack=slack, span=condition.span) for slack in slacks
        ]
    return result
