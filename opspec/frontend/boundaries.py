"""Rule 13 and rule 8: other groupings of an op's statements, and what crosses kernels."""

from __future__ import annotations

from dataclasses import replace

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import grouping, names
from opspec.ir.program import Boundary, Define, Kernel, Op
from opspec.ir.values import Range, Read, walk
from opspec.source import Span


def add(node: s.BoundaryDecl, ops: dict[str, Op | None], report: list[Diagnostic], *, complete: bool) -> None:
    """Check a boundary and add it to its op."""
    if node.op.text not in ops:
        if complete:
            report.append(names.unknown(node.op.span, node.op.text, ops, "op"))
        return
    op = ops[node.op.text]
    if op is None:
        return
    if node.name.text in {b.name for b in op.boundaries}:
        report.append(names.duplicate(node.name.span, node.name.text, None))
        return
    origins = list(dict.fromkeys(d.origin for d in op.defines))
    home: dict[str, tuple[str, Span]] = {}
    fine = True
    kernels: dict[str, list[str]] = {}
    for kernel, members in node.groups:
        if kernel.text in kernels:
            report.append(names.duplicate(kernel.span, kernel.text, None))
            fine = False
        kernels[kernel.text] = []
        for member in members:
            if member.text not in origins:
                report.append(names.unknown(member.span, member.text, origins, "statement"))
                fine = False
            elif member.text in home:
                report.append(grouping.repeated(member.span, member.text, home[member.text][1]))
                fine = False
            else:
                home[member.text] = (kernel.text, member.span)
                kernels[kernel.text].append(member.text)
    missing = [o for o in origins if o not in home]
    if missing and fine:
        report.append(grouping.left_out(node.name.span, node.name.text, missing))
        fine = False
    if not fine:
        return
    spans = {kernel.text: kernel.span for kernel, _ in node.groups}
    groups = tuple(
        Kernel(name=name, body=tuple(d for d in op.defines if d.origin in members), span=spans[name])
        for name, members in kernels.items()
    )
    boundary = Boundary(name=node.name.text, kernels=groups, analysis=node.analysis, span=node.span)
    faults = misordered(boundary, op)
    report += faults
    if not faults:
        ops[node.op.text] = replace(op, boundaries=(*op.boundaries, boundary))


def misordered(boundary: Boundary, op: Op) -> list[Diagnostic]:
    """Kernels that read what a later one defines, or that would see a tensor before or after its update
    where the op as written does not.
    """
    home = {d.name: k.name for k in boundary.kernels for d in k.body}
    place = {k.name: n for n, k in enumerate(boundary.kernels)}
    needs = _needs(op)
    found: list[Diagnostic] = []
    for kernel in boundary.kernels:
        assert kernel.span is not None
        for define in kernel.body:
            for name, apart in needs[define.name]:
                other = home[name]
                if place[other] < place[kernel.name] or (other == kernel.name and not apart):
                    continue
                if other == kernel.name:
                    return [grouping.together(kernel.span, kernel.name, _written(name, op), define.origin)]
                back = any(home[n] == kernel.name for d in _body(boundary, other) for n, _ in needs[d.name])
                if back:
                    return [grouping.tangled(kernel.span, kernel.name, other)]
                found.append(grouping.order(kernel.span, kernel.name, _written(name, op), other))
    return found[:1]


def _body(boundary: Boundary, kernel: str) -> tuple[Define, ...]:
    return next(k.body for k in boundary.kernels if k.name == kernel)


def _written(name: str, op: Op) -> str:
    define = next(d for d in op.defines if d.name == name)
    return define.output.tensor if define.output is not None else define.origin


def _needs(op: Op) -> dict[str, list[tuple[str, bool]]]:
    """For each define the defines that come before it; True: in another kernel, since it reads memory."""
    result: dict[str, list[tuple[str, bool]]] = {d.name: [] for d in op.defines}
    writers = [d for d in op.defines if d.output is not None]
    values = {d.name for d in writers if _whole(d, op)}
    seen: set[str] = set()
    for define in op.defines:
        for name in read_names(define):
            if name in result:
                result[define.name].append((name, False))
            if name in values:
                continue
            for w in writers:
                if w.output is None or w.output.tensor != name:
                    continue
                if w.name in seen:
                    result[define.name].append((w.name, True))
                elif w.name != define.name:
                    result[w.name].append((define.name, False))
        seen.add(define.name)
    return result


def _whole(define: Define, op: Op) -> bool:
    """Whether a statement bears the name of the result that it alone writes, so that whoever reads the
    name reads its value and not the memory behind it.
    """
    to = define.output
    if to is None or to.tensor != define.name or define.constraints:
        return False
    tensor = op.tensor(to.tensor)
    whole = tuple(Range(index=r.index, upper=r.upper) for r in define.ranges) == define.ranges
    alone = sum(d.output is not None and d.output.tensor == to.tensor for d in op.defines) == 1
    extents = tuple(r.upper for r in define.ranges)
    bare = tuple(i.index for i in to.at) == define.indices
    return (
        tensor is not None and tensor.role == "out" and whole and alone and bare and extents == tensor.extents
    )


def read_names(define: Define) -> tuple[str, ...]:
    """What a define reads, in order, each once."""
    return tuple(dict.fromkeys(v.name for v in walk(define.value) if isinstance(v, Read)))


def unused(op: Op) -> list[Diagnostic]:
    """Warnings for values that no statement reads."""
    read = {n for d in op.defines for n in read_names(d)}
    return [
        grouping.unused(d.span, d.name)
        for d in op.defines
        if d.kind == "value" and d.output is None and d.name not in read and d.span is not None
    ]


def crossings(op: Op) -> list[Diagnostic]:
    """Warnings for values that leave their kernel without a storage dtype (once per value)."""
    found: dict[str, Diagnostic] = {}
    for boundary in op.boundaries:
        home = {d.name: (k.name, d) for k in boundary.kernels for d in k.body}
        for kernel in boundary.kernels:
            for define in kernel.body:
                for value in walk(define.value):
                    if not isinstance(value, Read) or value.name not in home:
                        continue
                    where, source = home[value.name]
                    unsaid = source.storage is None and source.output is None
                    if where != kernel.name and unsaid and source.span is not None and source.kind == "value":
                        found.setdefault(
                            source.name,
                            grouping.crossing(source.span, source.name, kernel.name, value.span),
                        )
    return list(found.values())
