"""Scans: over a whole axis in one block, or carried along a stream."""

from __future__ import annotations

from opspec.ir.integers import Int
from opspec.ir.values import Value
from opspec.schedule.graph import Prefix
from opspec.schedule.places import Places
from opspec.schedule.tile import Begin, Scan, Statement


class Prefixes(Places):
    """Statements that begin a carried prefix and scan a block."""

    def _begin_prefix(self, node: Prefix) -> Statement:
        axes = self._ordered(node.axes - {node.along})
        var = self._declare(self.names.fresh(f"{self.names.of(node.name)}_carried"), axes, node.dtype)
        self.running_prefix[node.name] = var
        return Begin(var=var, monoid=node.monoid)

    def _prefix(self, node: Prefix) -> list[Statement]:
        axes = self._ordered(node.axes)
        var = self._declare(self.names.of(node.name), axes, node.dtype)
        dims = self.roles.dims(node.along)
        assert len(dims) < 2
        scan = Scan(
            var=var,
            monoid=node.monoid,
            value=self._value(node.body),
            axes=axes,
            axis=node.along,
            along=dims[0] if dims else None,
            reverse=node.reverse,
            exclusive=node.exclusive,
            decay=None if node.decay is None else self._value(node.decay),
            carry=self.running_prefix.get(node.name),
            masks=self._prefix_masks(node),
        )
        self.ident[node.name] = var.name
        self.env[node.name] = var.read
        return [scan]

    def _prefix_masks(self, node: Prefix) -> tuple[Value, ...]:
        """What must add nothing. Behind the last point that is used it does not matter what is added."""
        masks = tuple(self._positive(c) for c in node.constraints if not self._ends(node, c))
        return (*self._in_range((node.along,)), *masks) if node.reverse else masks

    def _ends(self, node: Prefix, constraint: Int) -> bool:
        """Whether a constraint only says where a scan ends."""
        split = constraint.affine([node.along])
        slope = None if split is None else split[0][node.along].constant
        return slope is not None and (slope > 0) == node.reverse
