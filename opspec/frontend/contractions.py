"""Rule 10: say where a contraction stays off the matrix units for the sake of exactness."""

from __future__ import annotations

from opspec.diagnostics import Diagnostic
from opspec.frontend.faults import grouping
from opspec.frontend.faults.naming import in_statement
from opspec.ir.dtypes import Storage, choices
from opspec.ir.integers import FloorDiv
from opspec.ir.program import Op
from opspec.ir.values import Binary, Cast, Read, Reduce, Value, free_indices, integers, walk


def off_the_matrix_units(op: Op) -> list[Diagnostic]:
    """A warning for each contraction with an operand that no type of at most 16 bits holds exactly."""
    found: list[Diagnostic] = []
    home = {d.name: k.name for k in op.boundaries[0].kernels for d in k.body}
    statements = {d.origin: d.span for d in op.defines if d.kind == "value"}
    for define in op.defines:
        value = define.value
        if not isinstance(value, Reduce) or value.monoid != "sum" or value.using is not None:
            continue
        pair = operand_pair(value)
        if pair is None or value.span is None or _lone(value, *pair):
            continue
        operand = _inexact(value, pair, op, home, home[define.name])
        if operand is not None:
            place = operand.span if operand.span and operand.span.source == value.span.source else value.span
            text = place.text if place != value.span and len(place.text) < 40 else "an operand"
            several = (
                "" if operand in pair else "over" if (operand, True) in _factors(value.body) else "times"
            )
            kind = operand.dtype.name
            found.append(
                in_statement(
                    grouping.off_matrix(value.span, text, kind, place, further=several),
                    statements[define.origin],
                )
            )
    return found


def _inexact(
    reduce: Reduce, pair: tuple[Value, Value], op: Op, home: dict[str, str], kernel: str
) -> Value | None:
    """The operand that no type of at most 16 bits holds; of several factors beside the pair that are summed too, each
    makes one, since it multiplies an operand."""
    summed = {r.index for r in reduce.ranges}
    found = [x for x in pair if not _exact(x, op, home, kernel)]
    further = [f for f, _ in _factors(reduce.body) if f not in pair and free_indices(f) & summed]
    return next(iter([*found, *further]), None)


def operand_pair(reduce: Reduce) -> tuple[Value, Value] | None:
    """The two factors of a contraction (rule 17): both carry a summed index, over different indices."""
    summed = {r.index for r in reduce.ranges}
    factors = [f for f, divides in _factors(reduce.body) if free_indices(f) & summed and not divides]
    widest = sorted(factors, key=lambda f: -len(free_indices(f)))
    other = (f for f in widest if free_indices(f) != free_indices(widest[0]))
    pair = (widest[0], next(other, widest[0])) if widest else None
    if pair is None or pair[0] is pair[1]:
        return None
    return pair if free_indices(pair[0]) & free_indices(pair[1]) & summed else None


def _lone(reduce: Reduce, wide: Value, narrow: Value) -> bool:
    """Whether one operand brings no index of its own, so that no unit could multiply it as a matrix.

    Not where an index of the result is divided: of `k[h // G]`, the part of h within a group may become one.
    """
    summed = {r.index for r in reduce.ranges}
    return free_indices(narrow) <= free_indices(wide) and not any(
        isinstance(a, FloorDiv) and a.num.free_indices() - summed
        for v in (*walk(wide), *walk(narrow))
        for i in integers(v)
        for a in i.atoms()
    )


def _factors(value: Value) -> list[tuple[Value, bool]]:
    """The factors of a product in order of writing; True marks one that divides."""
    match value:
        case Binary(op="mul", a=a, b=b):
            return [*_factors(a), *_factors(b)]
        case Binary(op="div", a=a, b=b):
            return [*_factors(a), (b, True)]
        case _:
            return [(value, False)]


def _exact(value: Value, op: Op, home: dict[str, str], kernel: str) -> bool:
    match value:
        case Read(name=name) if name in home:
            define = next(d for d in op.defines if d.name == name)
            written = op.tensor(define.output.tensor) if define.output is not None else None
            storage = written.dtype if written is not None else define.storage
            return home[name] != kernel and storage is not None and _narrow(storage)
        case Read(name=name):
            tensor = op.tensor(name)
            return tensor is not None and _narrow(tensor.dtype)
        case Cast(implicit=True, x=x):
            return _exact(x, op, home, kernel)
        case Cast(to=to):
            return _narrow(to)
        case _:
            return False


def _narrow(dtype: Storage) -> bool:
    return any(d.bits <= 16 for d in choices(dtype))
