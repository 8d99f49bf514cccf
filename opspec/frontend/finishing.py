"""From a draft to ``Define``s: ranges, domains of temporaries, and the proofs about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from opspec.frontend.drafts import Draft, Temp, guard_facts
from opspec.frontend.ranges import settle
from opspec.frontend.reads import check_emptiness, check_reads
from opspec.ir import bounds
from opspec.ir.dtypes import Storage
from opspec.ir.integers import Int
from opspec.ir.program import Define, Output
from opspec.ir.values import Range, Read, Reduce, Scan, Select, Value, map_values, operands
from opspec.source import Span


@dataclass(frozen=True, slots=True)
class Target:
    """What a statement defines and where it stores it."""

    name: str
    indices: tuple[str, ...]
    constraints: tuple[Int, ...]
    storage: Storage | None
    output: Output | None
    span: Span


def finish(draft: Draft, target: Target, value: Value) -> list[Define]:
    """The statement's defines, temporaries first; faults are reported."""
    ranges = settle(draft, target.constraints)
    scope = draft.scope
    constraints = tuple(dict.fromkeys((*target.constraints, *draft.inherited(value))))
    root = Temp(target.name, target.indices, value, constraints, target.span)
    parts = [*draft.temps.values(), root]
    for part in parts:
        part.value = _with_ranges(part.value, ranges, draft)
        part.constraints = _needed(part.constraints, _box(part.indices, ranges), draft)
    guarded: set[str] = set()
    while True:
        own = {p.name: p.constraints for p in parts}
        _narrow(parts, ranges, draft, guarded)
        moved = _repair(parts, ranges, draft, guarded)
        if moved is None:
            break
        for part in parts:
            part.constraints = own[part.name]
        parts = moved
    for part in parts:
        facts = scope.facts.extended(bounds.domain(_box(part.indices, ranges), part.constraints))
        check_reads(part.value, part.constraints, facts, draft, report=True)
        check_emptiness(part.value, facts, draft, report=True)
    return [_define(p, p is parts[-1], target, draft, ranges) for p in parts]


def _define(part: Temp, is_root: bool, target: Target, draft: Draft, ranges: dict[str, Range]) -> Define:
    return Define(
        name=part.name,
        origin=draft.origin,
        kind="value" if is_root else "temp",
        ranges=_box(part.indices, ranges),
        constraints=part.constraints,
        value=part.value,
        storage=target.storage if is_root else None,
        output=target.output if is_root else None,
        span=part.span,
    )


def _box(indices: tuple[str, ...], ranges: dict[str, Range]) -> tuple[Range, ...]:
    return tuple(ranges[i] for i in indices)


def _needed(constraints: tuple[Int, ...], box: tuple[Range, ...], draft: Draft) -> tuple[Int, ...]:
    """Without those that follow from the ranges and from the others."""
    kept = list(dict.fromkeys(constraints))
    base = bounds.domain(box)
    for c in list(kept):
        others = [k for k in kept if k != c]
        if bounds.prove(c, draft.scope.facts.extended((*base, *others))):
            kept = others
    return tuple(kept)


def _with_ranges(value: Value, ranges: dict[str, Range], draft: Draft) -> Value:
    """Fill in the ranges of reductions, and drop conditions that these imply."""
    value = map_values(value, lambda v: _with_ranges(v, ranges, draft))
    if isinstance(value, Reduce):
        box = tuple(ranges[r.index] for r in value.ranges)
        free = sorted({n for c in value.constraints for n in c.free_indices()} - {r.index for r in box})
        context = (*box, *(ranges[n] for n in free))
        return replace(value, ranges=box, constraints=_needed(value.constraints, context, draft))
    return value


# domains of temporaries ----------------------------------------------------------
def _narrow(parts: list[Temp], ranges: dict[str, Range], draft: Draft, guarded: set[str]) -> None:
    """Give each temporary the domain that it is used on, where that is one."""
    for k in range(len(parts) - 2, -1, -1):
        temp = parts[k]
        uses = [
            _projected(site, temp, ranges)
            for user in parts[k + 1 :]
            for site in _sites(user.value, temp.name, user.constraints, use_guards=temp.name in guarded)
        ]
        if not uses:
            continue
        base = bounds.domain(_box(temp.indices, ranges))
        common = [
            c
            for c in uses[0]
            if all(c in u or bounds.prove(c, draft.scope.facts.extended((*base, *u))) for u in uses[1:])
        ]
        if isinstance(temp.value, Scan):
            common = [c for c in common if temp.value.index not in c.free_indices()]
        both = tuple(dict.fromkeys((*temp.constraints, *common)))
        temp.constraints = _needed(both, _box(temp.indices, ranges), draft)


def _sites(
    value: Value, name: str, constraints: tuple[Int, ...], *, use_guards: bool
) -> Iterator[tuple[Int, ...]]:
    """The domain around each read of a temporary."""
    match value:
        case Read() if value.name == name:
            yield constraints
        case Reduce(constraints=own, body=body, empty=empty):
            yield from _sites(body, name, (*constraints, *own), use_guards=use_guards)
            if empty is not None:
                yield from _sites(empty, name, constraints, use_guards=use_guards)
            return
        case Scan(index=index, body=body):
            free = tuple(c for c in constraints if index not in c.free_indices())
            yield from _sites(body, name, free, use_guards=use_guards)
            return
        case Select(condition=condition, a=a, b=b) if use_guards:
            yes, no = guard_facts(condition)
            yield from _sites(condition, name, constraints, use_guards=True)
            yield from _sites(a, name, (*constraints, *yes), use_guards=True)
            yield from _sites(b, name, (*constraints, *no), use_guards=True)
            return
    for child in operands(value):
        yield from _sites(child, name, constraints, use_guards=use_guards)


def _projected(site: tuple[Int, ...], temp: Temp, ranges: dict[str, Range]) -> tuple[Int, ...]:
    """The constraints that a use puts on the temporary's own indices."""
    constraints = site
    own = set(temp.indices)
    while True:
        other = sorted({n for c in constraints for n in c.free_indices()} - own)
        if not other:
            return tuple(c for c in constraints if c.free_indices() or c.tensors())
        name = other[0]
        box = bounds.domain([ranges[name]])[:2]
        constraints, _ = bounds.eliminate(name, (*constraints, *box))


# temporaries that only a guard makes safe -------------------------------------------
def _repair(
    parts: list[Temp], ranges: dict[str, Range], draft: Draft, guarded: set[str]
) -> list[Temp] | None:
    """Put a temporary whose reads need a ``where`` around them back into its users.

    A reduction stays one, and takes the guard into its domain. None: nothing to do.
    """
    for temp in parts[:-1]:
        facts = draft.scope.facts.extended(bounds.domain(_box(temp.indices, ranges), temp.constraints))
        fine = check_reads(temp.value, temp.constraints, facts, draft, report=False) and check_emptiness(
            temp.value, facts, draft, report=False
        )
        if fine or temp.name in guarded:
            continue
        if isinstance(temp.value, Reduce | Scan):
            guarded.add(temp.name)
            return parts
        del draft.temps[temp.name]
        rest = [p for p in parts if p is not temp]
        for part in rest:
            part.value = _replaced(part.value, temp.name, temp.value)
        return rest
    return None


def _replaced(value: Value, name: str, new: Value) -> Value:
    if isinstance(value, Read) and value.name == name:
        return new
    return map_values(value, lambda v: _replaced(v, name, new))
