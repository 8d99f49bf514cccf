"""Put every node of a graph into its loop, and write down the tile program.

For a stream axis the nodes that touch it fall into *sweeps*. A sweep computes the folds and
stores that are ready, and the loads and points these need; a value that a later sweep needs
again is loaded again. A fold that uses another fold over the same stream waits for the next
sweep, unless a law (``laws``) lets it run beside it, rescaled at each step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from opspec.ir.program import Define
from opspec.schedule.graph import Fold, Graph, Load, Point, Prefix, Store
from opspec.schedule.names import Names
from opspec.schedule.roles import Roles
from opspec.schedule.sweeps import Levels, Sweep, Sweeps
from opspec.schedule.tile import AxisPlan, Carried, Let, Loop, Remark, Role, Statement, TileProgram


def place(graph: Graph, roles: Roles, variant: str, name: Names) -> TileProgram:
    """The tile program of one variant."""
    placer = Placer(graph, roles, name)
    targets = [n.name for n in graph.nodes if isinstance(n, Store)]
    body = placer.region(targets, roles.stream, frozenset())
    axes = []
    for axis in graph.block.axes:
        if axis.name in (*roles.grid, *roles.tile, *roles.stream):
            role: Role = (
                "grid" if axis.name in roles.grid else "tile" if axis.name in roles.tile else "stream"
            )
            axes.append(AxisPlan(name=axis.name, extent=axis.extent, role=role, dims=roles.dims(axis.name)))
    axes.sort(key=lambda a: placer.order.index(a.name))
    return TileProgram(
        op=graph.block.op,
        kernel=graph.block.name,
        variant=variant,
        axes=tuple(axes),
        order=placer.order,
        tensors=tuple(t for t in graph.block.tensors if _touched(graph, t.name)),
        body=tuple(body),
        vars=tuple(placer.vars.values()),
        data=tuple(
            ((d.tensor, d.indices), placer.ident[n]) for d, n in graph.data.items() if n in placer.ident
        ),
        notes=tuple(dict.fromkeys(placer.notes)),
    )


def _touched(graph: Graph, tensor: str) -> bool:
    return any(isinstance(n, Load | Store) and n.tensor == tensor for n in graph.nodes)


class Placer(Sweeps):
    """Regions, sweeps and straight-line code."""

    def region(
        self, targets: Iterable[str], streams: tuple[str, ...], have: frozenset[str]
    ) -> list[Statement]:
        """Statements that compute ``targets``, given what the enclosing scopes ``have``."""
        closure = self._closure(targets, have)
        if not streams:
            return self._straight(closure)
        axis, rest = streams[0], streams[1:]
        inside = [n for n in closure if self._touches(n, axis)]
        if not inside:
            return self.region(targets, rest, have)
        levels = self._levels(closure, frozenset(inside), axis, have)
        if levels.moments:  # they need less than they did
            closure = self._closure(targets, have)
            inside = [n for n in inside if n in closure]
            levels = replace(levels, inside=frozenset(inside))
        if streams == self.roles.stream:
            levels = replace(levels, level=self._late(closure, levels))
        wanted = set(targets)
        roots = [n for n in inside if n in wanted or self._is_root(n, axis)]
        roots = [n for n in roots if isinstance(self.nodes[n], Fold | Store)]
        last = max(levels.level[n] for n in roots)
        groups = self._groups(roots, axis, levels, have)
        done = set(have)
        out: list[Statement] = []
        for k in range(last + 2):
            outside = [n for n in closure if n not in levels.inside and levels.level[n] == k]
            # what still has an inner stream free is computed inside that stream, wherever it is needed
            outside = [
                n for n in outside if isinstance(self.nodes[n], Store) or not self.nodes[n].axes & set(rest)
            ]
            if outside:
                out += self.region(outside, rest, frozenset(done))
                done |= set(outside)
            now = frozenset(done)
            for number, (level, reverse, here) in enumerate(groups, start=1):
                if level == k:
                    sweep = Sweep(axis=axis, rest=rest, number=number, count=len(groups), reverse=reverse)
                    out += self._sweep(here, sweep, now, levels)
                    done |= {n for n in here if isinstance(self.nodes[n], Fold)}
        return out

    def _late(self, closure: list[str], levels: Levels) -> dict[str, int]:
        """Levels where a tile as large as the accumulator of a plain product, such as a residual, waits until it is
        used: loaded before the sum it would take as many registers all along it."""
        level = dict(levels.level)
        tiles = [{p.rows, p.columns} for p in self.roles.products.values()]
        tiles = [tile for tile in tiles if tile <= set(self.roles.grid)]
        for name in reversed(closure):
            node = self.nodes[name]
            if name in levels.inside or not isinstance(node, Load | Point):
                continue
            if any(tile <= node.axes for tile in tiles):
                users = [level[n] for n in closure if name in self.deps[n]]
                level[name] = max(level[name], min(users, default=0))
        return level

    def _sweep(self, roots: list[str], sweep: Sweep, have: frozenset[str], levels: Levels) -> list[Statement]:
        out: list[Statement] = []
        opened = []
        places = {self._beside(n, have) for n in roots}
        self.moments |= {n: levels.moments[n] for n in roots if n in levels.moments}
        self.shifts |= {n: levels.shifts[n] for n in roots if n in levels.shifts}
        for name in roots:
            node = self.nodes[name]
            if isinstance(node, Fold) and name not in self.carried:
                if name in levels.laws:
                    self.laws[name] = levels.laws[name]
                if self._beside(name, have) is not None:
                    out.append(self._begin_place(node))
                else:
                    out.extend(self._begin(node, {law.state for law in levels.laws.values()}))
                if name in places:
                    self.located.add(name)
                opened.append(name)
        scans = self._streamed(roots, sweep.axis, have)
        out += [self._begin_prefix(self.nodes[n]) for n in scans]  # type: ignore[arg-type]
        before, pending = dict(self.env), self.pending
        self.pending = []
        body = self.region(roots, sweep.rest, have)
        body += self.pending
        self.env, self.pending = before, pending
        ends = self._segment_bounds(sweep.axis)
        start, stop = ends or self._stream_bounds(sweep.axis, [*roots, *scans])
        carried = () if scans or places - {None} or levels.shifts else self._carried(opened)
        out.append(
            Loop(
                axis=sweep.axis,
                start=start,
                stop=stop,
                body=tuple(body),
                sweep=sweep.number,
                sweeps=sweep.count,
                reverse=sweep.reverse,
                carried=carried,
                segments=self.segments[sweep.axis].tensor if ends else None,
            )
        )
        for name in scans:
            del self.running_prefix[name]
        for name in opened:
            node = self.nodes[name]
            assert isinstance(node, Fold)
            out += self._finish_place(node) if self._beside(name, have) is not None else self._finish(node)
        return out

    def _carried(self, opened: list[str]) -> tuple[Carried, ...]:
        """What a loop carries and how two values of it combine."""
        out: list[Carried] = []
        for name in opened:
            node, law = self.nodes[name], self.laws.get(name)
            assert isinstance(node, Fold)
            state = None if law is None else self.carried[law.state].name
            factor = None if law is None else law.factor
            moment = self.moments.get(name)
            sums = count = None
            if moment is not None:
                sums = self.carried[moment.sums[0]].name, self.carried[moment.sums[1]].name
                count = self.counts[moment.sums[0]].name
            out.append(
                Carried(
                    var=self.carried[name],
                    monoid=node.monoid,
                    state=state,
                    factor=factor,
                    sums=sums,
                    count=count,
                )
            )
            if name in self.counts and not any(c.var == self.counts[name] for c in out):
                out.append(Carried(var=self.counts[name], monoid="sum"))
            if name in self.seen:
                out.append(Carried(var=self.seen[name], monoid="max"))
        return tuple(out)

    def _straight(self, names: list[str]) -> list[Statement]:
        out: list[Statement] = []
        for name in self._stored_late(names):
            node = self.nodes[name]
            match node:
                case Load():
                    out += self._fetch(node)
                case Point():
                    out += self._remark(node.define)
                    out.append(self._let(node))
                case Fold(extreme=None):
                    out += self._remark(node.define)
                    out += self._combine(node) if name in self.carried else self._fold(node)
                case Fold():
                    out += self._remark(node.define)
                    out += self._move_place(node) if name in self.carried else self._find_place(node)
                case Prefix():
                    out += self._remark(node.define)
                    out += self._prefix(node)
                case Store():
                    out += self._remark(node.define)
                    out.append(self._write(node))
        return out

    def _stored_late(self, names: list[str]) -> list[str]:
        """The nodes of a program that folds whole rows, what is stored of a row at the end.

        There no thread waits for others behind a store.
        """
        if (
            self.roles.stream
            or self.roles.products
            or not any(isinstance(self.nodes[n], Fold) for n in names)
        ):
            return names
        loaded = {node.tensor for n in names if isinstance(node := self.nodes[n], Load)}
        whole = set(self.roles.tile)
        late = [
            n
            for n in names
            if isinstance(node := self.nodes[n], Store)
            and not node.axes & whole
            and node.tensor not in loaded
        ]
        return [*(n for n in names if n not in late), *late]

    def _remark(self, define: Define) -> list[Statement]:
        """The spec's line, once per place that it became code in."""
        text = " ".join(define.span.text.split()) if define.span is not None else ""
        if define.kind == "temp" or not text or text in self.said:
            return []
        self.said.add(text)
        return [Remark(text=text if len(text) < 100 else text[:97] + "…")]

    def _let(self, node: Point) -> Statement:
        value = self._value(node.value)
        var = self._declare(self.names.of(node.name), self._ordered(node.axes), node.value.dtype)
        self.ident[node.name] = var.name
        self.env[node.name] = var.read
        return Let(var=var, value=value)
