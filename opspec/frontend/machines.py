"""Checks of machine blocks."""

from __future__ import annotations

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults import names
from opspec.frontend.faults.naming import listing, nearest
from opspec.frontend.measures import quantity
from opspec.frontend.stages import Scope
from opspec.ir.composition import MachineBlock, MachineValue
from opspec.ir.machine_keys import key_of, known


def machine(node: s.MachineDecl, scope: Scope, earlier: set[str]) -> MachineBlock | None:
    """Check a machine block; ``earlier`` are the machines that it may be like."""
    report = scope.report
    before = len(report)
    name = node.name.text
    if node.like is None:
        help_ = "write `machine NAME like h100 { … }` and state what differs"
        report.append(faults.machine(node.name.span, f"machine `{name}` is like no other", help_))
    elif node.like.text not in earlier:
        report.append(names.unknown(node.like.span, node.like.text, earlier, "machine"))
    values: dict[str, MachineValue] = {}
    for d in node.values:
        made = _value(d, report)
        if d.key in values:
            report.append(names.duplicate(d.span, d.key, values[d.key].span))
        elif made is not None:
            values[d.key] = made
    if not node.values:
        report.append(faults.machine(node.name.span, f"machine `{name}` states no value"))
    if len(report) > before or node.like is None:
        return None
    return MachineBlock(
        name=name, doc=node.doc, like=node.like.text, values=tuple(values.values()), span=node.span
    )


def _value(node: s.MachineValueDecl, report: list[Diagnostic]) -> MachineValue | None:
    before = len(report)
    tensor = node.key.startswith("tensor.")
    key = key_of(node.key)
    if key is None:
        help_ = nearest(node.key, known()) or f"keys: {listing(known(), 30)}"
        report.append(faults.machine(node.span, f"`{node.key}` is not a property of a machine", help_))
        return None
    found = quantity(node.value, report)
    wanted = key.unit
    if found is not None and found[1] != wanted:
        has = f"in {found[1]}" if found[1] else "without a unit"
        report.append(
            faults.machine(
                node.value.span,
                f"`{node.key}` is {f'in {wanted}' if wanted else 'a plain number'}, not {has}",
            )
        )
    elif found is not None and not key.low <= found[0] <= key.high:
        span = node.value.span
        help_ = f"{key.about}: from {key.low:g} to {key.high:g} {wanted}".rstrip()
        report.append(faults.machine(span, f"`{span.text}` is no plausible `{node.key}`", help_))
    if tensor and not node.dense:
        report.append(
            faults.machine(
                node.span,
                f"`{node.key}` does not say that it is dense: a sparse peak is no roof",
                "write `= 989.4 TFLOP/s dense …`",
            )
        )
    if node.dense and not tensor:
        report.append(
            faults.machine(node.span, f"`{node.key}` is neither dense nor sparse", "leave out `dense`")
        )
    if not node.origin.text.strip():
        report.append(
            faults.machine(
                node.origin.span,
                f"`{node.key}` does not say its source",
                f'write `{node.origin.word} "where"`',
            )
        )
    if len(report) > before or found is None:
        return None
    source = node.origin.text if node.origin.word == "from" else f"{node.origin.word}: {node.origin.text}"
    return MachineValue(key=node.key, value=found[0], dense=node.dense, source=source, span=node.span)
