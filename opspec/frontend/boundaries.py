"""Rule 13 and rule 8: other groupings of an op's statements, and what crosses kernels."""

from __future__ import annotations

from dataclasses import replace

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import grouping, names
from opspec.ir.program import Boundary, Define, Kernel, Op
from opspec.ir.values import Read, walk
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
    faults = misordered(boundary)
    report += faults
    if not faults:
        ops[node.op.text] = replace(op, boundaries=(*op.boundaries, boundary))


def misordered(boundary: Boundary) -> list[Diagnostic]:
    """Kernels that read what a later one defines."""
    home = {d.name: k.name for k in boundary.kernels for d in k.body}
    place = {k.name: n for n, k in enumerate(boundary.kernels)}
    reads = {k.name: {home[r] for d in k.body for r in read_names(d) if r in home} for k in boundary.kernels}
    found: list[Diagnostic] = []
    for kernel in boundary.kernels:
        assert kernel.span is not None
        for define in kernel.body:
            for name in read_names(define):
                other = home.get(name)
                if other is None or place[other] <= place[kernel.name]:
                    continue
                if kernel.name in reads[other]:
                    return [grouping.tangled(kernel.span, kernel.name, other)]
                found.append(grouping.order(kernel.span, kernel.name, name, other))
    return found[:1]


def read_names(define: Define) -> tuple[str, ...]:
    """What a define reads, in order, each once."""
    return tuple(dict.fromkeys(v.name for v in walk(define.value) if isinstance(v, Read)))


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
