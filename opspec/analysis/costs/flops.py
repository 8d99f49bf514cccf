"""FLOPs of an op by unit (semantics, rules 15 to 18).

Every operation counts once per point of the indices and the projected domain that
it depends on, and structurally equal ones once in the whole op. Free: literals,
expressions of dims alone, integer arithmetic of indices, loads, casts, ``-x`` and
``not x``. One ``sfu`` operation: exp, log, sqrt, rsqrt, sin, cos, tanh, erf, reciprocal.
One ``vector`` operation: everything else. Forms hold for extents of at least 1 where
an operand does not depend on all of them: ``w[n]`` is read though M be 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from opspec.analysis.costs.contraction import contraction_of, factors_of
from opspec.analysis.costs.model import FlopTerm, Unit
from opspec.analysis.costs.numbering import Node, Numbering
from opspec.analysis.lattice import Domain, Facts, Inexact, canonical, count_points, project
from opspec.ir.program import Define, Op
from opspec.ir.values import (
    TRANSCENDENTAL,
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Read,
    Reduce,
    Scalar,
    Scan,
    Select,
    Unary,
    Value,
)


def count_flops(op: Op, facts: Facts) -> tuple[FlopTerm, ...]:
    """The operations of all statements, in order, each distinct one once."""
    counter = _Counter(op, facts, Numbering(op))
    for define in op.defines:
        counter.statement(define)
    return tuple(counter.terms)


@dataclass(slots=True)
class _Counter:
    op: Op
    facts: Facts
    numbering: Numbering
    terms: list[FlopTerm] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)

    def statement(self, define: Define) -> None:
        """Count what a statement adds to those before it."""
        try:
            self._visit(define.value, Domain.of(define.ranges, define.constraints), define)
        except Inexact as reason:
            raise Inexact(str(reason), define.span) from None
        self.numbering.enter(define)

    def _visit(self, value: Value, domain: Domain, define: Define) -> None:
        node = self.numbering.number(value)
        if node.fixed:
            return
        match value:
            case Literal() | Extent() | Scalar():
                return
            case Read(otherwise=otherwise):
                if otherwise is not None:
                    self._visit(otherwise, domain, define)
                return
            case Cast(x=x):
                self._visit(x, domain, define)
            case Unary(op=op, x=x):
                self._visit(x, domain, define)
                if op in TRANSCENDENTAL:
                    self._reciprocal(x, domain, define) if op == "reciprocal" else self._count(
                        node, domain, define, "sfu", op
                    )
                elif op not in ("neg", "not"):
                    self._count(node, domain, define, "vector", op)
            case Binary(op="div", a=a, b=b):
                self._visit(a, domain, define)
                self._visit(b, domain, define)
                self._reciprocal(b, domain, define)
                self._count(node, domain, define, "vector", "mul")
            case Binary(op=op, a=a, b=b) | Compare(op=op, a=a, b=b):
                self._visit(a, domain, define)
                self._visit(b, domain, define)
                self._count(node, domain, define, "vector", "compare" if isinstance(value, Compare) else op)
            case Select(condition=condition, a=a, b=b):
                for part in (condition, a, b):
                    self._visit(part, domain, define)
                self._count(node, domain, define, "vector", "select")
            case Reduce():
                self._reduce(value, node, domain, define)
            case Scan(monoid=monoid, body=body, decay=decay):
                self._visit(body, domain, define)
                self._count(node, domain, define, "vector", monoid)
                if decay is not None:
                    self._visit(decay, domain, define)
                    mark = self.numbering.make(("decay",), (node,))
                    self._count(mark, domain, define, "vector", "mul")
            case _:
                assert_never(value)

    def _reciprocal(self, b: Value, domain: Domain, define: Define) -> None:
        inner = self.numbering.number(b)
        if not (inner.fixed and not inner.args):
            self._count(
                self.numbering.make(("unary", "reciprocal"), (inner,)), domain, define, "sfu", "reciprocal"
            )

    def _reduce(self, value: Reduce, node: Node, outer: Domain, define: Define) -> None:
        whole = outer.within(Domain.of(value.ranges, value.constraints))
        if value.empty is not None:
            self._visit(value.empty, outer, define)
        bound = frozenset(r.index for r in value.ranges)
        found = contraction_of(value, self.numbering)
        if found is None:
            self._visit(value.body, whole, define)
            self._count_at(node, bound, whole, define, "vector", value.monoid)
            return
        for factor, is_reciprocal in factors_of(value.body):
            self._visit(factor, whole, define)
            if is_reciprocal:
                self._reciprocal(factor, whole, define)
        self._count_at(node, bound, whole, define, "tensor", "contraction", scale=2, dtype=found.dtype)
        for position, carries in enumerate(found.further):
            mark = self.numbering.make(("factor", position), (node,))
            self._count_at(mark, bound if carries else frozenset(), whole, define, "vector", "mul")

    def _count(self, node: Node, domain: Domain, define: Define, unit: Unit, op: str) -> None:
        self._count_at(node, frozenset(), domain, define, unit, op)

    def _count_at(
        self,
        node: Node,
        bound: frozenset[str],
        domain: Domain,
        define: Define,
        unit: Unit,
        op: str,
        *,
        scale: int = 1,
        dtype: str = "",
    ) -> None:
        """One term over the shadow of the domain on the node's indices and some bound ones."""
        shadow = project(domain, frozenset(node.args) | bound, self.facts)
        order = (*node.args, *(x for x in shadow.indices if x in bound))
        key = (node.number, unit, op, canonical(shadow, order))
        if key in self.seen:
            return
        self.seen.add(key)
        self.terms.append(
            FlopTerm(
                origin=define.origin,
                statement=define.name,
                unit=unit,
                op=op,
                count=scale * count_points(shadow, self.facts),
                dtype=dtype,
            )
        )


def merged(terms: Iterator[FlopTerm] | tuple[FlopTerm, ...]) -> tuple[FlopTerm, ...]:
    """Terms of one origin, unit, operation and dtype added up, for display."""
    total: dict[tuple[str, Unit, str, str], FlopTerm] = {}
    for t in terms:
        key = (t.origin, t.unit, t.op, t.dtype)
        total[key] = replace(total[key], count=total[key].count + t.count) if key in total else t
    return tuple(total.values())
