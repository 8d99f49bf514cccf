"""Which elements each block reads and writes: one ``Access`` per read in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from opspec.analysis.lattice import Domain
from opspec.ir.integers import ZERO, Atom, Datum, Int
from opspec.ir.program import Define, Kernel, Op
from opspec.ir.values import (
    Binary,
    Compare,
    CompareOp,
    Extent,
    Literal,
    Read,
    Reduce,
    Select,
    Unary,
    Value,
    integers,
    operands,
)


@dataclass(frozen=True, slots=True)
class Access:
    """``name[at]`` for every point of the domain; ``name`` is a tensor or a statement.

    ``clipped``: taps outside the tensor give the ``else`` value and touch nothing.
    """

    name: str
    at: tuple[Int, ...]
    domain: Domain
    origin: str
    clipped: bool = False


def reads_of(define: Define) -> Iterator[Access]:
    """Every read that a statement makes, of tensors and statements, data in bounds included."""
    domain = Domain.of(define.ranges, define.constraints)
    used = [*(x for r in define.ranges for x in (r.lower, r.upper)), *define.constraints]
    if define.output is not None:
        used += define.output.at
    yield from _data(used, domain, define.origin)
    yield from _reads(define.value, domain, define.origin)


def _reads(value: Value, domain: Domain, origin: str) -> Iterator[Access]:
    match value:
        case Read(name=name, indices=at, otherwise=otherwise):
            yield Access(name, at, domain, origin, clipped=otherwise is not None)
            yield from _data(at, domain, origin)
            if otherwise is not None:
                yield from _reads(otherwise, domain, origin)
        case Select(condition=condition, a=a, b=b):
            yield from _reads(condition, domain, origin)
            for branch, holds in ((a, True), (b, False)):
                for case in _cases(condition, holds):
                    yield from _reads(branch, domain.where(case), origin)
        case Reduce(ranges=ranges, constraints=constraints, body=body, empty=empty):
            inner = domain.within(Domain.of(ranges, constraints))
            yield from _data(integers(value), inner, origin)
            yield from _reads(body, inner, origin)
            if empty is not None:
                yield from _reads(empty, domain, origin)
        case Extent(value=v):
            yield from _data((v,), domain, origin)
        case _:
            for child in operands(value):
                yield from _reads(child, domain, origin)


def _data(values: Iterable[Int], domain: Domain, origin: str) -> Iterator[Access]:
    """Reads of index tensors inside integer expressions. A bound read for all points of a
    domain is read whether or not the domain that it bounds is empty."""
    seen: set[Atom] = set()
    for value in values:
        for atom in value.atoms():
            if isinstance(atom, Datum) and atom not in seen:
                seen.add(atom)
                free = Int.of(atom).free_indices()
                inside = tuple(c for c in domain.constraints if not _about(c, atom, free))
                yield Access(atom.tensor, atom.indices, Domain(domain.indices, inside), origin)


def _about(constraint: Int, atom: Datum, free: frozenset[str]) -> bool:
    return any(a == atom for a in constraint.atoms()) and bool(constraint.free_indices() - free)


def _cases(condition: Value, holds: bool) -> list[list[Int]]:
    """The condition (or its negation) as alternatives of constraints; ``[[]]`` where it is on data."""
    match condition:
        case Compare(op=op, a=a, b=b):
            left, right = _integer(a), _integer(b)
            if left is None or right is None:
                return [[]]
            return _comparison(op if holds else _NEGATED[op], left - right)
        case Unary(op="not", x=x):
            return _cases(x, not holds)
        case Binary(op="and" | "or" as op, a=a, b=b):
            these, those = _cases(a, holds), _cases(b, holds)
            if (op == "and") == holds:
                return [[*p, *q] for p in these for q in those]
            return [[]] if [] in these or [] in those else [*these, *those]
        case _:
            return [[]]


def _integer(value: Value) -> Int | None:
    """The value as an integer of dims and indices; None if it depends on data or is no integer."""
    match value:
        case Extent(value=v):
            return None if v.tensors() else v
        case Literal(value=v, dtype=dtype) if dtype.kind == "int":
            return Int.of(int(v))
        case Binary(op="add" | "sub" | "mul" as op, a=a, b=b) if value.dtype.kind == "int":
            left, right = _integer(a), _integer(b)
            if left is None or right is None:
                return None
            return left + right if op == "add" else left - right if op == "sub" else left * right
        case _:
            return None


_NEGATED: dict[CompareOp, CompareOp] = {
    "lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq",
}  # fmt: skip


def _comparison(op: CompareOp, d: Int) -> list[list[Int]]:
    """``d op 0`` as alternatives of constraints."""
    match op:
        case "lt":
            return [[-d - 1]]
        case "le":
            return [[-d]]
        case "gt":
            return [[d - 1]]
        case "ge":
            return [[d]]
        case "eq":
            return [[d, -d]]
        case "ne":
            return [[d - 1], [-d - 1]]
        case _:
            assert_never(op)


def reads_in(op: Op, kernel: Kernel) -> dict[str, list[Access]]:
    """Reads of a block that cost bytes, by name: of parameters, of outputs and values of other blocks.

    A value made in the block itself is not read. An updated tensor reads as its old
    value until the statement that assigns it.
    """
    found: dict[str, list[Access]] = {}
    here: set[str] = set()
    filled: set[str] = set()
    for define in kernel.body:
        for access in reads_of(define):
            tensor = op.tensor(access.name)
            own = access.name in here or (
                tensor is not None and tensor.role == "out" and access.name in filled
            )
            if not own:
                found.setdefault(access.name, []).append(access)
        here.add(define.name)
        if define.output is not None:
            filled.add(define.output.tensor)
    return found


def written_in(kernel: Kernel) -> dict[str, list[Access]]:
    """Writes to outputs in a block, by tensor."""
    found: dict[str, list[Access]] = {}
    for define in kernel.body:
        if define.output is not None:
            domain = Domain.of(define.ranges, define.constraints)
            access = Access(define.output.tensor, define.output.at, domain, define.origin)
            found.setdefault(define.output.tensor, []).append(access)
    return found


def crossing(kernels: tuple[Kernel, ...]) -> dict[str, tuple[str, Define]]:
    """Values without an output that another block than their own reads: name to (block, statement)."""
    home = {d.name: (k.name, d) for k in kernels for d in k.body}
    found: dict[str, tuple[str, Define]] = {}
    for kernel in kernels:
        for define in kernel.body:
            for access in reads_of(define):
                at = home.get(access.name)
                if at is not None and at[0] != kernel.name and at[1].output is None:
                    found[access.name] = at
    return found


__all__ = ["ZERO", "Access", "crossing", "reads_in", "reads_of", "written_in"]
