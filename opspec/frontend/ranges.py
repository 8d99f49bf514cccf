"""Which values an index takes: the extents of the axes that it stands on, and its conditions."""

from __future__ import annotations

from collections.abc import Iterable

from opspec.frontend.drafts import Draft
from opspec.frontend.faults import names
from opspec.frontend.scope import Axis, IndexVar, OpScope
from opspec.ir import bounds
from opspec.ir.integers import ZERO, Datum, Int
from opspec.ir.values import Range


def settle(draft: Draft, explicit: Iterable[Int]) -> dict[str, Range]:
    """The range of every index of a statement; reports and skips where there is none."""
    explicit = tuple(explicit)
    result: dict[str, Range] = {}
    later: list[IndexVar] = []
    for var in draft.variables.values():
        found = _plain(var, [*var.conditions, *explicit], draft.scope)
        if found is None:
            later.append(var)
        else:
            result[var.name] = found
    for var in later:
        result[var.name] = _reaching(var, [*var.conditions, *explicit], result, draft)
    return result


def _plain(var: IndexVar, conditions: list[Int], scope: OpScope) -> Range | None:
    """From its axes and from conditions on dims alone; None where those say nothing."""
    lower, upper = _stated(var, conditions)
    axes = _distinct([a for a in var.axes if not a.weak], scope)
    if not axes:
        axes = _smallest(_distinct(var.axes, scope), scope)
    if var.shared and axes:
        lower, upper = [], []
    low = lower[0] if len(lower) == 1 else ZERO
    if not axes:
        return Range(index=var.name, lower=low, upper=upper[0]) if upper else None
    facts = scope.facts.extended(bounds.domain([Range(index="", upper=u) for u in upper]))
    for u in upper:
        if all(bounds.prove(a.upper - u, facts) for a in axes):
            return Range(index=var.name, lower=_low(low, facts), upper=u)
    if len(axes) > 1:
        first, second = axes[0], axes[1]
        smallest = _smallest(axes, scope)
        scope.fail(
            names.extents(
                second.span,
                var.shown,
                str(first.upper),
                str(second.upper),
                first.span,
                first.words,
                second.words,
                str(smallest[0].upper) if len(smallest) == 1 else "",
            )
        )
    return Range(index=var.name, lower=_low(low, facts), upper=axes[0].upper)


def _low(low: Int, facts: bounds.Facts) -> Int:
    return low if bounds.prove(low, facts) else ZERO


def _stated(var: IndexVar, conditions: list[Int]) -> tuple[list[Int], list[Int]]:
    """Bounds of an index that depend on dims alone: lower ones, and exclusive upper ones."""
    lower: list[Int] = []
    upper: list[Int] = []
    for c in dict.fromkeys(conditions):
        if c.free_indices() != {var.name} or c.tensors():
            continue
        found = bounds.interval(var.name, [c])
        if found is not None:
            lower += found[0]
            upper += [u + 1 for u in found[1]]
    return lower, upper


def _distinct(axes: list[Axis], scope: OpScope) -> list[Axis]:
    """One axis per extent, in order of writing."""
    found: list[Axis] = []
    for axis in axes:
        if not any(bounds.equal(axis.upper, f.upper, scope.facts) for f in found):
            found.append(axis)
    return found


def _smallest(axes: list[Axis], scope: OpScope) -> list[Axis]:
    """The one that fits inside all others, or all of them if there is none."""
    for a in axes:
        if all(bounds.prove(b.upper - a.upper, scope.facts) for b in axes):
            return [a]
    return axes


def _reaching(var: IndexVar, conditions: list[Int], known: dict[str, Range], draft: Draft) -> Range:
    """From conditions that involve other indices: the furthest that they let it go."""
    mine = [c for c in dict.fromkeys(conditions) if var.name in c.free_indices()]
    found = bounds.interval(var.name, [c for c in mine if not c.tensors()])
    for u in found[1] if found is not None else ():
        furthest = bounds.extreme(
            u, [known[n] for n in u.free_indices() if n in known], (), draft.scope.facts
        )
        if furthest is not None:
            return Range(index=var.name, upper=furthest + 1)
    for c in mine:
        split = bounds.interval(var.name, [c])
        if split is not None and split[1] and c.tensors():
            for u in split[1]:
                promised = _promised(u + 1, draft.scope)
                if promised is not None:
                    return Range(index=var.name, upper=promised)
    near = next(((str(a.upper), str(a.whole or a.upper), a.words, a.span) for a in var.beside), None)
    dims = [*draft.scope.dims, *draft.scope.derived]
    return draft.scope.fail(names.no_extent(var.span, var.shown, dims, near))


def _promised(value: Int, scope: OpScope) -> Int | None:
    """A bound in dims alone of one element read from a tensor, where one is assumed; what is added to it
    may hold dims."""
    for atom in value.atoms():
        rest = value - Int.of(atom)
        if not isinstance(atom, Datum) or rest.tensors() or rest.free_indices():
            continue
        for bound in scope.facts.data:
            top = _without(bound.slack, bound.tensor) if bound.tensor == atom.tensor else None
            if top is not None and not top.free_indices() and not top.tensors():
                return top + rest
    return None


def _without(slack: Int, tensor: str) -> Int | None:
    """``T`` where the slack is ``T - len[b]``."""
    kept = []
    for monomial, c in slack.terms:
        if any(isinstance(a, Datum) and a.tensor == tensor for a, _ in monomial):
            if c != -1 or len(monomial) != 1:
                return None
            continue
        kept.append((monomial, c))
    return Int(tuple(kept)) if len(kept) == len(slack.terms) - 1 else None
