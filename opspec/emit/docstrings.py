"""What generated functions and kernels say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opspec.emit.costs import cost_lines
from opspec.emit.host import safe_doc, wrap_doc
from opspec.emit.signature import (
    KernelText,
)
from opspec.ir.dtypes import DTypeParam
from opspec.ir.program import Boundary, Op
from opspec.schedule.plan import Plan, Variant

if TYPE_CHECKING:
    pass


def kernel_doc(plan: Plan, variant: Variant, text: KernelText) -> str:
    """Roles in words, then what rewrites and laws did."""
    roles = variant.roles
    parts = [f"{a} in parallel" + (" by blocks" if a in roles.blocked else "") for a in roles.grid]
    parts += [f"{a} whole" for a in roles.tile]
    ways = {roles.laned: "streamed in steps and lanes", roles.kept: "one by one, kept in registers"}
    parts += [f"{a} {ways.get(a, 'streamed')}" for a in roles.stream]
    split = variant.split
    if split is not None and text.sizes:
        joined = len(text.sizes) == 1
        cut = (split.axis, *(axis for axis, _ in split.beside))
        parts = [p for p in parts if not joined or not p.startswith(tuple(f"{a} streamed" for a in cut))]
        named = " and ".join(cut)
        parts.append(f"parts of {named} joined" if joined else f"{named} in {split.splits} parts")
    lines = [f"{variant.program.variant.capitalize()}: " + ", ".join(parts or ["one program"]) + "."]
    if text.roles is not None:
        lines[0] = f"{lines[0][:-1]}; two groups of warps multiply what another warp brings."
    elif text.tiles:
        lines[0] = f"{lines[0][:-1]}; tiles move through descriptors."
    facts = [f"{r.statement}: {r.text}." for r in plan.rewrites] + [f"{n}." for n in variant.program.notes]
    if facts:
        lines += ["", *(w for f in facts for w in wrap_doc(f, "    ")), ""]
        return "\n".join([safe_doc(lines[0]), *lines[1:-1], "    "])
    return safe_doc(lines[0])


def function_doc(op: Op, boundary: Boundary, costs: dict[str, Any]) -> list[str]:
    """Mathematics, shapes and costs, indented for a function body; the first line without indent."""
    lines: list[str] = []
    doc = op.doc.strip() or f"The op `{op.name}`."
    lines += wrap_doc(doc, "    ")
    lines.append("")
    for kernel in boundary.kernels:
        lines.append(f"    kernel {kernel.name}:")
        for d in kernel.body:
            if d.kind != "temp" and d.span is not None:
                lines += wrap_doc("    " + " ".join(d.span.text.split()), "    ")
    lines.append("")
    for t in op.tensors:
        shape = ", ".join(map(str, t.extents))
        kind = (
            " | ".join(c.name for c in t.dtype.choices) if isinstance(t.dtype, DTypeParam) else t.dtype.name
        )
        name = t.dtype.name + " in " + kind if isinstance(t.dtype, DTypeParam) else kind
        role = {"in": "", "out": " (result)", "inout": " (updated in place)"}[t.role]
        lines += wrap_doc(f"{t.name}: [{shape}] {name}{role}", "    ")
    lines.append("")
    lines += [f"    {line}" for line in cost_lines(boundary, costs)]
    lines[0] = lines[0].strip()
    return lines
