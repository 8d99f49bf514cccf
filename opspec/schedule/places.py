"""Where an extreme stands: the index of an arg-reduction, found once or moved on along a stream.

Along a stream the place goes beside the extreme. A step takes it over where its own extreme beats
the running one, so that the lowest of equal indices stays; a NaN beats everything but a NaN.
"""

from __future__ import annotations

from opspec.ir.dtypes import BOOL, F32, I64
from opspec.ir.integers import index
from opspec.ir.values import Binary, Cast, Compare, Extent, Read, Select, Unary, Value
from opspec.schedule.access import Access
from opspec.schedule.domain import nonempty
from opspec.schedule.graph import Fold
from opspec.schedule.refuse import unfusable
from opspec.schedule.tile import Begin, Let, Locate, Statement, Var


class Places(Access):
    """Statements that begin, move on, finish and find the index of an extreme."""

    def _begin_place(self, node: Fold) -> Statement:
        extreme = self._extreme(node)
        state = self.carried[extreme.name]
        base = self.names.of(node.name)
        var = self._declare(self.names.fresh(f"{base}_at"), state.axes, I64)
        self.carried[node.name] = var
        self.lanes[node.name] = self.lanes[extreme.name]
        return Begin(var=var, monoid=node.monoid, nowhere=self.extent[node.over[0]])

    def _move_place(self, node: Fold) -> list[Statement]:
        """Take this step's place over where its extreme beats the running one."""
        extreme, var = self._extreme(node), self.carried[node.name]
        running = self.running[extreme.name]
        part, old = (self.vars[running[k]].read for k in ("part", "old"))
        chunk = self._declare(self.names.fresh(f"{var.name}_chunk"), var.axes, I64)
        found = self._locate(node, chunk, part, self._fold_masks(extreme))
        better = self._beats(node, part, old)
        nowhere = Compare(op="eq", a=var.read, b=self._nowhere(node), dtype=BOOL)
        test = Binary(op="or", a=better, b=nowhere, dtype=BOOL)
        moved = Select(condition=test, a=chunk.read, b=var.read, dtype=I64)
        return [found, Let(var=var, value=moved)]

    def _beats(self, node: Fold, new: Value, old: Value) -> Value:
        if new.dtype is not F32:
            return Compare(op="gt" if node.monoid == "argmax" else "lt", a=new, b=old, dtype=BOOL)
        no_better = Compare(op="le" if node.monoid == "argmax" else "ge", a=new, b=old, dtype=BOOL)
        number = Compare(op="eq", a=old, b=old, dtype=BOOL)
        return Binary(op="and", a=Unary(op="not", x=no_better, dtype=BOOL), b=number, dtype=BOOL)

    def _finish_place(self, node: Fold) -> list[Statement]:
        """After the stream: the least place among the lanes that hold the extreme of all."""
        var, lanes = self.carried.pop(node.name), self.lanes.pop(node.name)
        out: list[Statement] = []
        if lanes:
            states, whole = self.lane_states[self._extreme(node).name]
            all_lanes = self._declare(self.names.fresh(f"{var.name}_all"), whole.axes, I64)
            out.append(
                Locate(
                    var=all_lanes,
                    monoid=self._extreme(node).monoid,
                    value=states.read,
                    extreme=whole.read,
                    at=var.read,
                    nowhere=self.extent[node.over[0]],
                    axes=var.axes,
                    over=lanes,
                )
            )
            var = all_lanes
        return out + self._settle_place(node, var)

    def _find_place(self, node: Fold) -> list[Statement]:
        """The place of an extreme that is known.

        Padding that holds the extreme's identity needs no mask: every index behind the edge is higher.
        """
        extreme = self._extreme(node)
        axes = self._ordered(node.axes | set(node.over))
        kept = tuple(d for d in axes if d not in self._over(node))
        var = self._declare(self.names.fresh(f"{self.names.of(node.name)}_at"), kept, I64)
        known = self.env[extreme.name]
        return [
            self._locate(node, var, known, self._fold_masks(extreme)),
            *self._settle_place(node, var),
        ]

    def _settle_place(self, node: Fold, var: Var) -> list[Statement]:
        """The place as a value of the language, 64 bits wide."""
        final = self._declare(self.names.of(node.name), var.axes, I64)
        wide = Cast(to=I64, x=var.read, implicit=True, dtype=I64)
        self.ident[node.name] = final.name
        self.env[node.name] = final.read
        out: list[Statement] = [Let(var=final, value=wide)]
        if node.empty is not None:
            out += self._empty(node, final)
        return out

    def _locate(self, node: Fold, var: Var, extreme: Value, masks: tuple[Value, ...]) -> Statement:
        axes = self._ordered(node.axes | set(node.over))
        return Locate(
            var=var,
            monoid=self._extreme(node).monoid,
            value=self._value(node.body),
            extreme=extreme,
            at=Extent(value=index(node.over[0]), dtype=I64),
            nowhere=self.extent[node.over[0]],
            axes=axes,
            over=tuple(d for d in axes if d not in var.axes),
            masks=masks,
        )

    def _extreme(self, node: Fold) -> Fold:
        assert isinstance(node.extreme, Read)
        found = self.nodes[node.extreme.name]
        assert isinstance(found, Fold)
        return found

    def _nowhere(self, node: Fold) -> Value:
        return Extent(value=self.extent[node.over[0]], dtype=I64)

    def _empty(self, node: Fold, var: Var) -> list[Statement]:
        assert node.empty is not None
        test = nonempty(node.over, self.extent, node.constraints)
        if test is None:
            raise unfusable(
                f"whether `{node.define.origin}` reduces over nothing can't be told from its indices",
                node.define.span,
                help="declare what it gives over nothing anyhow, `else -inf` of a max and `else inf` of a min, and "
                "say what shall stand there in a `where` behind it",
            )
        value = Select(condition=self._value(test), a=var.read, b=self._value(node.empty), dtype=node.dtype)
        return [Let(var=var, value=value)]
