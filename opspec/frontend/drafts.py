"""A statement while it is being read: its indices and the temporaries it gives rise to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from opspec.frontend import syntax as s
from opspec.frontend.faults import syntax as forms
from opspec.frontend.integer_exprs import conditions
from opspec.frontend.scope import Env, IndexVar, OpScope, Skip
from opspec.ir.bounds import prove
from opspec.ir.integers import Datum, Index, Int
from opspec.ir.program import Define
from opspec.ir.values import Literal, Read, Reduce, Select, Value, free_indices, operands
from opspec.source import Span

MAX_DEPTH = 120
MAX_NODES = 20_000


@dataclass(slots=True, eq=False)
class Temp:
    """A value that gets a name of its own; ``indices`` are those that it depends on."""

    name: str
    indices: tuple[str, ...]
    value: Value
    constraints: tuple[Int, ...]
    span: Span


@dataclass(slots=True, eq=False)
class Draft:
    """One statement being lowered, by ``lowering``.

    ``name``: of what it defines, which several statements of one ``origin`` (a result filled in parts) have each their
    own of; temporaries are named after it. ``loose``: conditions after ``for`` on indices that reductions bind.
    """

    origin: str
    name: str
    scope: OpScope
    lowering: Callable[[s.Expr, Draft, Env], Value]
    variables: dict[str, IndexVar] = field(default_factory=dict)
    temps: dict[str, Temp] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    shared: dict[tuple[Value, tuple[Int, ...]], str] = field(default_factory=dict)
    loose: list[tuple[s.Expr | s.Interval, frozenset[str]]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    root: s.Expr | None = None
    labels: dict[int, str] = field(default_factory=dict)
    in_library: bool = False
    depth: int = 0
    inlined: int = 0

    def lower(self, expr: s.Expr, env: Env) -> Value:
        """The value of an expression, within limits on depth and on what the op unfolds to."""
        scope = self.scope
        scope.nodes += 1
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                scope.fail_once(forms.too_deep(expr.span, MAX_DEPTH))
            if scope.nodes > MAX_NODES:
                scope.fail_once(forms.too_much(expr.span, MAX_NODES))
            return self.lowering(expr, self, env)
        finally:
            self.depth -= 1

    def lower_all(self, exprs: tuple[s.Expr, ...], env: Env) -> list[Value]:
        """Each of several operands, so that faults in all of them are reported."""
        result: list[Value] = []
        failed = False
        for expr in exprs:
            try:
                result.append(self.lower(expr, env))
            except Skip:
                failed = True
        if failed:
            raise Skip
        return result

    def at_root(self, expr: s.Expr) -> bool:
        """Whether the expression is the whole value of the statement."""
        return expr is self.root

    def label(self, expr: s.Expr, fallback: str) -> str:
        """The name of the ``let`` that the expression is bound by, else the fallback."""
        return self.labels.get(id(expr), fallback)

    def variable(self, shown: str, span: Span) -> IndexVar:
        """A new index, under the name that was written unless another index has it."""
        taken = self.scope.names()
        name, n = shown, 1
        while name in self.variables or name in taken:
            n += 1
            name = f"{shown}{n}"
        var = IndexVar(name, shown, span)
        self.variables[name] = var
        return var

    def pending(self, variables: list[IndexVar], env: Env) -> tuple[Int, ...]:
        """Conditions after ``for`` on indices that a reduction binds, once all of them are bound."""
        found: list[Int] = []
        shown = {v.shown for v in variables if not env.is_closed}
        for k, (condition, names) in enumerate(self.loose):
            if names & shown and all(isinstance(env.find(n), IndexVar) for n in names):
                self.used.add(k)
                domain = conditions((condition,), self.scope, env)
                found += domain.constraints
                for v in variables:
                    v.conditions += [c for c in domain.constraints if v.name in c.free_indices()]
        return tuple(found)

    def temp(self, label: str, value: Value, span: Span, domain: tuple[Int, ...] = ()) -> Read:
        """Name a value and read it back; an equal value keeps the name that it has."""
        key = (value, domain)
        if key in self.shared:
            old = self.temps[self.shared[key]]
            at = tuple(Int.of(Index(i)) for i in old.indices)
            return Read(name=old.name, indices=at, dtype=value.dtype, span=span)
        n = self.counts[label] = self.counts.get(label, 0) + 1
        name = self.shared[key] = f"{self.name}.{label}.{n}"
        free = free_indices(value) | {n for c in domain for n in c.free_indices()}
        indices = tuple(v for v in self.variables if v in free)
        constraints = () if isinstance(value, Reduce) else self.inherited(value)
        constraints = tuple(dict.fromkeys((*domain, *constraints)))
        self.temps[name] = Temp(name, indices, value, constraints, span)
        at = tuple(Int.of(Index(i)) for i in indices)
        return Read(name=name, indices=at, dtype=value.dtype, span=span)

    def inherited(self, value: Value, guards: tuple[Int, ...] = ()) -> tuple[Int, ...]:
        """The domain that a value has from what it reads (outside guards that imply it)."""
        found: dict[Int, None] = {}
        self._inherit(value, guards, found)
        return tuple(found)

    def _inherit(self, value: Value, guards: tuple[Int, ...], found: dict[Int, None]) -> None:
        match value:
            case Read(otherwise=None):
                facts = self.scope.facts.extended(guards)
                for c in self.constraints_of(value):
                    if c not in found and not (guards and prove(c, facts)):
                        found[c] = None
                return
            case Read(otherwise=other):
                assert other is not None
                self._inherit(other, guards, found)
                return
            case Reduce():
                return
            case Select(condition=condition, a=a, b=b):
                yes, no = guard_facts(condition)
                self._inherit(condition, guards, found)
                self._inherit(a, (*guards, *yes), found)
                self._inherit(b, (*guards, *no), found)
                return
            case _:
                for child in operands(value):
                    self._inherit(child, guards, found)

    def constraints_of(self, read: Read) -> tuple[Int, ...]:
        """The domain of what is read, at the indices of the read."""
        source: Temp | Define | None = self.temps.get(read.name) or self.scope.defines.get(read.name)
        if source is None:
            return ()
        constraints = list(source.constraints)
        if isinstance(source, Define):
            constraints += [Int.of(Index(r.index)) - r.lower for r in source.ranges if r.lower.constant != 0]
        table = dict(zip(source.indices, read.indices, strict=True))
        return tuple(
            c.substitute(lambda a: table.get(a.name) if isinstance(a, Index) else None) for c in constraints
        )


def guard_facts(condition: Value) -> tuple[tuple[Int, ...], tuple[Int, ...]]:
    """What is known, as expressions ``>= 0``, where a condition holds and where it does not."""
    from opspec.frontend.integer_exprs import comparison, value_to_integer
    from opspec.ir.values import Binary, Cast, Compare, Unary

    def integer(value: Value) -> Int | None:
        if isinstance(value, Cast) and value.implicit and value.dtype.kind == "int":
            return integer(value.x)
        return value_to_integer(value)

    match condition:
        case Compare(op=op, a=a, b=b):
            x, y = integer(a), integer(b)
            if x is None or y is None:
                return (), ()
            opposite = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}[op]
            return tuple(comparison(op, x, y)), tuple(comparison(opposite, x, y))
        case Binary(op="and", a=a, b=b):
            (ya, na), (yb, nb) = guard_facts(a), guard_facts(b)
            return (*ya, *yb), ()
        case Binary(op="or", a=a, b=b):
            (ya, na), (yb, nb) = guard_facts(a), guard_facts(b)
            return (), (*na, *nb)
        case Unary(op="not", x=x):
            yes, no = guard_facts(x)
            return no, yes
        case Read(name=name, indices=indices, otherwise=None):
            truth = Int.of(Datum(name, indices))
            return (truth - 1,), (-truth,)
        case _:
            return (), ()


def size(value: Value, limit: int) -> int:
    """Number of nodes, counted up to a limit."""
    n, stack = 0, [value]
    while stack and n < limit:
        n += 1
        stack.extend(operands(stack.pop()))
    return n


def height(value: Value, limit: int) -> int:
    """How deep a value is, up to a limit."""
    level, depth = [value], 0
    while level and depth < limit:
        depth += 1
        level = [c for v in level for c in operands(v)]
    return depth


def is_trivial(value: Value) -> bool:
    """Whether repeating the value costs nothing, so that it needs no name."""
    from opspec.ir.values import Extent, Scalar

    match value:
        case Literal() | Extent() | Scalar() | Read(otherwise=None):
            return True
        case _:
            return False
