"""The block that a kernel is scheduled as, and what is refused before anything of it is placed.

``check`` asks the second alone: joining the indices of a block is cheap, an order of its loops is not.
"""

from __future__ import annotations

from opspec.diagnostics import Diagnostic, Failure
from opspec.ir.program import Boundary, Kernel, Module, Op
from opspec.ir.values import Read, walk
from opspec.schedule.applied import Applied
from opspec.schedule.block import Block, build_block
from opspec.schedule.constants import make_apart
from opspec.schedule.select import select_elements


def whole_block(op: Op, boundary: Boundary, kernel: Kernel) -> tuple[Block, tuple[Applied, ...]]:
    """A kernel over one set of axes, and what was rewritten to have it. Raises ``Failure`` where none fits."""
    elsewhere = {
        n.name
        for k in boundary.kernels
        if k.name != kernel.name
        for d in k.body
        for n in walk(d.value)
        if isinstance(n, Read)
    }
    kernel, apart = make_apart(kernel, elsewhere)
    kernel, selected = select_elements(kernel)
    return build_block(op, boundary, kernel), (*apart, *selected)


def refusals(module: Module) -> tuple[Diagnostic, ...]:
    """Why kernels can't be blocks of one launch, in groupings that are not marked as analysis."""
    found: list[Diagnostic] = []
    for op in module.ops:
        for boundary in op.boundaries:
            for kernel in () if boundary.analysis else boundary.kernels:
                try:
                    whole_block(op, boundary, kernel)
                except Failure as failure:
                    found += failure.diagnostics
    return tuple(found)
