"""What of a launch's arguments makes another binary, and what need not."""

from __future__ import annotations

from opspec.emit.signature import KernelText, identifiers, pointer, stride
from opspec.ir.integers import Int
from opspec.ir.program import Op, Tensor
from opspec.schedule.graph import Load
from opspec.schedule.plan import Plan


def unspecialised(op: Op, plan: Plan, text: KernelText) -> tuple[str, ...]:
    """Parameters that Triton need not know more of than that they are numbers: dims along no tensor's last axis.

    Knowing that 16 divides a dim makes wide loads possible under a mask, which matters along memory. A batch or
    a length elsewhere would only compile a binary for 1, for multiples of 16 and for the rest. A block
    product that loads by address may be given either layout, so there nothing is left out; tiles that move
    through descriptors need no such knowledge. Nor do strides above rows whose length is left out.
    """
    names, parts = identifiers(op), text.sizes[:1]
    products = any(v.roles.products for v in plan.variants)
    tensors = plan.variants[0].program.tensors
    if not products:
        wide = [
            t for t in tensors if len(t.extents) > 1
        ] or tensors  # a label or a weight a row is read beside these
        fast = {d for t in wide if t.extents for d in _base(op, t.extents[-1])}
        return (*(names[d] for d in op.dims if d not in fast), *parts)
    if not text.tiles and len(text.sizes) != 1:
        return parts
    split = plan.variants[-1].split
    addressed = [t for t in (*tensors, *(split.parts if split else ())) if pointer(t.name) in text.params]
    whole = [_dims_of(op, t) for t in op.tensors]
    # what is loaded along a stream is loaded often, a vector of scales too
    streamed = {
        n.tensor
        for n in plan.graph.nodes
        if isinstance(n, Load) and n.at and n.at[-1].index in plan.variants[-1].roles.stream
    }
    fast = {
        d
        for t in addressed
        if len(t.extents) > 1 and (t.name in streamed or not any(_dims_of(op, t) < w for w in whole))
        for d in _base(op, t.extents[-1])
    }
    above = [
        stride(t, i)
        for t in addressed
        if not _base(op, t.extents[-1]) & fast
        for i in range(len(t.extents) - 1)
    ]
    return (*(names[d] for d in op.dims if d not in fast), *parts, *above)


def _dims_of(op: Op, tensor: Tensor) -> set[str]:
    """The declared dims in a tensor's extents."""
    return {d for e in tensor.extents for d in _base(op, e)} & set(op.dims)


def _base(op: Op, extent: Int) -> set[str]:
    """Declared dims in an extent, through derived ones."""
    derived = dict(op.derived)
    found: set[str] = set()
    for d in extent.dims():
        found |= _base(op, derived[d]) if d in derived else {d}
    return found
