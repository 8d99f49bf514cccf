"""Sums about a mean that is still running: carried as counts, sums and co-moments.

At each step of a stream the sums of x and y move on; the co-moment is brought from the old means to the
new ones (``moments``), and the points of the step are added about the new means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from opspec.ir.dtypes import BOOL, F32
from opspec.ir.values import Binary, Literal, Select, Unary, Value
from opspec.schedule.graph import Fold, Graph
from opspec.schedule.moments import Moment, same_domain
from opspec.schedule.names import Names
from opspec.schedule.prefixes import Prefixes
from opspec.schedule.roles import Roles
from opspec.schedule.tile import Begin, Collapse, Combine, Let, Remark, Statement, Var

ONE = Literal(value=1.0, dtype=F32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Of one step of a stream: the count before it, and for each sum its new mean and how far that moved."""

    count: Value
    mean: Value
    moved: Value


def mean_of(total: Value, count: Value) -> Value:
    """A sum divided by its count; 0 where nothing was counted."""
    return Binary(op="mul", a=total, b=inverse_of(count), dtype=F32)


def inverse_of(count: Value) -> Value:
    """The reciprocal of a count, and of 1 where that is 0."""
    return Unary(op="reciprocal", x=Binary(op="max", a=count, b=ONE, dtype=F32), dtype=F32)


def brought(moment: Value, count: Value, moved: tuple[Value, Value]) -> Value:
    """A co-moment of ``count`` points, about means that differ from its own by ``moved``."""
    # in this order, since 0 points of an empty part may have moved by more than a square can hold
    shift = Binary(op="mul", a=count, b=moved[0], dtype=F32)
    return Binary(op="add", a=moment, b=Binary(op="mul", a=shift, b=moved[1], dtype=F32), dtype=F32)


def difference(a: Value, b: Value) -> Value:
    """``a - b`` in f32."""
    return Binary(op="sub", a=a, b=b, dtype=F32)


class Means(Prefixes):
    """Statements that carry the means of a stream, and what is summed about them.

    ``moments``: the co-moments that share a sweep with their sums. ``counts``: the points met so far, by the
    sum that they are counted for; sums over one domain share a count. ``counted``: what a count is after
    the step, and how many points that adds. ``all_lanes``: what it is over all lanes. ``gathered``: of each
    sum the count of every lane, and how far its mean is from that of all.

    ``single``: sums of which a step brings one point to each state. Every state that gets one has had as many
    as there were steps, so that the divisions are of a scalar (``paces``: its inverse before and after the
    step); ``between`` has the means of such a sum before and after. A point then adds
    ``(x - mean before) (y - mean after)``, which is Welford's form of the law.
    """

    def __init__(self, graph: Graph, roles: Roles, names: Names) -> None:
        super().__init__(graph, roles, names)
        self.moments: dict[str, Moment] = {}
        self.counts: dict[str, Var] = {}
        self.counted: dict[str, tuple[Var, Var]] = {}
        self.steps: dict[str, Step] = {}
        self.single: set[str] = set()
        self.walked: dict[str, Var] = {}
        self.paces: dict[str, tuple[Value, Value]] = {}
        self.between: dict[str, tuple[Value, Value]] = {}
        self.all_lanes: dict[str, Var] = {}
        self.gathered: dict[str, tuple[Value, Value]] = {}

    def _has_mean(self, name: str) -> bool:
        """Whether the running mean of a sum is wanted in an open sweep."""
        return any(name in m.sums for m in self.moments.values())

    def _begin_count(self, node: Fold) -> list[Statement]:
        """Begin to count the points of a sum, unless another over its domain does."""
        for name, known in self.counts.items():
            other = self.nodes[name]
            assert isinstance(other, Fold)
            if name in self.carried and same_domain(other, node):
                self.counts[node.name] = known
                return []
        base = self.names.of(node.name)
        single = node.name in self.single
        axes = self._ordered(node.over) if single else self.carried[node.name].axes
        var = self._declare(self.names.fresh(f"{base}_count"), axes, F32)
        self.counts[node.name] = var
        out: list[Statement] = [Begin(var=var, monoid="sum")]
        if single:
            walked = self._declare(self.names.fresh(f"{base}_steps"), (), F32)
            self.walked[var.name] = walked
            out.append(Begin(var=walked, monoid="sum"))
        return out

    def _counted(self, node: Fold, part: Collapse) -> Collapse:
        """What a step adds to a sum, and the number of its points unless they are counted already."""
        count = self.counts[node.name]
        if count.name in self.counted or node.name in self.single:
            return part
        points = self._declare(self.names.fresh(f"{count.name}_chunk"), part.var.axes, F32)
        masks = (*self._in_range(node.over), *map(self._positive, node.constraints))
        return replace(part, counted=points, points=masks)

    def _move_mean(self, node: Fold, var: Var, part: Collapse) -> list[Statement]:
        """Move the mean of a sum on by what this step adds to the sum."""
        if node.name in self.single:
            return self._move_by_one(node, var, part)
        count = self.counts[node.name]
        out: list[Statement] = []
        if part.counted is not None:
            counted = self._declare(self.names.fresh(f"{count.name}_new"), count.axes, F32)
            out.append(Let(var=counted, value=_add(count.read, part.counted.read)))
            self.pending.append(Let(var=count, value=counted.read))
            self.counted[count.name] = counted, part.counted
        counted, points = self.counted[count.name]
        base = self.names.of(node.name)
        old, moved, mean = (
            self._declare(self.names.fresh(f"{base}_{n}"), var.axes, F32)
            for n in ("mean", "moved", "mean_new")
        )
        # not as the difference of two means: it is small beside the rounding of a large one
        beyond = difference(Binary(op="mul", a=points.read, b=old.read, dtype=F32), part.var.read)
        out += [
            Let(var=old, value=mean_of(var.read, count.read)),
            Let(var=moved, value=mean_of(beyond, counted.read)),
            Let(var=mean, value=difference(old.read, moved.read)),
        ]
        self.pending.append(Let(var=var, value=_add(var.read, part.var.read)))
        self.steps[node.name] = Step(count=count.read, mean=mean.read, moved=moved.read)
        return out

    def _move_by_one(self, node: Fold, var: Var, part: Collapse) -> list[Statement]:
        """Move the mean of a sum on by one point of each state, divided by scalars."""
        count, base = self.counts[node.name], self.names.of(node.name)
        walked = self.walked[count.name]
        out: list[Statement] = []
        if count.name not in self.paces:
            met = self._declare(self.names.fresh(f"{walked.name}_new"), (), F32)
            before, after = (
                self._declare(self.names.fresh(f"{walked.name}_{n}"), (), F32)
                for n in ("inverse", "inverse_new")
            )
            out += [
                # only what gathers the lanes behind the stream needs to know how many points each has
                Combine(var=count, monoid="sum", value=ONE, masks=self._in_range(node.over)),
                Let(var=met, value=_add(walked.read, ONE)),
                Let(var=before, value=inverse_of(walked.read)),
                Let(var=after, value=inverse_of(met.read)),
            ]
            self.pending.append(Let(var=walked, value=met.read))
            self.paces[count.name] = before.read, after.read
        total = self._declare(self.names.fresh(f"{base}_new"), var.axes, F32)
        old, new = (
            self._declare(self.names.fresh(f"{base}_{n}"), var.axes, F32) for n in ("mean", "mean_new")
        )
        before_, after_ = self.paces[count.name]
        out += [
            Let(var=total, value=_add(var.read, part.var.read)),
            Let(var=old, value=Binary(op="mul", a=var.read, b=before_, dtype=F32)),
            Let(var=new, value=Binary(op="mul", a=total.read, b=after_, dtype=F32)),
        ]
        self.pending.append(Let(var=var, value=total.read))
        self.between[node.name] = old.read, new.read
        return out

    def _about(
        self, node: Fold, moment: Moment, var: Var, masks: tuple[Value, ...]
    ) -> tuple[Value, tuple[Value, ...], list[Statement]]:
        """Bring a co-moment to the new means; and the summand of this step about them, with what masks it still.

        A square is masked before it is taken: its multiplication and the sum are then one instruction.
        """
        if moment.sums[0] in self.single:
            (old, _), (_, new) = (self.between[n] for n in moment.sums)
            a, b = map(self._value, moment.sides)
            return Binary(op="mul", a=difference(a, old), b=difference(b, new), dtype=F32), masks, []
        first, second = (self.steps[n] for n in moment.sums)
        out: list[Statement] = [
            Let(var=var, value=brought(var.read, first.count, (first.moved, second.moved)))
        ]
        x, y = map(self._value, moment.sides)
        sides = difference(x, first.mean), difference(y, second.mean)
        if sides[0] == sides[1]:
            axes = self._ordered(node.axes | set(node.over))
            apart = self._declare(self.names.fresh(f"{self.names.of(node.name)}_apart"), axes, F32)
            value = sides[0]
            if masks:
                zero = Literal(value=0.0, dtype=F32)
                value = Select(condition=_all(masks), a=value, b=zero, dtype=F32)
            out.append(Let(var=apart, value=value))
            sides, masks = (apart.read, apart.read), ()
        return Binary(op="mul", a=sides[0], b=sides[1], dtype=F32), masks, out

    def _gather_moment(self, moment: Moment, value: Value) -> tuple[Value, list[Statement]]:
        """A co-moment of each lane about the means of all lanes."""
        out: list[Statement] = []
        for name in dict.fromkeys(moment.sums):
            if name in self.gathered:
                continue
            count, (lanes, whole) = self.counts[name], self.lane_states[name]
            if count.name not in self.all_lanes:
                axes = tuple(d for d in count.axes if d in whole.axes)
                over = tuple(d for d in count.axes if d not in axes)
                every = self._declare(self.names.fresh(f"{count.name}_all"), axes, F32)
                out.append(Remark(text="bring every lane to the mean of all"))
                out.append(Collapse(var=every, monoid="sum", value=count.read, axes=count.axes, over=over))
                self.all_lanes[count.name] = every
            every = self.all_lanes[count.name]
            mean = self._declare(self.names.fresh(f"{whole.name}_mean_all"), whole.axes, F32)
            moved = self._declare(self.names.fresh(f"{lanes.name}_moved"), lanes.axes, F32)
            out += [
                Let(var=mean, value=mean_of(whole.read, every.read)),
                Let(var=moved, value=difference(mean_of(lanes.read, count.read), mean.read)),
            ]
            self.gathered[name] = (count.read, moved.read)
        (n, first), (_, second) = (self.gathered[s] for s in moment.sums)
        return brought(value, n, (first, second)), out


def _all(masks: tuple[Value, ...]) -> Value:
    """The conjunction of masks."""
    return reduce(lambda a, b: Binary(op="and", a=a, b=b, dtype=BOOL), masks)


def _add(a: Value, b: Value) -> Value:
    return Binary(op="add", a=a, b=b, dtype=F32)
