"""Rule 11: a tensor updated in place is read at the point that is written."""

from __future__ import annotations

from opspec.frontend.faults import domains
from opspec.frontend.scope import OpScope
from opspec.ir.program import Define
from opspec.ir.values import Read, Reduce, Value, operands


def check_in_place(defines: list[Define], scope: OpScope) -> None:
    """Report reads of a neighbour in the kernel that updates a tensor."""
    root = defines[-1]
    assert root.output is not None
    tensor = scope.tensors[root.output.tensor]
    if tensor.role != "inout":
        return
    here = [d for d in scope.defines.values() if scope.homes.get(d.name) == scope.kernel]
    for define in here:
        _visit(define.value, root, tensor.name, frozenset(), scope)


def _visit(value: Value, root: Define, name: str, bound: frozenset[str], scope: OpScope) -> None:
    if isinstance(value, Read) and value.name == name and root.output is not None:
        pairs = list(zip(value.indices, root.output.at, strict=True))
        same = [a == b for a, b in pairs]
        swept = all(
            ok or (a.index is not None and a.index in bound) for ok, (a, _) in zip(same, pairs, strict=True)
        )
        if not all(same) and not (swept and any(same)):
            place = value.span or root.span
            assert place is not None
            scope.report.append(domains.elsewhere(place, name, root.span))
    if isinstance(value, Reduce):
        bound |= {r.index for r in value.ranges}
    for child in operands(value):
        _visit(child, root, name, bound, scope)
