"""One op: its head, its kernels, and the rules that hold across statements."""

from __future__ import annotations

from collections.abc import Mapping

from opspec.diagnostics import Diagnostic
from opspec.frontend import coverage, signature
from opspec.frontend import syntax as s
from opspec.frontend.boundaries import read_names
from opspec.frontend.drafts import MAX_DEPTH
from opspec.frontend.faults import domains, grouping, names
from opspec.frontend.faults import syntax as forms
from opspec.frontend.faults.naming import in_statement, nearest
from opspec.frontend.inplace import check_in_place
from opspec.frontend.scope import OpScope, Skip
from opspec.frontend.statements import statement
from opspec.ir.dtypes import DTypeParam
from opspec.ir.facts import facts
from opspec.ir.program import Assume, Boundary, Define, Kernel, Op, Require

MAX_FAULTS = 100  # of all ops of a file; what follows is not looked at


def operator(
    node: s.OpDecl,
    functions: Mapping[str, s.Function],
    library: Mapping[str, s.Function],
    dtypes: Mapping[str, DTypeParam],
    report: list[Diagnostic],
) -> Op | None:
    """The checked op; None if anything in it was refused (all of it is reported)."""
    before = len(report)
    scope = OpScope(node.name.text, report, functions, library)
    scope.dtypes.update(dtypes)
    for item in node.items:
        if isinstance(item, s.DtypeDecl):
            param = signature.dtype_param(item, scope)
            if param is not None:
                scope.dtypes[param.name] = param
    signature.declare_dims(node, scope)
    requires, assumes, parameters = _declarations(node, scope)
    scope.facts = facts(requires, assumes)
    kernels = _kernels(node, scope)
    if not node.results and not any(p.inout for p in node.parameters):
        scope.report.append(domains.no_result(node.name.span, node.name.text))
    elif kernels:
        _check_outputs(node, scope)
    if any(d.severity == "error" for d in report[before:]):
        return None
    used = {t.dtype.name for t in scope.tensors.values()} | {
        d.storage.name for d in scope.defines.values() if d.storage is not None
    }
    return Op(
        name=node.name.text,
        doc=node.doc,
        dims=tuple(scope.dims),
        derived=tuple(scope.derived.items()),
        dtype_params=tuple(
            d
            for d in scope.dtypes.values()
            if isinstance(d, DTypeParam) and (d.name in used or _cast_to(d, kernels))
        ),
        tensors=tuple(scope.tensors.values()),
        scalars=tuple(scope.scalars.values()),
        parameters=parameters,
        requires=tuple(requires),
        assumes=tuple(assumes),
        boundaries=(Boundary(name="", kernels=kernels, span=node.span),),
        span=node.span,
    )


def _cast_to(param: DTypeParam, kernels: tuple[Kernel, ...]) -> bool:
    from opspec.ir.values import Cast, walk

    return any(isinstance(v, Cast) and v.to == param for k in kernels for d in k.body for v in walk(d.value))


def _declarations(node: s.OpDecl, scope: OpScope) -> tuple[list[Require], list[Assume], tuple[str, ...]]:
    """Derived dims first, since extents may use them; then parameters; then conditions."""
    requires: list[Require] = []
    assumes: list[Assume] = []
    for item in node.items:
        if isinstance(item, s.Binding):
            try:
                signature.derive(item, scope)
            except Skip:
                scope.broken.add(item.name.text)
    parameters = signature.declare_parameters(node, scope)
    for item in node.items:
        try:
            if isinstance(item, s.RequireDecl):
                requires += signature.requirements(item, scope)
            elif isinstance(item, s.AssumeDecl):
                assumes += signature.promises(item, scope)
        except Skip:
            continue
    return requires, assumes, parameters


def _kernels(node: s.OpDecl, scope: OpScope) -> tuple[Kernel, ...]:
    blocks = [i for i in node.items if isinstance(i, s.KernelBlock)]
    for item in node.items:
        if isinstance(item, s.Statement):
            scope.report.append(grouping.outside(item.name.span, item.name.text))
            scope.broken.add(item.name.text)
    if not blocks and not any(isinstance(i, s.Statement) for i in node.items):
        scope.report.append(grouping.no_kernel(node.name.span, node.name.text))
    for block in blocks:
        for st in block.statements:
            name = st.name.text
            scope.parts[name] = scope.parts.get(name, 0) + 1
            if name not in scope.tensors and name not in scope.dims:
                scope.promised.add(name)
    scope.promised -= {*scope.derived, *scope.scalars}
    seen: dict[str, s.Ident] = {}
    kernels: list[Kernel] = []
    for block in blocks:
        if block.name.text in seen:
            scope.report.append(names.duplicate(block.name.span, block.name.text, seen[block.name.text].span))
        seen.setdefault(block.name.text, block.name)
        scope.kernel = block.name.text
        kernels.append(
            Kernel(name=block.name.text, body=_body(block, scope), schedule=block.schedule, span=block.span)
        )
    return tuple(kernels)


def _body(block: s.KernelBlock, scope: OpScope) -> tuple[Define, ...]:
    body: list[Define] = []
    for node in block.statements:
        before = len(scope.report)
        if before > MAX_FAULTS:
            scope.broken.add(node.name.text)
            continue
        try:
            defines = statement(node, scope)
        except (Skip, RecursionError) as e:
            if isinstance(e, RecursionError):
                scope.report.append(forms.too_deep(node.span, MAX_DEPTH))
            scope.report[before:] = [in_statement(d, node.span) for d in scope.report[before:]]
            scope.broken.add(node.name.text)
            scope.promised.discard(node.name.text)
            continue
        root = defines[-1]
        for d in defines:
            scope.defines[d.name] = d
            scope.homes[d.name] = block.name.text
        if root.output is not None:
            scope.written.setdefault(root.output.tensor, []).append(root)
            check_in_place(defines, scope)
        body += defines
    return tuple(body)


def _check_outputs(node: s.OpDecl, scope: OpScope) -> None:
    places = {p.name.text: p.name.span for p in (*node.results, *node.parameters)}
    for tensor in scope.tensors.values():
        if tensor.role == "in" or tensor.name in scope.broken:
            continue
        writers = scope.written.get(tensor.name, [])
        place = places[tensor.name]
        if not writers:
            near = _misnamed(tensor.name, scope)
            scope.report.append(
                domains.never(place, tensor.name, near.name if near else "", near.span if near else None)
            )
        elif tensor.role == "inout" and len(writers) > 1:
            scope.report.append(domains.updated_twice(writers[1].span or place, tensor.name, writers[0].span))
        else:
            scope.report += coverage.check(tensor, writers, scope.facts, place, scope.places)


def _misnamed(output: str, scope: OpScope) -> Define | None:
    """A value that nothing reads and that may have been meant to be the output."""
    read = {n for d in scope.defines.values() for n in read_names(d)}
    unread = (d for d in scope.defines.values() if d.output is None and d.name not in read)
    return next((d for d in unread if nearest(d.name, (output,))), None)
