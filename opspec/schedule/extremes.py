"""Arg-reductions as a pair of states: the extreme value, and the lowest index at which it stands.

``argmax[n](x)`` is the least n at which x equals ``max[n](x)``. The maximum is a fold of its own,
shared with one that the spec writes over the same values, so that top-1 with its value is one sweep.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.integers import index
from opspec.ir.values import Literal, Monoid, Read
from opspec.schedule.exact import identity
from opspec.schedule.graph import Fold, Graph, Node
from opspec.schedule.rewrites import spelled_out

EXTREME: dict[Monoid, Monoid] = {"argmax": "max", "argmin": "min"}


def pair_extremes(graph: Graph) -> Graph:
    """Give every arg-reduction the fold of the extreme that it locates."""
    if not any(isinstance(n, Fold) and n.monoid in EXTREME for n in graph.nodes):
        return graph
    nodes: list[Node] = []
    folds = [n for n in graph.nodes if isinstance(n, Fold) and n.monoid in EXTREME.values()]
    for node in graph.nodes:
        if isinstance(node, Fold) and node.monoid in EXTREME:
            value = next((f for f in folds if _same(graph, f, node)), None)
            if value is None:
                monoid = EXTREME[node.monoid]
                dtype = node.body.dtype
                # over nothing the place has its own value, and the extreme needs none
                empty = None if node.empty is None else Literal(value=identity(monoid, dtype), dtype=dtype)
                value = replace(node, name=f"{node.name}.{monoid}", monoid=monoid, empty=empty, dtype=dtype)
                nodes.append(value)
                folds.append(value)
            read = Read(
                name=value.name, indices=tuple(index(a) for a in sorted(value.axes)), dtype=value.dtype
            )
            nodes.append(replace(node, extreme=read))
            continue
        nodes.append(node)
    paired = replace(graph, nodes=tuple(nodes))
    return replace(paired, nodes=paired.ordered(paired.by_name))


def _same(graph: Graph, extreme: Fold, place: Fold) -> bool:
    nodes = graph.by_name
    bodies = [spelled_out(f.body, nodes) for f in (extreme, place)]
    return (
        extreme.monoid == EXTREME[place.monoid]
        and set(extreme.over) == set(place.over)
        and bodies[0] == bodies[1]
        and set(extreme.constraints) == set(place.constraints)
    )
