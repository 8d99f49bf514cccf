"""Which sweep over a stream computes what, and how far the stream runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from opspec.ir.dtypes import F32, I64
from opspec.ir.integers import ZERO, Int, greatest, index, least
from opspec.ir.values import Binary, Extent, Read, Value
from opspec.schedule.carry import Carry
from opspec.schedule.domain import bounds, slope
from opspec.schedule.graph import Fold, Prefix, Store
from opspec.schedule.laws import Law, find_law
from opspec.schedule.moments import Moment, find_moment, same_domain
from opspec.schedule.shifts import Shift, find_shift


@dataclass(frozen=True)
class Levels:
    """For every node of a region the sweep that computes it (or before which it stands), the laws used, and
    the sums about means that share the sweep of these."""

    level: dict[str, int]
    laws: dict[str, Law]
    moments: dict[str, Moment]
    shifts: dict[str, Shift]
    inside: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One walk over a stream: its place among all of them, and whether it runs from the end."""

    axis: str
    rest: tuple[str, ...]
    number: int
    count: int
    reverse: bool


class Sweeps(Carry):
    """Questions about one stream axis of a region."""

    def _closure(self, targets: Iterable[str], have: frozenset[str]) -> list[str]:
        found: set[str] = set()
        stack = [t for t in targets if t not in have]
        while stack:
            name = stack.pop()
            if name in found:
                continue
            found.add(name)
            stack += [d for d in self.deps[name] if d not in have]
        return [n.name for n in self.graph.nodes if n.name in found]

    def _touches(self, name: str, axis: str) -> bool:
        node = self.nodes[name]
        return axis in node.axes or (isinstance(node, Fold) and axis in node.over)

    def _is_root(self, name: str, axis: str) -> bool:
        node = self.nodes[name]
        return isinstance(node, Store) or (isinstance(node, Fold) and axis in node.over)

    def _levels(self, closure: list[str], inside: frozenset[str], axis: str, have: frozenset[str]) -> Levels:
        level: dict[str, int] = {}
        laws: dict[str, Law] = {}
        moments: dict[str, Moment] = {}
        shifts: dict[str, Shift] = {}
        for name in closure:
            node, at = self.nodes[name], 0
            for dep in self.deps[name]:
                if dep in have:
                    continue
                finished = dep in inside and self._folds(dep, axis)
                at = max(at, level[dep] + finished)
            extreme = self._beside(name, have)
            if extreme is not None:
                at = level[extreme]
            elif name in inside and self._folds(name, axis) and at > 0:
                moment = self._moment(node, level, have)  # type: ignore[arg-type]
                if moment is not None:
                    moments[name], level[name] = moment, level[moment.sums[0]]
                    continue
                shift = self._shift(node, inside, level, laws, at, have)  # type: ignore[arg-type]
                if shift is not None:
                    shifts[name] = shift
                    laws[name] = replace(laws[shift.base], fold=name, pure=False)
                    level[name] = level[shift.base]
                    continue
                law = self._law(node, axis, inside, level, laws, at, have)  # type: ignore[arg-type]
                if law is not None:
                    laws[name], at = law, level[law.state]
            level[name] = at
        return Levels(level=level, laws=laws, moments=moments, shifts=shifts, inside=inside)

    def _shift(
        self,
        fold: Fold,
        inside: frozenset[str],
        level: dict[str, int],
        laws: dict[str, Law],
        at: int,
        have: frozenset[str],
    ) -> Shift | None:
        """What carries ``fold`` beside the states of this sweep and a sum that a law carries there already."""
        if fold.name in self.roles.products or fold.monoid != "sum":
            return None
        states: dict[str, Fold] = {}
        stack, seen = list(self.deps[fold.name]), set[str]()
        while stack:
            name = stack.pop()
            if name in seen or name in have:
                continue
            seen.add(name)
            node = self.nodes[name]
            if isinstance(node, Fold) and set(node.over) & set(fold.over):
                states[name] = node
            elif name in inside:
                stack += self.deps[name]
            elif level[name] >= at:
                return None
        alike = all(
            level[n] + 1 == at
            and n not in laws
            and n in inside
            and same_domain(s, fold)
            and s.axes == fold.axes
            for n, s in states.items()
        )
        if not states or not alike:
            return None
        for name, law in laws.items():
            base = self.nodes[name]
            assert isinstance(base, Fold)
            if law.state not in states or base.axes != fold.axes or not same_domain(base, fold):
                continue
            others = (s for n, s in states.items() if n != law.state)
            found = find_shift(self.graph, fold, base, (states[law.state], *others))
            if found is not None:
                origin = self.nodes[law.state].define.origin  # type: ignore[union-attr]
                self.notes.append(f"{fold.define.origin}: online beside {origin}, {found.text}")
                return found
        return None

    def _moment(self, fold: Fold, level: dict[str, int], have: frozenset[str]) -> Moment | None:
        """What lets ``fold`` share the sweep of the sums that make its means.

        A step brings several points to each state, over which the work per step is spread, or one to each.
        """
        several = bool(self.roles.products) or self.roles.laned in fold.over
        moment = find_moment(self.graph, fold) if several or self._one_a_step(fold) else None
        if moment is None or {fold.name, *moment.sums} & {*self.roles.products, *have}:
            return None
        x, y = moment.sides
        product = Binary(op="mul", a=x, b=y, dtype=F32)
        needs = self.graph.deps(replace(fold, body=product))
        first, second = moment.sums
        if first != second and (
            level[first] != level[second] or any(self._after(n, fold.over) for n in needs)
        ):
            return None
        self.single |= set() if several else set(moment.sums)
        self.notes.append(f"{fold.define.origin}: {moment.text}")
        # from here on it waits for the sums of this step, and for no mean of all
        self.deps[fold.name] = tuple(dict.fromkeys((*moment.sums, *needs)))
        return moment

    def _one_a_step(self, fold: Fold) -> bool:
        """Whether a step brings one point to each state that it reaches, and every earlier step did so too."""
        streams = set(fold.over) & set(self.roles.stream)
        return (
            not fold.constraints
            and len(streams) == 1
            and streams <= self.roles.blocked - {self.roles.laned} - set(self.segments)
            and not any(isinstance(n, Prefix) and n.along in streams for n in self.graph.nodes)
        )

    def _after(self, name: str, over: tuple[str, ...]) -> bool:
        """Whether a node needs what a stream over one of these axes gives."""
        node = self.nodes[name]
        if isinstance(node, Fold) and set(node.over) & set(over):
            return True
        return isinstance(node, Prefix) or any(self._after(n, over) for n in self.deps[name])

    def _beside(self, name: str, have: frozenset[str]) -> str | None:
        """The extreme beside which a place is looked for, if both go along one stream."""
        node = self.nodes[name]
        if isinstance(node, Fold) and isinstance(node.extreme, Read) and node.extreme.name not in have:
            return node.extreme.name
        return None

    def _groups(
        self, roots: list[str], axis: str, levels: Levels, have: frozenset[str]
    ) -> list[tuple[int, bool, list[str]]]:
        """The sweeps over a stream: the level of each, whether it runs from the end, and its roots."""
        out: list[tuple[int, bool, list[str]]] = []
        for level in sorted({levels.level[n] for n in roots}):
            here = [n for n in roots if levels.level[n] == level]
            needs = {n: self._direction(n, axis, have) for n in here}
            for reverse in (False, True):
                # a place is found by going upwards: the lowest of equals comes first
                extremes = {n: self._beside(n, have) for n in here}
                upwards = {n for pair in extremes.items() if pair[1] is not None for n in pair}
                other = [d for d in needs.values() if d is not None]
                usual = bool(other) and all(other)
                chosen = [
                    n
                    for n in here
                    if reverse == (False if n in upwards else usual if needs[n] is None else needs[n])
                ]
                if chosen:
                    out.append((level, reverse, chosen))
        return out

    def _direction(self, root: str, axis: str, have: frozenset[str]) -> bool | None:
        """Whether a root needs the stream from its end (True) or from its start (False); None if neither."""
        scans = [self.nodes[n] for n in self._streamed([root], axis, have)]
        return next((n.reverse for n in scans if isinstance(n, Prefix)), None)

    def _streamed(self, roots: list[str], axis: str, have: frozenset[str]) -> list[str]:
        """The scans along a stream that a sweep with these roots carries."""
        found: set[str] = set()
        stack, seen = list(roots), set[str]()
        while stack:
            name = stack.pop()
            if name in seen or name in have:
                continue
            seen.add(name)
            node = self.nodes[name]
            if isinstance(node, Prefix) and node.along == axis:
                found.add(name)
            stack += [d for d in self.deps[name] if not self._folds(d, axis)]
        return [n.name for n in self.graph.nodes if n.name in found]

    def _folds(self, name: str, axis: str) -> bool:
        node = self.nodes[name]
        return isinstance(node, Fold) and axis in node.over

    def _law(
        self,
        fold: Fold,
        axis: str,
        inside: frozenset[str],
        level: dict[str, int],
        laws: dict[str, Law],
        at: int,
        have: frozenset[str],
    ) -> Law | None:
        """A law that lets ``fold`` share the sweep of the one state that holds it back."""
        states: set[str] = set()
        other = 0
        stack, seen = list(self.deps[fold.name]), set[str]()
        while stack:
            name = stack.pop()
            if name in seen or name in have:
                continue
            seen.add(name)
            if name in inside and self._folds(name, axis):
                states.add(name)
            elif name in inside:
                stack += self.deps[name]
            else:
                other = max(other, level[name])
        # what earlier sweeps finished stands still in this one
        held = [s for s in states if level[s] + 1 == at]
        if len(held) != 1 or other > level[held[0]] or held[0] in laws:
            return None
        state = self.nodes[held[0]]
        assert isinstance(state, Fold)
        if set(state.over) != set(fold.over) or not state.axes <= fold.axes | set(fold.over):
            return None
        found = find_law(self.graph, fold, state)
        if isinstance(found, str):
            self.notes.append(f"{fold.define.origin}: no online law beside {state.define.origin}: {found}")
            return None
        self.notes.append(f"{fold.define.origin}: online beside {state.define.origin} by g = {found.text}")
        return found

    def _stream_bounds(self, axis: str, roots: list[str]) -> tuple[Value, Value]:
        """The part of a stream that any root needs, at the scalar indices in scope."""
        lows: list[Int] = []
        highs: list[Int] = []
        for name in roots:
            node = self.nodes[name]
            found = bounds(axis, self.extent[axis], self._usable(node.constraints, axis))  # type: ignore[union-attr]
            low, high = found if found is not None else ([ZERO], [self.extent[axis]])
            lows.append(greatest(*low))
            highs.append(least(*high))
        start = lows[0] if all(x == lows[0] for x in lows) else ZERO
        stop = highs[0] if all(x == highs[0] for x in highs) else self.extent[axis]
        return Extent(value=start, dtype=I64), Extent(value=stop, dtype=I64)

    def _segment_bounds(self, axis: str) -> tuple[Value, Value] | None:
        """The first and the last place of this program, for a stream over segments of places."""
        segment = self.segments.get(axis)
        if segment is None or segment.place not in self.roles.grid:
            return None
        blocked = segment.place in self.roles.blocked
        ends = [f"{segment.place}.first", f"{segment.place}.last"] if blocked else [segment.place] * 2
        first, last = (Extent(value=index(end), dtype=I64) for end in ends)
        return first, last

    def _usable(self, constraints: tuple[Int, ...], axis: str) -> tuple[Int, ...]:
        """Constraints as they bound the stream for the whole program.

        A grid axis with a block stands at its first or its last index, whichever admits more; a
        constraint on any other blocked axis bounds nothing, and neither does one on a stream inside of this one.
        """
        out = []
        stream = self.roles.stream
        inner = set(stream[stream.index(axis) + 1 :])
        for c in constraints:
            if c.free_indices() & inner:
                continue
            others = (c.free_indices() - {axis}) & self.roles.blocked
            if not others:
                out.append(c)
                continue
            if not others <= set(self.roles.grid) or c.tensors():
                continue
            signs = {name: slope(c, name) for name in others}
            if all(signs.values()):
                out.append(c.rename({n: f"{n}.last" if k == 1 else f"{n}.first" for n, k in signs.items()}))
        return tuple(out)
