"""Folds: in one block, or carried along a stream with an online state where a law allows it."""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.dtypes import BOOL, F32, I64
from opspec.ir.integers import ZERO
from opspec.ir.values import Binary, BinaryOp, Compare, Extent, Literal, Read, Select, Value
from opspec.schedule.access import is_identity, plain, stored
from opspec.schedule.domain import nonempty
from opspec.schedule.graph import Fold, Load, Node
from opspec.schedule.laws import INFINITY, Law, between_states
from opspec.schedule.means import Means
from opspec.schedule.products import Product
from opspec.schedule.shifts import Shift
from opspec.schedule.tile import (
    Begin,
    Collapse,
    Combine,
    Let,
    Multiply,
    Operand,
    Precision,
    Remark,
    Statement,
    Var,
)


class Carry(Means):
    """Statements that begin, move on and finish a fold."""

    def _begin(self, node: Fold, states: set[str]) -> list[Statement]:
        # beside a block product the registers belong to its accumulator: reduce each chunk at once
        keep = bool(self.roles.products) or (node.name in states and self.roles.laned is None)
        full = self._ordered(node.axes | set(node.over))
        own = (".step", ".near")  # dimensions of a stream that one thread has
        lanes = () if keep else tuple(d for d in full if d in self._over(node) and not d.endswith(own))
        axes = tuple(d for d in full if d not in self._over(node) or d in lanes)
        product = self.roles.products.get(node.name)
        if product is not None:
            axes = (product.rows, product.columns)
        base = self.names.of(node.name)
        var = self._declare(self.names.fresh(f"{base}_lanes") if lanes else base, axes, node.dtype)
        self.carried[node.name] = var
        self.lanes[node.name] = lanes
        if not lanes:
            self.ident[node.name] = var.name
        out: list[Statement] = [Begin(var=var, monoid=node.monoid)]
        if self._has_mean(node.name):
            out += self._begin_count(node)
        if node.name in states and node.constraints and self._some(node) is None:
            # whether the domain has a point is known from the data alone: note each point that is met
            seen = self._declare(self.names.fresh(f"{base}_seen"), axes, F32)
            self.seen[node.name] = seen
            out.append(Begin(var=seen, monoid="max"))
        return out

    def _some(self, node: Fold) -> Value | None:
        """The condition under which a constrained fold has a point, if its indices tell."""
        return nonempty(node.over, self.extent, node.constraints)

    def _note_points(self, node: Fold, axes: tuple[str, ...], over: tuple[str, ...]) -> list[Statement]:
        """Mark that this step holds a point of the domain."""
        seen = self.seen.get(node.name)
        if seen is None:
            return []
        one, masks = Literal(value=1.0, dtype=F32), self._fold_masks(node)
        if not over:
            return [Combine(var=seen, monoid="max", value=one, masks=masks)]
        part = self._declare(self.names.fresh(f"{seen.name}_chunk"), seen.axes, F32)
        return [
            Collapse(var=part, monoid="max", value=one, axes=axes, over=over, masks=masks),
            Combine(var=seen, monoid="max", value=part.read),
        ]

    def _combine(self, node: Fold) -> list[Statement]:
        var = self.carried[node.name]
        law = self.laws.get(node.name)
        product = self.roles.products.get(node.name)
        out: list[Statement] = []
        if law is not None:
            scale = self._rescale(law)
            out += scale[1]
            scaled: Value = Binary(op="mul", a=var.read, b=scale[0], dtype=F32)
            if any(s.base == node.name for s in self.shifts.values()):
                before = self._declare(self.names.fresh(f"{var.name}_before"), var.axes, F32)
                self.running[law.state][f"before:{node.name}"] = before.name
                out.append(Let(var=before, value=scaled))
                scaled = before.read
            if node.name in self.shifts:
                shift = self.shifts[node.name]
                weights = self.vars[self.running[law.state][f"before:{shift.base}"]].read
                scaled = self._moved(shift, scaled, weights, out)
            out.append(Let(var=var, value=scaled))
        if product is not None:
            out.append(self._multiply(product, node, var, accumulate=True))
            return out
        moment, masks = self.moments.get(node.name), self._fold_masks(node, law)
        if moment is None:
            value = self._value(node.body)
        else:
            value, masks, more = self._about(node, moment, var, masks)
            out += more
        axes = self._ordered(node.axes | set(node.over))
        over = tuple(d for d in axes if d not in var.axes)
        lawful = any(known.state == node.name for known in self.laws.values())
        has_mean = self._has_mean(node.name)
        state = lawful or has_mean or node.name in self.located
        if not over and not state:
            out.append(Combine(var=var, monoid=node.monoid, value=value, masks=masks))
            return out
        part = self._declare(self.names.fresh(f"{var.name}_chunk"), var.axes, node.dtype)
        collapse = Collapse(var=part, monoid=node.monoid, value=value, axes=axes, over=over, masks=masks)
        if has_mean:
            collapse = self._counted(node, collapse)
        out.append(collapse)
        if lawful:
            out += self._note_points(node, axes, over)
            out += self._advance(node, var, part)
        elif has_mean:
            out += self._move_mean(node, var, collapse)
        elif state:
            # its place is moved on before it is
            op: BinaryOp = "max" if node.monoid == "max" else "min"
            moved = Binary(op=op, a=var.read, b=part.read, dtype=node.dtype)
            self.running[node.name] = {"old": var.name}
            self.pending.append(Let(var=var, value=moved))
        else:
            out.append(Combine(var=var, monoid=node.monoid, value=part.read))
        if state and not has_mean:
            self.running[node.name]["part"] = part.name
        return out

    def _advance(self, node: Fold, var: Var, part: Var) -> list[Statement]:
        """Move a running extreme on; points of this step see the new state, made finite for its identity."""
        new = self._declare(self.names.fresh(f"{var.name}_new"), var.axes, node.dtype)
        safe = self._declare(self.names.fresh(f"{var.name}_safe"), var.axes, node.dtype)
        op: BinaryOp = "max" if node.monoid == "max" else "min"
        identity = Literal(value=INFINITY[op], dtype=F32)
        at_identity = Compare(op="eq", a=new.read, b=identity, dtype=BOOL)
        zero = Literal(value=0.0, dtype=F32)
        self.running[node.name] = {"old": var.name, "safe": safe.name}
        self.env[node.name] = safe.read
        self.pending.append(Let(var=var, value=new.read))
        return [
            Let(var=new, value=Binary(op=op, a=var.read, b=part.read, dtype=F32)),
            Remark(text="before the first finite value the state has no mass: keep exp(-inf - -inf) out"),
            Let(var=safe, value=Select(condition=at_identity, a=zero, b=new.read, dtype=F32)),
        ]

    def _rescale(self, law: Law) -> tuple[Value, list[Statement]]:
        """The factor of a law at this step; computed once for all folds that share it."""
        state = self.running[law.state]
        key = f"scale:{law.text}"
        if key in state:
            return self.vars[state[key]].read, []
        old, new = self.vars[state["old"]].read, self.vars[state["safe"]].read

        var = self._declare(self.names.fresh("scale"), self.vars[state["old"]].axes, F32)
        state[key] = var.name
        return var.read, [Let(var=var, value=between_states(law.factor, old, new))]

    def _moved(self, shift: Shift, value: Value, weights: Value, out: list[Statement]) -> Value:
        """A sum brought from the old states to the new ones: what they moved, times the weights met so far."""
        for state, number in shift.moves:
            running = self.running[state]
            if "moved" not in running:
                old, new = self.vars[running["old"]], self.vars[running["safe"]]
                moved = self._declare(self.names.fresh(f"{old.name}_moved"), old.axes, F32)
                running["moved"] = moved.name
                out.append(Let(var=moved, value=_less(new.read, _finite(old.read, self.nodes[state]))))
            value = _plus(value, number, self.vars[running["moved"]].read, weights)
        return value

    def _gather_moved(self, shift: Shift, value: Value, weights: Value, out: list[Statement]) -> Value:
        """The same from the states of each lane to those of all."""
        for state, number in shift.moves:
            running = self.running[state]
            if "gathered" not in running:
                lanes, final = self.lane_states[state]
                node = self.nodes[state]
                moved = self._declare(self.names.fresh(f"{lanes.name}_apart"), lanes.axes, F32)
                running["gathered"] = moved.name
                distance = _less(_finite(final.read, node), _finite(lanes.read, node))
                out.append(Let(var=moved, value=distance))
            value = _plus(value, number, self.vars[running["gathered"]].read, weights)
        return value

    def _finish(self, node: Fold) -> list[Statement]:
        """After the stream: gather lanes, and give an all-identity row what IEEE gives."""
        var = self.carried.pop(node.name)
        lanes = self.lanes.pop(node.name)
        law = self.laws.pop(node.name, None)
        moment = self.moments.get(node.name)
        out: list[Statement] = []
        final = var
        if lanes:
            final = self._declare(
                self.names.of(node.name), tuple(a for a in var.axes if a not in lanes), node.dtype
            )
            value: Value = var.read
            if law is not None and law.state in self.lane_states:
                factor, more = self._gather_factor(law)
                out += more
                if node.name in self.shifts:
                    shift = self.shifts[node.name]
                    weights = self.lane_states[shift.base][0].read
                    value = self._gather_moved(shift, value, weights, out)
                value = Binary(op="mul", a=value, b=factor, dtype=F32)
            if moment is not None:
                value, more = self._gather_moment(moment, value)
                out += more
            out.append(Collapse(var=final, monoid=node.monoid, value=value, axes=var.axes, over=lanes))
            self.lane_states[node.name] = (var, final)
            if node.name in self.seen:
                seen = self.seen[node.name]
                any_lane = self._declare(self.names.fresh(f"{final.name}_met"), final.axes, F32)
                out.append(Collapse(var=any_lane, monoid="max", value=seen.read, axes=seen.axes, over=lanes))
                self.seen[node.name] = any_lane
        if law is not None and law.at_identity_nan:
            state = self.nodes[law.state]
            assert isinstance(state, Fold)
            identity = Literal(value=INFINITY[state.monoid], dtype=F32)
            test: Value = Compare(op="eq", a=self.vars[self.ident[law.state]].read, b=identity, dtype=BOOL)
            some = self._some(state) if state.constraints else None
            if law.state in self.seen:
                one = Literal(value=1.0, dtype=F32)
                met = Compare(op="eq", a=self.seen[law.state].read, b=one, dtype=BOOL)
                test = Binary(op="and", a=test, b=met, dtype=BOOL)
            elif some is not None:
                test = Binary(op="and", a=test, b=self._value(some), dtype=BOOL)
            elif not state.constraints:
                extents = [Extent(value=self.extent[a], dtype=I64) for a in state.over]
                for e in extents:
                    zero = Extent(value=ZERO, dtype=I64)
                    test = Binary(op="and", a=test, b=Compare(op="gt", a=e, b=zero, dtype=BOOL), dtype=BOOL)
            nan = Literal(value=float("nan"), dtype=F32)
            out.append(Remark(text="a row without a finite value is what IEEE arithmetic makes of it"))
            out.append(Let(var=final, value=Select(condition=test, a=nan, b=final.read, dtype=F32)))
        self.ident[node.name] = final.name
        self.env[node.name] = final.read
        if node.empty is not None and not is_identity(node):
            out += self._empty(node, final)
        return out

    def _gather_factor(self, law: Law) -> tuple[Value, list[Statement]]:
        """The factor that brings each lane of a fold to the state of all lanes; once for all that share it."""
        state = self.running[law.state]
        key = f"gather:{law.text}"
        if key in state:
            return self.vars[state[key]].read, []
        lanes, final = self.lane_states[law.state]
        node = self.nodes[law.state]
        assert isinstance(node, Fold)
        identity = Literal(value=INFINITY[node.monoid], dtype=F32)
        at_identity = Compare(op="eq", a=final.read, b=identity, dtype=BOOL)
        safe = self._declare(self.names.fresh(f"{final.name}_safe"), final.axes, F32)
        zero = Literal(value=0.0, dtype=F32)
        moved = between_states(law.factor, lanes.read, safe.read)
        var = self._declare(self.names.fresh("scale"), lanes.axes, F32)
        state[key] = var.name
        return var.read, [
            Remark(text="bring every lane to the state of all"),
            Let(var=safe, value=Select(condition=at_identity, a=zero, b=final.read, dtype=F32)),
            Let(var=var, value=moved),
        ]

    def _fold(self, node: Fold) -> list[Statement]:
        product = self.roles.products.get(node.name)
        if product is not None:
            var = self._declare(self.names.of(node.name), (product.rows, product.columns), node.dtype)
            out: list[Statement] = [self._multiply(product, node, var, accumulate=False)]
        else:
            axes = self._ordered(node.axes | set(node.over))
            over = tuple(d for d in axes if d in self._over(node))
            var = self._declare(self.names.of(node.name), tuple(a for a in axes if a not in over), node.dtype)
            masks = self._fold_masks(node, self._known_law(node))
            value = self._value(node.body)
            out = [Collapse(var=var, monoid=node.monoid, value=value, axes=axes, over=over, masks=masks)]
        self.ident[node.name] = var.name
        self.env[node.name] = var.read
        if node.empty is not None and not is_identity(node):
            out += self._empty(node, var)
        return out

    def _multiply(self, product: Product, node: Fold, var: Var, *, accumulate: bool) -> Statement:
        masks = self._fold_masks(node, axes=False)
        # both operands where both can: a point outside the domain then adds 0, whatever it holds
        a = self._operand(product.a, (product.rows, product.k), product, masks)
        b = self._operand(product.b, (product.k, product.columns), product, masks)
        if node.dtype is F32:
            # no integer is infinite
            a = replace(a, apart=tuple(m for m in masks if m in a.masks and m not in b.masks))
            b = replace(b, apart=tuple(m for m in masks if m in b.masks and m not in a.masks))
        precision: Precision = "tf32" if node.using == "tf32" else "ieee"
        return Multiply(var=var, a=a, b=b, accumulate=accumulate, precision=precision)

    def _operand(
        self, value: Value, axes: tuple[str, str], product: Product, masks: tuple[Value, ...]
    ) -> Operand:
        usable = tuple(m for m in masks if self._mask_axes(m) <= set(axes) | self._scalars())
        loaded = plain(value)
        computed = not (isinstance(loaded, Read) and isinstance(self.nodes[loaded.name], Load))
        if computed:
            usable = (*self._in_range((product.k,)), *usable)
        kept = self.env.get(stored(loaded.name)) if isinstance(loaded, Read) else None
        return Operand(value=kept or self._value(value), axes=axes, cast=product.cast, masks=usable)


def _finite(state: Value, node: Node) -> Value:
    """A state as the points beside it saw it: 0 where it is still its identity."""
    assert isinstance(node, Fold)
    identity = Literal(value=INFINITY[node.monoid], dtype=F32)
    at_identity = Compare(op="eq", a=state, b=identity, dtype=BOOL)
    return Select(condition=at_identity, a=Literal(value=0.0, dtype=F32), b=state, dtype=F32)


def _less(a: Value, b: Value) -> Value:
    return Binary(op="sub", a=a, b=b, dtype=F32)


def _plus(value: Value, number: float, moved: Value, weights: Value) -> Value:
    part = Binary(op="mul", a=moved, b=weights, dtype=F32)
    if abs(number) != 1:
        part = Binary(op="mul", a=Literal(value=number, dtype=F32), b=part, dtype=F32)
        return Binary(op="add", a=value, b=part, dtype=F32)
    return Binary(op="add" if number > 0 else "sub", a=value, b=part, dtype=F32)
