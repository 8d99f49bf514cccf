"""Rule 3 and rule 4: reads stay in range, and reductions without identity are not empty."""

from __future__ import annotations

from collections.abc import Iterator

from opspec.frontend.drafts import Draft, guard_facts
from opspec.frontend.faults import domains
from opspec.ir import bounds
from opspec.ir.bounds import Facts, prove
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Define
from opspec.ir.values import Read, Reduce, Select, Value, integers, operands
from opspec.source import Span


def check_reads(
    value: Value, constraints: tuple[Int, ...], facts: Facts, draft: Draft, *, report: bool
) -> bool:
    """Whether every read in a value is in range under the facts."""
    fine = True
    for c in constraints:
        fine = _data(c, facts, draft, draft.scope.places.get(c, value.span), report=report) and fine
    for node, known in _visit(value, facts):
        here = True
        for i in integers(node):
            place = draft.scope.places.get(i, node.span)
            here = _data(i, known, draft, place, report=report) and here
        if isinstance(node, Read) and node.otherwise is None:
            here = _read(node, known, draft, report=report) and here
        fine = fine and here
        if not fine and not report:
            return False
    return fine


def _visit(value: Value, facts: Facts) -> Iterator[tuple[Value, Facts]]:
    """Each node with what is known where it is evaluated."""
    match value:
        case Select(condition=condition, a=a, b=b):
            yes, no = guard_facts(condition)
            yield value, facts
            yield from _visit(condition, facts)
            yield from _visit(a, facts.extended(yes) if yes else facts)
            yield from _visit(b, facts.extended(no) if no else facts)
        case Reduce(ranges=ranges, constraints=constraints, body=body, empty=empty):
            inner = facts.extended(bounds.domain(ranges, constraints))
            yield value, inner
            yield from _visit(body, inner)
            if empty is not None:
                yield from _visit(empty, facts)
        case _:
            yield value, facts
            for child in operands(value):
                yield from _visit(child, facts)


def _read(node: Read, facts: Facts, draft: Draft, *, report: bool) -> bool:
    scope = draft.scope
    define = draft.temps.get(node.name)
    source: Define | None = scope.defines.get(node.name)
    if define is not None:
        axes: list[tuple[Int, Int]] = []
        where = None
    elif source is not None:
        axes = [(r.lower, r.upper) for r in source.ranges]
        where = source.span
    else:
        tensor = scope.tensors[node.name]
        axes = [(Int(()), e) for e in tensor.extents]
        where = tensor.span
    fine = True
    for k, (index, (lower, upper)) in enumerate(zip(node.indices, axes, strict=False)):
        fine = _axis(node, k, index, lower, upper, facts, draft, where, report=report) and fine
    for c in draft.constraints_of(node):
        if not prove(c, facts) and not _from_data(node):
            if report:
                scope.report.append(
                    domains.outside_domain(_place(node.span, draft), node.name, f"{c} >= 0", where)
                )
            return False
    return fine


def _from_data(node: Read) -> bool:
    return any(i.tensors() for i in node.indices)


def _axis(
    node: Read,
    k: int,
    index: Int,
    lower: Int,
    upper: Int,
    facts: Facts,
    draft: Draft,
    where: Span | None,
    *,
    report: bool,
) -> bool:
    if index.tensors():
        return True
    axis = f"axis {k} of `{node.name}`" if len(node.indices) > 1 else f"`{node.name}`"
    for over, goal in ((True, upper - 1 - index), (False, index - lower)):
        if not prove(goal, facts):
            if report:
                whole = _place(node.span, draft)
                written = draft.scope.written_indices.get(whole, ())
                place = written[k] if k < len(written) else whole
                text = place.text if k < len(written) else shown(index, draft)
                draft.scope.report.append(
                    domains.out_of_range(
                        place,
                        text,
                        axis,
                        str(upper),
                        over,
                        "",
                        where,
                        needed=_of_dims(goal),
                        within=_of_index(goal, draft),
                    )
                )
            return False
    return True


def _of_dims(goal: Int) -> str:
    """``C >= 1`` for ``C - 1 >= 0``; nothing where the goal has an index, or could never hold."""
    if goal.free_indices() or goal.tensors() or not goal.dims():
        return ""
    constant = next((c for m, c in goal.terms if not m), 0)
    return f"{goal - constant} >= {-constant}"


def _of_index(goal: Int, draft: Draft) -> str:
    """``n < N - 1`` for ``N - 2 - n >= 0``; nothing where the goal has other than one index."""
    found = bounds.interval(min(goal.free_indices()), [goal]) if len(goal.free_indices()) == 1 else None
    if found is None or goal.tensors():
        return ""
    (name,) = goal.free_indices()
    var = draft.variables.get(name)
    written = name if var is None else var.shown
    lower, upper = found
    if len(lower) + len(upper) != 1:
        return ""
    return f"{written} < {upper[0] + 1}" if upper else f"{written} >= {lower[0]}"


def shown(index: Int, draft: Draft) -> str:
    """An expression with the index names that the user wrote."""
    return str(index.rename({v.name: v.shown for v in draft.variables.values()}))


def _data(value: Int, facts: Facts, draft: Draft, span: Span | None, *, report: bool) -> bool:
    """The reads inside an integer expression: ``table[b, t // P]``."""
    fine = True
    for atom in value.atoms():
        if not isinstance(atom, Datum) or atom.tensor not in draft.scope.tensors:
            continue
        tensor = draft.scope.tensors[atom.tensor]
        for k, (index, extent) in enumerate(zip(atom.indices, tensor.extents, strict=True)):
            if index.tensors():
                continue
            for over, goal in ((True, extent - 1 - index), (False, index)):
                if prove(goal, facts):
                    continue
                fine = False
                if report:
                    axis = f"axis {k} of `{tensor.name}`" if len(atom.indices) > 1 else f"`{tensor.name}`"
                    draft.scope.report.append(
                        domains.out_of_range(
                            _place(span, draft),
                            shown(index, draft),
                            axis,
                            str(extent),
                            over,
                            "",
                            tensor.span,
                            needed=_of_dims(goal),
                            within=_of_index(goal, draft),
                        )
                    )
    return fine


def _place(span: Span | None, draft: Draft) -> Span:
    assert span is not None or draft.root is not None
    return span if span is not None else draft.root.span  # type: ignore[union-attr]


def check_emptiness(value: Value, facts: Facts, draft: Draft, *, report: bool) -> bool:
    """Whether every reduction that needs a point provably has one, where its box has."""
    if not isinstance(value, Reduce) or value.monoid not in ("max", "min", "argmax", "argmin"):
        return True
    if value.empty is not None or not value.constraints:
        return True
    boxes = bounds.domain(value.ranges)
    constraints: tuple[Int, ...] = (*value.constraints, *boxes)
    exact = True
    for r in value.ranges:
        constraints, sure = bounds.eliminate(r.index, constraints)
        exact = exact and sure
    known = facts.extended(c for c in boxes if not c.free_indices())
    missing = [c for c in constraints if not prove(c, known)]
    if exact and not missing:
        return True
    if report:
        text = shown(missing[0], draft) if missing else ""
        draft.scope.report.append(domains.may_be_empty(_place(value.span, draft), value.monoid, text))
    return False
