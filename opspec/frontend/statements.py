"""One statement: its left-hand side, its value, its domain."""

from __future__ import annotations

from opspec.diagnostics import Note
from opspec.frontend import syntax as s
from opspec.frontend import typing as t
from opspec.frontend.drafts import Draft
from opspec.frontend.faults import domains, names, values
from opspec.frontend.finishing import Target, finish
from opspec.frontend.integer_exprs import conditions, integer, note_axes, plural
from opspec.frontend.lowering import lower
from opspec.frontend.scope import Env, IndexVar, Local, OpScope, Skip
from opspec.frontend.segments import bind_segments
from opspec.ir.dtypes import DTYPES, Storage
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Define, Output, Tensor
from opspec.ir.values import Reduce, Scan, walk


def statement(node: s.Statement, scope: OpScope) -> list[Define]:
    """The defines of a statement; reports, and raises Skip where nothing can be said."""
    name = node.name.text
    if name in scope.broken:
        raise Skip
    tensor = scope.tensors.get(name)
    define = _define_name(name, tensor, scope)
    draft = Draft(name, define if scope.parts.get(name, 1) > 1 else name, scope, lower)
    draft.root = node.value
    env, at = _left(node, tensor, draft)
    bind_segments(node, tensor, draft, env)
    bound = set(env.names)
    own: list[s.Expr | s.Interval] = []
    for condition in node.conditions:
        unknown = _unknown(condition, scope, env)
        if unknown:
            draft.loose.append((condition, frozenset(unknown | (_names(condition) & bound))))
        else:
            own.append(condition)
    domain = conditions(tuple(own), scope, env)
    for rest in domain.rest:
        scope.fail(values.condition(rest.span, rest.span.text))
    value = draft.lower(node.value, env)
    for k, (condition, unknown_names) in enumerate(draft.loose):
        if k not in draft.used:
            missing = min(unknown_names - bound)
            place = next(e for e in s.walk(condition) if isinstance(e, s.Name) and e.name == missing)
            scope.fail(names.unknown(place.span, missing, {*scope.names(), *bound}, "index or dim"))
    storage = _storage(node, tensor, scope)
    stored = tensor.dtype if tensor is not None else storage
    if stored is not None:
        kept = t.store(value, stored, scope, node.value.span, name)
        if kept is not value and isinstance(value, Reduce | Scan):  # it converts: name what it converts
            named = draft.temp(value.monoid, value, node.value.span)
            kept = t.store(named, stored, scope, node.value.span, name)
        value = kept
    for scan in walk(value):
        if isinstance(scan, Scan):
            _scan(scan, domain.constraints, draft)
    output = Output(tensor=name, at=at) if tensor is not None else None
    target = Target(
        define,
        tuple(v.name for v in env.names.values() if isinstance(v, IndexVar)),
        domain.constraints,
        storage,
        output,
        node.span,
    )
    before = len(scope.report)
    result = finish(draft, target, value)
    if any(d.severity == "error" for d in scope.report[before:]):
        raise Skip
    return result


def _define_name(name: str, tensor: Tensor | None, scope: OpScope) -> str:
    if tensor is None:
        return name
    if tensor.role == "inout":
        return f"{name}.new"
    if scope.parts.get(name, 1) == 1:
        return name
    return f"{name}.{len(scope.written.get(name, ())) + 1}"


def _left(node: s.Statement, tensor: Tensor | None, draft: Draft) -> tuple[Env, tuple[Int, ...]]:
    """Bind the indices of the left-hand side; where it writes."""
    scope, name = draft.scope, node.name.text
    if tensor is None:
        _check_new(node, scope)
    elif tensor.role == "in":
        scope.fail(
            domains.target(
                node.name.span,
                f"`{name}` is an input and cannot be written",
                f"declare it `inout {name}: …` to update it in place",
                Note("declared here", tensor.span),
            )
        )
    elif len(node.at) != len(tensor.extents):
        if not node.at:
            scope.fail(names.needs_indices(node.name.span, name, len(tensor.extents), tensor.span))
        scope.fail(
            names.arity(
                node.name.span,
                f"`{name}`",
                plural(len(tensor.extents), "index", "indices"),
                len(node.at),
                tensor.span,
            )
        )
    local: dict[str, Local] = {}
    known = scope.numbers()
    for index in node.at:
        for part in s.walk(index):
            if isinstance(part, s.Name) and part.name not in known and part.name not in local:
                if part.name in scope.broken:
                    raise Skip
                local[part.name] = draft.variable(part.name, part.span)
        if tensor is None:
            if not isinstance(index, s.Name):
                scope.fail(
                    names.not_index(
                        index.span, index.span.text, f"the left-hand side of the value `{name}`",
                        "only outputs are written at computed indices",
                    )
                )  # fmt: skip
            if index.name in known:
                scope.check_index(index)
    env = Env(local)
    if tensor is None:
        repeated = [i for k, i in enumerate(node.at) if i.span.text in {j.span.text for j in node.at[:k]}]
        if repeated:
            scope.fail(names.duplicate(repeated[0].span, repeated[0].span.text, node.at[0].span))
        return env, ()
    at = tuple(integer(i, scope, env) for i in node.at)
    note_axes(at, node.at, tensor.extents, name, env)
    _check_gathered(node, tensor, at, scope)
    return env, at


def _check_new(node: s.Statement, scope: OpScope) -> None:
    name = node.name.text
    if name in scope.defines:
        scope.fail(names.duplicate(node.name.span, name, scope.place_of(name)))
    if name in scope.dims or name in scope.derived or name in scope.scalars:
        scope.fail(names.duplicate(node.name.span, name, scope.place_of(name), scope.kind_of(name)))


def _check_gathered(node: s.Statement, tensor: Tensor, at: tuple[Int, ...], scope: OpScope) -> None:
    """Writes through data: only in place, and only where no two points can meet."""
    data = [(index, written) for index, written in zip(at, node.at, strict=True) if index.tensors()]
    covered = {n for index in at if not index.tensors() for n in index.free_indices()}
    for index, _ in data:
        if _one_to_one(index, scope):
            covered |= index.free_indices()
    for index, written in data:
        name = min(index.tensors())
        if tensor.role == "out":
            scope.fail(
                domains.target(
                    written.span,
                    f"`{tensor.name}` is an output, and a write through `{name}` may leave elements out",
                    f"declare `{tensor.name}` as `inout`: elements not written keep their values",
                )
            )
        if not index.free_indices() <= covered:
            scope.fail(domains.gathered(written.span, tensor.name, name))


def _one_to_one(index: Int, scope: OpScope) -> bool:
    """Whether different points give different values: one promised read, by bare indices, and an offset."""
    reads = [(a, c) for m, c in index.terms if len(m) == 1 for a, p in m if isinstance(a, Datum) and p == 1]
    if len(reads) != 1:
        return False
    (atom, _), *_ = reads
    rest = index - Int.of(atom) * reads[0][1]
    bare = {i.index for i in atom.indices}
    return atom.tensor in scope.distinct and not rest.free_indices() and Int.of(atom).free_indices() <= bare


def _storage(node: s.Statement, tensor: Tensor | None, scope: OpScope) -> Storage | None:
    if node.storage is None:
        return None
    found = t.storage(node.storage.text, scope)
    if found is None:
        scope.fail(names.unknown_dtype(node.storage.span, node.storage.text, {*DTYPES, *scope.dtypes}))
    if tensor is not None:
        scope.fail(
            domains.target(
                node.storage.span,
                f"`{tensor.name}` already has its dtype, `{tensor.dtype.name}`, in the signature",
                "remove the annotation",
            )
        )
    return found


def _scan(scan: Scan, constraints: tuple[Int, ...], draft: Draft) -> None:
    from opspec.ir.bounds import interval

    for c in constraints:
        if scan.index in c.free_indices():
            found = interval(scan.index, [c])
            side = None if found is None else found[1] if scan.reverse else found[0]
            if side is not None:
                # to end where the axis ends cuts nothing off
                axes = [a.upper - 1 for a in draft.variables[scan.index].axes]
                side = [b for b in side if b not in axes and (axes or not scan.reverse or b.free_indices())]
            if side is None or side:
                assert scan.span is not None
                draft.scope.fail(
                    domains.scan_order(
                        scan.span,
                        f"the domain cuts off where the scan over `{scan.index}` begins",
                        "restrict what is scanned in a statement of its own, and scan that",
                    )
                )


def _names(condition: s.Expr | s.Interval) -> set[str]:
    return {e.name for e in s.walk(condition) if isinstance(e, s.Name)}


def _unknown(condition: s.Expr | s.Interval, scope: OpScope, env: Env) -> set[str]:
    known = scope.names() | scope.broken
    return {n for n in _names(condition) if env.find(n) is None and n not in known}
