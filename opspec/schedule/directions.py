"""Which way a stream runs: from its end where a reverse scan goes along it, else from its start."""

from __future__ import annotations

from opspec.schedule.graph import Fold, Graph, Prefix, Store


def prefixes(graph: Graph, axis: str | None = None) -> list[Prefix]:
    """The scans of a block, or those along one axis."""
    return [n for n in graph.nodes if isinstance(n, Prefix) and axis in (None, n.along)]


def both_ways(graph: Graph, axis: str) -> bool:
    """Whether one result needs scans from both ends of an axis at once: no order of chunks serves it."""
    directions = {n.reverse for n in prefixes(graph, axis)}
    if len(directions) < 2:
        return False
    nodes = graph.by_name
    found: dict[str, frozenset[bool]] = {}
    for node in graph.nodes:
        own: set[bool] = set()
        for dep in graph.deps(node):
            fold = nodes[dep]
            if not (isinstance(fold, Fold) and axis in fold.over):
                own |= found[dep]
        if isinstance(node, Prefix) and node.along == axis:
            own.add(node.reverse)
        if len(own) > 1 and isinstance(node, Fold | Store | Prefix):
            return True
        found[node.name] = frozenset(own)
    return False
