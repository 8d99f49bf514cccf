"""What every part of the placer needs: variables, values over them, masks, loads and stores."""

from __future__ import annotations

from collections.abc import Iterable

from opspec.ir.bounds import prove
from opspec.ir.dtypes import BOOL, F32, I64, DType, choices
from opspec.ir.facts import facts_of
from opspec.ir.integers import Int
from opspec.ir.values import Cast, Compare, Extent, Literal, Read, Value, map_values
from opspec.schedule.axis_order import axis_order
from opspec.schedule.exact import holds, identity, number
from opspec.schedule.graph import Fold, Graph, Load, Node, Store, storage_of
from opspec.schedule.laws import INFINITY, Law, find_law, finite_state
from opspec.schedule.names import Names
from opspec.schedule.roles import Roles
from opspec.schedule.segments import segments_of
from opspec.schedule.shifts import Shift
from opspec.schedule.tile import Fetch, Let, Statement, Var, Write, inside


def is_identity(node: Fold) -> bool:
    """Whether the value declared for an empty domain is what the fold gives there anyhow."""
    if node.empty is None or node.monoid not in INFINITY:
        return False
    return number(node.empty) == identity(node.monoid, node.dtype)


def stored(load: str) -> str:
    """The key under which a product finds a load that others use in f32."""
    return f"{load}.stored"


def plain(value: Value) -> Value:
    """An operand without the conversion of an integer that a block product makes itself."""
    return value.x if isinstance(value, Cast) and value.implicit else value


class Access:
    """State of one placement, and accesses to tensors and variables."""

    def __init__(self, graph: Graph, roles: Roles, names: Names) -> None:
        self.graph, self.roles, self.names = graph, roles, names
        self.nodes = graph.by_name
        self.order = axis_order(graph)
        self.extent = {a.name: a.extent for a in graph.block.axes}
        self.vars: dict[str, Var] = {}
        self.ident: dict[str, str] = {}
        self.env: dict[str, Value] = {}
        self.carried: dict[str, Var] = {}
        self.lane_states: dict[str, tuple[Var, Var]] = {}
        self.seen: dict[str, Var] = {}
        self.lanes: dict[str, tuple[str, ...]] = {}
        self.located: set[str] = set()
        self.running_prefix: dict[str, Var] = {}
        self.laws: dict[str, Law] = {}
        self.shifts: dict[str, Shift] = {}
        self.running: dict[str, dict[str, str]] = {}
        self.pending: list[Let] = []
        self.notes: list[str] = []
        self.loaded: set[tuple[str, tuple[Int, ...]]] = set()
        self.said: set[str] = set()
        self.raw, self.widened = self._raw_loads()
        self.deps = {n.name: graph.deps(n) for n in graph.nodes}
        self.segments = segments_of(graph)

    def _value(self, value: Value) -> Value:
        """A node value over block variables."""
        if isinstance(value, Read):
            return self.env[value.name]
        state = finite_state(value)
        if state is not None and "safe" in self.running.get(state.name, {}):
            safe = self.vars[self.running[state.name]["safe"]].read
            if self.env[state.name] == safe:
                return safe  # beside a running extreme it is finite already
        return map_values(value, self._value)

    def _in_range(self, axes: Iterable[str]) -> tuple[Value, ...]:
        names = dict.fromkeys(d.split(".")[0] for d in axes)
        return tuple(inside(a, self.extent[a]) for a in names if a in self.roles.blocked)

    def _positive(self, constraint: Int) -> Value:
        """``constraint >= 0``, written with all terms on the side where they are positive."""
        plus = Int(tuple(t for t in constraint.terms if t[1] > 0))
        minus = plus - constraint
        a, b = (Extent(value=v, dtype=I64) for v in (minus, plus))
        if minus.constant is not None:
            return Compare(op="ge", a=b, b=a, dtype=BOOL)
        return Compare(op="le", a=a, b=b, dtype=BOOL)

    def _ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """Block dimensions of axes. Lanes come first: Triton gives the first dimension to neighbouring threads
        where only those that one load brings lie together."""
        wanted = set(axes)
        dims = [d for a in self.order if a in wanted for d in self.roles.dims(a)]
        return tuple(sorted(dims, key=lambda d: not d.endswith(".lane")))

    def _over(self, node: Fold) -> set[str]:
        """Block dimensions that a fold reduces."""
        return {d for a in node.over for d in self.roles.dims(a)}

    def _declare(self, name: str, axes: tuple[str, ...], dtype: DType) -> Var:
        self.names.taken.add(name)
        var = Var(name=name, axes=axes, dtype=dtype)
        self.vars[name] = var
        return var

    def _scalars(self) -> set[str]:
        return set(self.order) - self.roles.blocked

    def _mask_axes(self, mask: Value) -> set[str]:
        return set(self.graph.axes_of(mask)) if isinstance(mask, Compare) else set()

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

    def _known_law(self, node: Fold) -> Law | None:
        """The law of a fold that is not streamed, for what it says of padding.

        None where all of the block may be padding and a result still shows it: there the summand is
        the law's at a state that never left its identity, which is NaN.
        """
        facts = facts_of(self.graph.block.op)
        stores = [n for n in self.graph.nodes if isinstance(n, Store)]
        for axis in node.over:
            if not all(axis in s.axes for s in stores) and not prove(self.extent[axis] - 1, facts):
                return None
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
                and holds(storage_of(self.graph, node), INFINITY[user.monoid])
            ):
                return Literal(value=INFINITY[user.monoid], dtype=F32)
        return Literal(value=0.0 if node.dtype is F32 else 0, dtype=node.dtype)

    def _fetch(self, node: Load) -> tuple[Statement, ...]:
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
        self.loaded.add(key)
        self.ident[node.name] = var.name
        self.env[node.name] = var.read
        fetch = Fetch(
            var=var, tensor=node.tensor, at=node.at, masks=masks, other=other, raw=raw, reread=reread
        )
        return (fetch, self._wide(node, var)) if node.name in self.widened else (fetch,)

    def _wide(self, node: Load, var: Var) -> Statement:
        """What else uses an operand of a product takes it in f32; the product finds it under a key of its own."""
        key = stored(node.name)
        name = self.names.given.setdefault(f"{node.name}.wide", self.names.fresh(f"{var.name}_wide"))
        wide = self._declare(name, var.axes, F32)
        self.env[key], self.env[node.name] = var.read, wide.read
        return Let(var=wide, value=Cast(to=F32, x=var.read, implicit=True, dtype=F32))

    def _fetch_axes(self, node: Load) -> tuple[str, ...]:
        for product in self.roles.products.values():
            for value, axes in (
                (product.a, (product.rows, product.k)),
                (product.b, (product.k, product.columns)),
            ):
                loaded = plain(value)
                direct = isinstance(loaded, Read) and loaded.name == node.name and node.name in self.raw
                if direct and set(self._ordered(node.axes)) == set(axes):
                    return axes
        return self._ordered(node.axes)

    def _raw_loads(self) -> tuple[frozenset[str], frozenset[str]]:
        """Loads that enter block products as they are stored, and those of them that something else uses, too.

        Only 16 bits are kept beside their f32: a product takes bytes in other orders and integers as they compute.
        """
        found, also = set(), set()
        for node in self.graph.nodes:
            if isinstance(node, Load):
                users = [n for n in self.graph.nodes if node.name in self.graph.deps(n)]
                direct = [self._direct(n, node.name) for n in users]
                half = all(d.kind == "float" and d.bits == 16 for d in choices(storage_of(self.graph, node)))
                if any(direct) and (all(direct) or half):
                    found.add(node.name)
                    also |= set() if all(direct) else {node.name}
        return frozenset(found), frozenset(also)

    def _direct(self, user: Node, load: str) -> bool:
        product = self.roles.products.get(user.name)
        if product is None:
            return False
        return load in [v.name for v in map(plain, (product.a, product.b)) if isinstance(v, Read)]

    def _write(self, node: Store) -> Statement:
        axes = self._ordered(node.axes)
        masks = (*self._in_range(axes), *map(self._positive, node.constraints))
        return Write(tensor=node.tensor, at=node.at, value=self._value(node.value), axes=axes, masks=masks)
