"""From a draft to ``Define``s: ranges, domains of temporaries, and the proofs about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from opspec.frontend.drafts import Draft, Temp, guard_facts, size
from opspec.frontend.faults import syntax as forms
from opspec.frontend.ranges import settle
from opspec.frontend.reads import check_emptiness, check_reads
from opspec.ir import bounds
from opspec.ir.dtypes import Storage
from opspec.ir.integers import Int
from opspec.ir.program import Define, Output
from opspec.ir.values import Range, Read, Reduce, Scan, Select, Value, map_values, operands, walk
from opspec.source import Span

MAX_INDICES = 64
MAX_CONDITIONS = 48
REPEATED = 24
"""Nodes from which on a value is not repeated for the sake of a guard."""


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
    scope = draft.scope
    if len(draft.variables) > MAX_INDICES or len(target.constraints) > MAX_CONDITIONS:
        scope.fail(forms.too_many(target.span, MAX_INDICES, MAX_CONDITIONS))
    ranges = settle(draft, target.constraints)
    constraints = tuple(dict.fromkeys((*target.constraints, *draft.inherited(value))))
    root = Temp(target.name, target.indices, value, constraints, target.span)
    parts = [*draft.temps.values(), root]
    if any(len(c) > MAX_CONDITIONS for p in parts for c in (p.constraints, conditions_of(p.value))):
        scope.fail(forms.too_many(target.span, MAX_INDICES, MAX_CONDITIONS))
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


def conditions_of(value: Value) -> tuple[Int, ...]:
    """The conditions of a reduction."""
    return value.constraints if isinstance(value, Reduce) else ()


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
    users: dict[str, list[Temp]] = {}
    for part in parts:
        for name in {v.name for v in walk(part.value) if isinstance(v, Read)}:
            users.setdefault(name, []).append(part)
    for temp in reversed(parts[:-1]):
        uses = [
            _projected(site, temp, ranges)
            for user in users.get(temp.name, ())
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
        case Scan(index=index):
            free = tuple(c for c in constraints if index not in c.free_indices())
            for child in operands(value):
                yield from _sites(child, name, free, use_guards=use_guards)
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
    """Put temporaries whose reads need a ``where`` around them back into their users.

    A reduction, and a value too big to repeat, stay and take the guard into their domain.
    None: nothing to do.
    """
    changed = False
    kept: list[Temp] = []
    gone: dict[str, Value] = {}
    for part in parts:
        if gone:
            part.value = _replaced(part.value, gone)
        if part is parts[-1] or _is_fine(part, ranges, draft):
            kept.append(part)
            continue
        if part.name in guarded:  # the guard stands around one of its users
            above = _above(part.name, parts[:-1])
            changed = changed or not above <= guarded
            guarded |= above
            kept.append(part)
            continue
        changed = True
        if isinstance(part.value, Reduce | Scan) or size(part.value, REPEATED) >= REPEATED:
            guarded.add(part.name)
            kept.append(part)
        else:
            gone[part.name] = part.value
            del draft.temps[part.name]
    return kept if changed else None


def _above(name: str, parts: list[Temp]) -> set[str]:
    """The temporaries that read one, directly or through others."""
    found = {name}
    for part in parts:
        if any(isinstance(v, Read) and v.name in found for v in walk(part.value)):
            found.add(part.name)
    return found


def _is_fine(temp: Temp, ranges: dict[str, Range], draft: Draft) -> bool:
    facts = draft.scope.facts.extended(bounds.domain(_box(temp.indices, ranges), temp.constraints))
    return check_reads(temp.value, temp.constraints, facts, draft, report=False) and check_emptiness(
        temp.value, facts, draft, report=False
    )


def _replaced(value: Value, gone: dict[str, Value]) -> Value:
    if isinstance(value, Read) and value.name in gone:
        return gone[value.name]
    return map_values(value, lambda v: _replaced(v, gone))
