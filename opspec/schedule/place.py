"""Put every node of a graph into its loop, and write down the tile program.

For a stream axis the nodes that touch it fall into *sweeps*. A sweep computes the folds and
stores that are ready, and the loads and points these need; a value that a later sweep needs
again is loaded again. A fold that uses another fold over the same stream waits for the next
sweep, unless a law (``laws``) lets it run beside it, rescaled at each step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from opspec.ir.dtypes import BOOL, F32, I64, DType
from opspec.ir.integers import ZERO, Int, greatest, index, least
from opspec.ir.program import Define
from opspec.ir.values import (
    Binary,
    BinaryOp,
    Compare,
    Extent,
    Literal,
    Read,
    Select,
    Unary,
    Value,
    map_values,
)
from opspec.schedule.domain import bounds, nonempty
from opspec.schedule.graph import Fold, Graph, Load, Node, Point, Store
from opspec.schedule.laws import NEW, OLD, Law, find_law
from opspec.schedule.refuse import unfusable
from opspec.schedule.roles import Product, Roles
from opspec.schedule.tile import (
    AxisPlan,
    Begin,
    Collapse,
    Combine,
    Fetch,
    Let,
    Loop,
    Multiply,
    Operand,
    Precision,
    Remark,
    Role,
    Statement,
    TileProgram,
    Var,
    Write,
)

INFINITY = {"max": float("-inf"), "min": float("inf")}


def place(graph: Graph, roles: Roles, variant: str, name: Names) -> TileProgram:
    """The tile program of one variant."""
    placer = _Placer(graph, roles, name)
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


def _is_identity(node: Fold) -> bool:
    """Whether the value declared for an empty domain is what the fold gives there anyhow."""
    value, sign = node.empty, 1.0
    if isinstance(value, Unary) and value.op == "neg":
        value, sign = value.x, -1.0
    return (
        isinstance(value, Literal) and node.dtype is F32 and sign * value.value == INFINITY.get(node.monoid)
    )


def _put(factor: Value, old: Value, new: Value) -> Value:
    """A law's factor between two states."""
    if isinstance(factor, Read) and factor.name in (OLD, NEW):
        return old if factor.name == OLD else new
    return map_values(factor, lambda v: _put(v, old, new))


@dataclass
class Names:
    """Readable, unique identifiers for block variables. ``taken`` holds everything else in the kernel."""

    taken: set[str]
    given: dict[str, str] = field(default_factory=dict)

    def of(self, node: str) -> str:
        """The identifier of a node: the last telling part of its name."""
        if node not in self.given:
            parts = [p for p in node.split(".") if not p.isdigit()]
            last = parts[-1]
            base = parts[0] if last == "load" else "_".join(parts) if last in _DULL else last
            if base in self.taken and last != "load" and len(parts) > 1:
                base = "_".join(parts[-2:])
            self.given[node] = self.fresh(base)
        return self.given[node]

    def fresh(self, base: str) -> str:
        """An unused identifier that starts with ``base``."""
        base = re.sub(r"\W", "_", base)
        name, k = base, 2
        while name in self.taken:
            name, k = f"{base}_{k}", k + 1
        self.taken.add(name)
        return name


_DULL = {"sum", "max", "min", "prod", "any", "all", "arg", "x", "store"}


@dataclass(frozen=True)
class _Levels:
    level: dict[str, int]
    laws: dict[str, Law]
    inside: frozenset[str]


class _Placer:
    def __init__(self, graph: Graph, roles: Roles, names: Names) -> None:
        from opspec.schedule.roles import axis_order

        self.graph, self.roles, self.names = graph, roles, names
        self.nodes = graph.by_name
        self.order = axis_order(graph)
        self.extent = {a.name: a.extent for a in graph.block.axes}
        self.vars: dict[str, Var] = {}
        self.ident: dict[str, str] = {}
        self.env: dict[str, Value] = {}
        self.carried: dict[str, Var] = {}
        self.lane_states: dict[str, tuple[Var, Var]] = {}
        self.lanes: dict[str, tuple[str, ...]] = {}
        self.laws: dict[str, Law] = {}
        self.running: dict[str, dict[str, str]] = {}
        self.pending: list[Let] = []
        self.notes: list[str] = []
        self.loaded: dict[tuple[str, tuple[Int, ...]], int] = {}
        self.said: set[str] = set()
        self.raw = self._raw_loads()
        self.deps = {n.name: graph.deps(n) for n in graph.nodes}

    # regions ----------------------------------------------------------------
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
        wanted = set(targets)
        roots = [n for n in inside if n in wanted or self._is_root(n, axis)]
        roots = [n for n in roots if isinstance(self.nodes[n], Fold | Store)]
        sweeps = 1 + max(levels.level[n] for n in roots)
        done = set(have)
        out: list[Statement] = []
        for k in range(sweeps + 1):
            outside = [n for n in closure if n not in levels.inside and levels.level[n] == k]
            # what still has an inner stream free is computed inside that stream, wherever it is needed
            outside = [
                n for n in outside if isinstance(self.nodes[n], Store) or not self.nodes[n].axes & set(rest)
            ]
            if outside:
                out += self.region(outside, rest, frozenset(done))
                done |= set(outside)
            here = [n for n in roots if levels.level[n] == k]
            if here:
                out += self._sweep(here, axis, rest, frozenset(done), levels, (k + 1, sweeps))
                done |= {n for n in here if isinstance(self.nodes[n], Fold)}
        return out

    def _sweep(
        self,
        roots: list[str],
        axis: str,
        rest: tuple[str, ...],
        have: frozenset[str],
        levels: _Levels,
        count: tuple[int, int],
    ) -> list[Statement]:
        out: list[Statement] = []
        opened = []
        for name in roots:
            node = self.nodes[name]
            if isinstance(node, Fold) and name not in self.carried:
                if name in levels.laws:
                    self.laws[name] = levels.laws[name]
                out.append(self._begin(node, {law.state for law in levels.laws.values()}))
                opened.append(name)
        before, pending = dict(self.env), self.pending
        self.pending = []
        body = self.region(roots, rest, have)
        body += self.pending
        self.env, self.pending = before, pending
        start, stop = self._stream_bounds(axis, roots)
        out.append(Loop(axis=axis, start=start, stop=stop, body=tuple(body), sweep=count[0], sweeps=count[1]))
        for name in opened:
            out += self._finish(self.nodes[name])  # type: ignore[arg-type]
        return out

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

    def _usable(self, constraints: tuple[Int, ...], axis: str) -> tuple[Int, ...]:
        """Constraints as they bound the stream for the whole program.

        A grid axis with a block stands at its first or its last index, whichever admits more; a
        constraint on any other blocked axis bounds nothing.
        """
        out = []
        for c in constraints:
            others = (c.free_indices() - {axis}) & self.roles.blocked
            if not others:
                out.append(c)
                continue
            split = c.affine(others)
            if split is None or not others <= set(self.roles.grid) or c.tensors():
                continue
            signs = {name: k.constant for name, k in split[0].items()}
            if all(k is not None for k in signs.values()):
                edge = {n: f"{n}.last" if (k or 0) > 0 else f"{n}.first" for n, k in signs.items()}
                out.append(c.rename(edge))
        return tuple(out)

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

    def _levels(self, closure: list[str], inside: frozenset[str], axis: str, have: frozenset[str]) -> _Levels:
        level: dict[str, int] = {}
        laws: dict[str, Law] = {}
        for name in closure:
            node, at = self.nodes[name], 0
            for dep in self.deps[name]:
                if dep in have:
                    continue
                finished = dep in inside and self._folds(dep, axis)
                at = max(at, level[dep] + finished)
            if name in inside and self._folds(name, axis) and at > 0:
                law = self._law(node, axis, inside, level, laws, at, have)  # type: ignore[arg-type]
                if law is not None:
                    laws[name], at = law, level[law.state]
            level[name] = at
        return _Levels(level=level, laws=laws, inside=inside)

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
        held = [s for s in states if level[s] + 1 == at]
        if len(states) != 1 or not held or other > level[held[0]] or held[0] in laws:
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

    # folds over streams -------------------------------------------------------
    def _begin(self, node: Fold, states: set[str]) -> Statement:
        # beside a block product the registers belong to its accumulator: reduce each chunk at once
        keep = bool(self.roles.products) or (node.name in states and self.roles.laned is None)
        full = self._ordered(node.axes | set(node.over))
        lanes = () if keep else tuple(d for d in full if d in self._over(node) and not d.endswith(".step"))
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
        return Begin(var=var, monoid=node.monoid)

    def _combine(self, node: Fold) -> list[Statement]:
        var = self.carried[node.name]
        law = self.laws.get(node.name)
        product = self.roles.products.get(node.name)
        out: list[Statement] = []
        if law is not None:
            scale = self._rescale(law)
            out += scale[1]
            scaled = Binary(op="mul", a=self._read(var), b=scale[0], dtype=F32)
            out.append(Let(var=var, value=scaled))
        if product is not None:
            out.append(self._multiply(product, node, var, accumulate=True))
            return out
        value, masks = self._value(node.body), self._fold_masks(node, law)
        axes = self._ordered(node.axes | set(node.over))
        over = tuple(d for d in axes if d not in var.axes)
        state = any(known.state == node.name for known in self.laws.values())
        if not over and not state:
            out.append(Combine(var=var, monoid=node.monoid, value=value, masks=masks))
            return out
        part = self._declare(self.names.fresh(f"{var.name}_chunk"), var.axes, node.dtype)
        out.append(Collapse(var=part, monoid=node.monoid, value=value, axes=axes, over=over, masks=masks))
        if state:
            out += self._advance(node, var, part)
        else:
            out.append(Combine(var=var, monoid=node.monoid, value=self._read(part)))
        return out

    def _advance(self, node: Fold, var: Var, part: Var) -> list[Statement]:
        """Move a running extreme on; points of this step see the new state, made finite for its identity."""
        new = self._declare(self.names.fresh(f"{var.name}_new"), var.axes, node.dtype)
        safe = self._declare(self.names.fresh(f"{var.name}_safe"), var.axes, node.dtype)
        op: BinaryOp = "max" if node.monoid == "max" else "min"
        identity = Literal(value=INFINITY[op], dtype=F32)
        at_identity = Compare(op="eq", a=self._read(new), b=identity, dtype=BOOL)
        zero = Literal(value=0.0, dtype=F32)
        self.running[node.name] = {"old": var.name, "safe": safe.name}
        self.env[node.name] = self._read(safe)
        self.pending.append(Let(var=var, value=self._read(new)))
        return [
            Let(var=new, value=Binary(op=op, a=self._read(var), b=self._read(part), dtype=F32)),
            Remark(text="before the first finite value the state has no mass: keep exp(-inf - -inf) out"),
            Let(var=safe, value=Select(condition=at_identity, a=zero, b=self._read(new), dtype=F32)),
        ]

    def _rescale(self, law: Law) -> tuple[Value, list[Statement]]:
        """The factor of a law at this step; computed once for all folds that share it."""
        state = self.running[law.state]
        key = f"scale:{law.text}"
        if key in state:
            return self._read(self.vars[state[key]]), []
        old, new = self._read(self.vars[state["old"]]), self._read(self.vars[state["safe"]])

        var = self._declare(self.names.fresh("scale"), self.vars[state["old"]].axes, F32)
        state[key] = var.name
        return self._read(var), [Let(var=var, value=_put(law.factor, old, new))]

    def _finish(self, node: Fold) -> list[Statement]:
        """After the stream: gather lanes, and give an all-identity row what IEEE gives."""
        var = self.carried.pop(node.name)
        lanes = self.lanes.pop(node.name)
        law = self.laws.pop(node.name, None)
        out: list[Statement] = []
        final = var
        if lanes:
            final = self._declare(
                self.names.of(node.name), tuple(a for a in var.axes if a not in lanes), node.dtype
            )
            value: Value = self._read(var)
            if law is not None and law.state in self.lane_states:
                factor, more = self._gather_factor(law)
                out += more
                value = Binary(op="mul", a=value, b=factor, dtype=F32)
            out.append(Collapse(var=final, monoid=node.monoid, value=value, axes=var.axes, over=lanes))
            self.lane_states[node.name] = (var, final)
        if law is not None and law.at_identity_nan:
            state = self.nodes[law.state]
            assert isinstance(state, Fold)
            identity = Literal(value=INFINITY[state.monoid], dtype=F32)
            test: Value = Compare(
                op="eq", a=self._read(self.vars[self.ident[law.state]]), b=identity, dtype=BOOL
            )
            some = nonempty(state.over, self.extent, state.constraints) if state.constraints else None
            if some is not None:
                test = Binary(op="and", a=test, b=self._value(some), dtype=BOOL)
            elif not state.constraints:
                extents = [Extent(value=self.extent[a], dtype=I64) for a in state.over]
                for e in extents:
                    zero = Extent(value=ZERO, dtype=I64)
                    test = Binary(op="and", a=test, b=Compare(op="gt", a=e, b=zero, dtype=BOOL), dtype=BOOL)
            nan = Literal(value=float("nan"), dtype=F32)
            out.append(Remark(text="a row without a finite value is what IEEE arithmetic makes of it"))
            out.append(Let(var=final, value=Select(condition=test, a=nan, b=self._read(final), dtype=F32)))
        self.ident[node.name] = final.name
        self.env[node.name] = self._read(final)
        if node.empty is not None and not _is_identity(node):
            out += self._empty(node, final)
        return out

    def _gather_factor(self, law: Law) -> tuple[Value, list[Statement]]:
        """The factor that brings each lane of a fold to the state of all lanes; once for all that share it."""
        state = self.running[law.state]
        key = f"gather:{law.text}"
        if key in state:
            return self._read(self.vars[state[key]]), []
        lanes, final = self.lane_states[law.state]
        node = self.nodes[law.state]
        assert isinstance(node, Fold)
        identity = Literal(value=INFINITY[node.monoid], dtype=F32)
        at_identity = Compare(op="eq", a=self._read(final), b=identity, dtype=BOOL)
        safe = self._declare(self.names.fresh(f"{final.name}_safe"), final.axes, F32)
        zero = Literal(value=0.0, dtype=F32)
        moved = _put(law.factor, self._read(lanes), self._read(safe))
        var = self._declare(self.names.fresh("scale"), lanes.axes, F32)
        state[key] = var.name
        return self._read(var), [
            Remark(text="bring every lane to the state of all"),
            Let(var=safe, value=Select(condition=at_identity, a=zero, b=self._read(final), dtype=F32)),
            Let(var=var, value=moved),
        ]

    def _empty(self, node: Fold, var: Var) -> list[Statement]:
        assert node.empty is not None
        test = nonempty(node.over, self.extent, node.constraints)
        if test is None:
            raise unfusable(
                f"whether `{node.define.origin}` reduces over nothing can't be told from its indices",
                node.define.span,
            )
        value = Select(
            condition=self._value(test), a=self._read(var), b=self._value(node.empty), dtype=node.dtype
        )
        return [Let(var=var, value=value)]

    # straight-line code ---------------------------------------------------------
    def _straight(self, names: list[str]) -> list[Statement]:
        out: list[Statement] = []
        for name in names:
            node = self.nodes[name]
            match node:
                case Load():
                    out.append(self._fetch(node))
                case Point():
                    out += self._remark(node.define)
                    out.append(self._let(node))
                case Fold():
                    out += self._remark(node.define)
                    out += self._combine(node) if name in self.carried else self._fold(node)
                case Store():
                    out += self._remark(node.define)
                    out.append(self._write(node))
        return out

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
        self.env[node.name] = self._read(var)
        return Let(var=var, value=value)

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
        self.env[node.name] = self._read(var)
        if node.empty is not None and not _is_identity(node):
            out += self._empty(node, var)
        return out

    def _multiply(self, product: Product, node: Fold, var: Var, *, accumulate: bool) -> Statement:
        masks = self._fold_masks(node, axes=False)
        a = self._operand(product.a, (product.rows, product.k), product, masks)
        left = () if a.masks else masks
        b = self._operand(product.b, (product.k, product.columns), product, left)
        precision: Precision = "tf32" if node.using == "tf32" else "ieee"
        return Multiply(var=var, a=a, b=b, accumulate=accumulate, precision=precision)

    def _operand(
        self, value: Value, axes: tuple[str, str], product: Product, masks: tuple[Value, ...]
    ) -> Operand:
        usable = tuple(m for m in masks if self._mask_axes(m) <= set(axes) | self._scalars())
        computed = not (isinstance(value, Read) and isinstance(self.nodes[value.name], Load))
        if computed:
            usable = (*self._in_range((product.k,)), *usable)
        return Operand(value=self._value(value), axes=axes, cast=product.cast, masks=usable)

    def _scalars(self) -> set[str]:
        return set(self.order) - self.roles.blocked

    def _mask_axes(self, mask: Value) -> set[str]:
        return set(self.graph.axes_of(mask)) if isinstance(mask, Compare) else set()

    def _write(self, node: Store) -> Statement:
        axes = self._ordered(node.axes)
        masks = (*self._in_range(axes), *map(self._positive, node.constraints))
        return Write(tensor=node.tensor, at=node.at, value=self._value(node.value), axes=axes, masks=masks)

    def _fetch(self, node: Load) -> Statement:
        axes = self._fetch_axes(node)
        masks = (
            *self._in_range(axes),
            *map(self._positive, node.constraints),
            *(self._value(g) for g in node.guard),
        )
        raw = node.name in self.raw
        var = self._declare(self.names.of(node.name), axes, node.dtype)
        other = self._other(node) if masks else None
        key = (node.tensor, node.at)
        reread = key in self.loaded
        self.loaded[key] = 1
        self.ident[node.name] = var.name
        self.env[node.name] = self._read(var)
        return Fetch(
            var=var, tensor=node.tensor, at=node.at, masks=masks, other=other, raw=raw, reread=reread
        )

    def _other(self, node: Load) -> Value:
        if node.otherwise is not None:
            return self._value(node.otherwise)
        users = [n for n in self.graph.nodes if node.name in self.deps[n.name]]
        for user in users:
            if (
                isinstance(user, Fold)
                and isinstance(user.body, Read)
                and user.monoid in INFINITY
                and user.dtype is F32
            ):
                return Literal(value=INFINITY[user.monoid], dtype=F32)
        return Literal(value=0.0 if node.dtype is F32 else 0, dtype=node.dtype)

    def _fetch_axes(self, node: Load) -> tuple[str, ...]:
        for product in self.roles.products.values():
            for value, axes in (
                (product.a, (product.rows, product.k)),
                (product.b, (product.k, product.columns)),
            ):
                direct = isinstance(value, Read) and value.name == node.name and node.name in self.raw
                if direct and set(self._ordered(node.axes)) == set(axes):
                    return axes
        return self._ordered(node.axes)

    def _raw_loads(self) -> frozenset[str]:
        """Loads that only enter block products, and keep their storage type."""
        found = set()
        for node in self.graph.nodes:
            if isinstance(node, Load):
                users = [n for n in self.graph.nodes if node.name in self.graph.deps(n)]
                if users and all(self._direct(n, node.name) for n in users):
                    found.add(node.name)
        return frozenset(found)

    def _direct(self, user: Node, load: str) -> bool:
        product = self.roles.products.get(user.name)
        if product is None:
            return False
        names = [v.name for v in (product.a, product.b) if isinstance(v, Read)]
        return load in names

    # values, masks, variables ------------------------------------------------------
    def _value(self, value: Value) -> Value:
        """A node value over block variables."""
        if isinstance(value, Read):
            return self.env[value.name]
        return map_values(value, self._value)

    def _known_law(self, node: Fold) -> Law | None:
        """The law of a fold that is not streamed, for what it says of padding."""
        stack, seen = list(self.deps[node.name]), set[str]()
        while stack:
            name = stack.pop()
            dep = self.nodes[name]
            if isinstance(dep, Fold) and dep.monoid in INFINITY and set(dep.over) == set(node.over):
                found = find_law(self.graph, node, dep)
                return None if isinstance(found, str) else found
            if name not in seen and not isinstance(dep, Fold):
                seen.add(name)
                stack += self.deps[name]
        return None

    def _fold_masks(self, node: Fold, law: Law | None = None, *, axes: bool = True) -> tuple[Value, ...]:
        masks = tuple(map(self._positive, node.constraints))
        if not axes:
            return masks
        if self._padding_is_identity(node):
            return masks
        state = self.nodes[law.state] if law is not None and law.pure else None
        if isinstance(state, Fold) and not masks and self._padding_is_identity(state):
            # padding holds the state's identity, and there the summand is 0 by the law
            return ()
        return (*self._in_range(node.over), *masks)

    def _padding_is_identity(self, node: Fold) -> bool:
        """Whether lanes beyond the edge hold the identity already, by what their load gave."""
        body = node.body
        if not isinstance(body, Read) or not isinstance(load := self.nodes[body.name], Load):
            return False
        other = self._other(load)
        if node.constraints:
            return False
        blocked = [a for a in node.over if a in self.roles.blocked]
        if not set(blocked) <= load.axes or not isinstance(other, Literal):
            return False
        return other.value == (INFINITY.get(node.monoid, 0.0) if node.monoid != "prod" else 1.0)

    def _in_range(self, axes: Iterable[str]) -> tuple[Value, ...]:
        tests = []
        for a in dict.fromkeys(d.split(".")[0] for d in axes):
            if a in self.roles.blocked:
                at, end = Extent(value=index(a), dtype=I64), Extent(value=self.extent[a], dtype=I64)
                tests.append(Compare(op="lt", a=at, b=end, dtype=BOOL))
        return tuple(tests)

    def _positive(self, constraint: Int) -> Value:
        """``constraint >= 0``, written with all terms on the side where they are positive."""
        plus = Int(tuple(t for t in constraint.terms if t[1] > 0))
        minus = plus - constraint
        a, b = (Extent(value=v, dtype=I64) for v in (minus, plus))
        return Compare(op="le", a=a, b=b, dtype=BOOL)

    def _ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        wanted = set(axes)
        return tuple(d for a in self.order if a in wanted for d in self.roles.dims(a))

    def _over(self, node: Fold) -> set[str]:
        """Block dimensions that a fold reduces."""
        return {d for a in node.over for d in self.roles.dims(a)}

    def _declare(self, name: str, axes: tuple[str, ...], dtype: DType) -> Var:
        self.names.taken.add(name)
        var = Var(name=name, axes=axes, dtype=dtype)
        self.vars[name] = var
        return var

    def _read(self, var: Var) -> Read:
        return Read(name=var.name, indices=tuple(index(a) for a in var.axes), dtype=var.dtype)


__all__ = ["Names", "place"]
