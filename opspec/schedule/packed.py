"""Writing i4: two elements share a byte, so both must be written by one program, at once.

A result is written in i4 where one statement writes all of it along its last axis, index by index, and that
index is the last dimension of the block. Reading needs nothing of the kind.
"""

from __future__ import annotations

from opspec.ir.dtypes import I4
from opspec.schedule.axis_order import axis_order
from opspec.schedule.graph import Graph, Store
from opspec.schedule.refuse import unsupported
from opspec.schedule.roles import Roles


def packed_axes(graph: Graph) -> dict[str, str]:
    """The axis along which each store in i4 goes. Raises ``Failure`` where a byte may be shared."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if not isinstance(node, Store) or graph.block.tensor(node.tensor).dtype != I4:
            continue
        tensor = graph.block.tensor(node.tensor)
        axis = node.at[-1].index if node.at else None
        alone = sum(isinstance(n, Store) and n.tensor == node.tensor for n in graph.nodes) == 1
        if (
            axis is None
            or not alone
            or tensor.role != "out"
            or graph.block.axis(axis).extent != tensor.extents[-1]
            or any(axis in c.free_indices() for c in node.constraints)
        ):
            raise unsupported(
                f"`{node.tensor}` is stored in i4 and written in parts, so that two of them may share a byte",
                node.define.span,
            )
        found[node.name] = axis
    return found


def keeps_bytes_together(graph: Graph, roles: Roles) -> bool:
    """Whether the programs of a variant hold both elements of every byte that they write."""
    order = axis_order(graph)
    for name, axis in packed_axes(graph).items():
        node = graph.node(name)
        dims = [d for a in order if a in node.axes for d in roles.dims(a)]
        if not dims or dims[-1] not in roles.dims(axis):
            return False
    return True
