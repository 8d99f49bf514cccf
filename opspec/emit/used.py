"""The check of a debug build: integers from tensors that say where the op reads and writes must lie inside.

Front end and scheduler take data for what it should be (a page table holds pages that exist). Here each index
that depends on data becomes a line of torch over the points at which it is used: those of the statement's domain,
without indices that have no say. What is read under a condition on values is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opspec.emit.host import host_int
from opspec.emit.launcher import quoted
from opspec.ir.integers import Atom, Datum, Greatest, Int, Least, index
from opspec.ir.program import Boundary, Define, Op
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Range,
    Read,
    Reduce,
    Scalar,
    Select,
    Unary,
    Value,
    free_indices,
    integers,
    operands,
)
from opspec.schedule.domain import bounds

Shapes = Mapping[str, tuple[Int, ...]]
SIGN = {"and": "&", "or": "|", "add": "+", "sub": "-", "mul": "*"}
RELATION = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """An index that data decides: ``0 <= value < end`` wherever all ``domain`` are ``>= 0`` and all ``guards`` hold."""

    value: Int
    end: Int | None
    what: str
    ranges: tuple[Range, ...]
    domain: tuple[Int, ...] = ()
    guards: tuple[Value, ...] = ()


def uses(op: Op, boundary: Boundary) -> tuple[Use, ...]:
    """Everything in a boundary's statements that a debug build checks, each once."""
    defines = [d for k in boundary.kernels for d in k.body]
    inputs = {t.name: t.extents for t in op.tensors if t.role == "in"}
    # a statement may be called like the tensor that it fills, with other indices
    shapes = {d.name: tuple(r.upper for r in d.ranges) for d in defines}
    shapes |= {t.name: t.extents for t in op.tensors}
    found: dict[tuple[Int, str, tuple[Int, ...], tuple[Value, ...]], Use] = {}
    for assume in op.assumes:
        tensor = op.tensor(assume.tensor)
        if assume.slack is not None and tensor is not None:
            data = next((a for a in assume.slack.atoms() if isinstance(a, Datum)), None)
            own = [i.index for i in data.indices] if data is not None else []
            ranges = tuple(
                Range(index=n, upper=e) for n, e in zip(own, tensor.extents, strict=True) if n is not None
            )
            use = Use(value=assume.slack, end=None, what="an assumption of the op", ranges=ranges)
            found[use.value, use.what, (), ()] = use
    for define in defines:
        for use in _of_define(define, shapes, inputs):
            # an access is often written twice, as for keys and values
            found.setdefault((use.value, use.what, use.domain, use.guards), use)
    return tuple(found.values())


def _of_define(define: Define, shapes: Shapes, inputs: Shapes) -> Iterator[Use]:
    value, ranges, domain = define.value, define.ranges, define.constraints
    if define.output is not None:
        yield from _access(define.output.tensor, define.output.at, shapes, ranges, domain, ())
    if isinstance(value, Reduce):
        ranges, domain = (*ranges, *value.ranges), (*domain, *value.constraints)
    yield from _reads(value, shapes, inputs, ranges, domain, ())


def _reads(
    value: Value,
    shapes: Shapes,
    inputs: Shapes,
    ranges: tuple[Range, ...],
    domain: tuple[Int, ...],
    guards: tuple[Value, ...],
) -> Iterator[Use]:
    for i in integers(value):
        if not isinstance(value, Read):
            yield from _nested(i, shapes, ranges, domain, guards)
    if isinstance(value, Read) and value.otherwise is None and value.name in shapes:
        yield from _access(value.name, value.indices, shapes, ranges, domain, guards)
    if not isinstance(value, Select):
        for child in operands(value):
            yield from _reads(child, shapes, inputs, ranges, domain, guards)
        return
    yield from _reads(value.condition, shapes, inputs, ranges, domain, guards)
    if _whole(value.condition, inputs):
        other = Unary(op="not", x=value.condition, dtype=value.condition.dtype)
        yield from _reads(value.a, shapes, inputs, ranges, domain, (*guards, value.condition))
        yield from _reads(value.b, shapes, inputs, ranges, domain, (*guards, other))


def _access(
    name: str,
    at: tuple[Int, ...],
    shapes: Shapes,
    ranges: tuple[Range, ...],
    domain: tuple[Int, ...],
    guards: tuple[Value, ...],
) -> Iterator[Use]:
    if len(at) != len(shapes[name]):
        return
    for k, (i, extent) in enumerate(zip(at, shapes[name], strict=True)):
        yield from _nested(i, shapes, ranges, domain, guards)
        if i.tensors():
            what = f"axis {k + 1} of `{name}` ({extent})"
            yield Use(value=i, end=extent, what=what, ranges=ranges, domain=domain, guards=guards)


def _nested(
    i: Int,
    shapes: Shapes,
    ranges: tuple[Range, ...],
    domain: tuple[Int, ...],
    guards: tuple[Value, ...],
) -> Iterator[Use]:
    """Accesses to tensors of integers whose own indices are data."""
    for atom in i.atoms():
        if isinstance(atom, Datum):
            for k, (inner, extent) in enumerate(zip(atom.indices, shapes[atom.tensor], strict=True)):
                if inner.tensors():
                    what = f"axis {k + 1} of `{atom.tensor}` ({extent})"
                    yield Use(value=inner, end=extent, what=what, ranges=ranges, domain=domain, guards=guards)


def _whole(value: Value, inputs: Shapes) -> bool:
    """Whether a condition is made of integers alone: indices, numbers, and what tensors of integers hold."""
    if value.dtype.kind == "float":
        return False
    match value:
        case Extent() | Scalar():
            return True
        case Literal(value=number):
            return isinstance(number, int)
        case Read(name=name, otherwise=None):
            return name in inputs
        case Compare(a=a, b=b) | Binary(op="and" | "or" | "add" | "sub" | "mul", a=a, b=b):
            return _whole(a, inputs) and _whole(b, inputs)
        case Unary(op="not" | "neg", x=x) | Cast(mode="ieee", x=x):
            return _whole(x, inputs)
        case _:
            return False


# text --------------------------------------------------------------------------


def check_lines(op: Op, boundary: Boundary, names: Mapping[str, str], like: str) -> tuple[str, ...]:
    """Lines of the function that checks, on tensors and dims under ``names``; ``like``: a tensor on the device."""
    lines: list[str] = []
    for use in uses(op, boundary):
        lines += _lines(use, names, like)
    for assume in op.assumes:
        if assume.kind == "distinct":
            lines.append(f"checked.distinct({quoted(assume.tensor)}, {names[assume.tensor]})")
    return tuple(lines)


def _lines(use: Use, names: Mapping[str, str], like: str) -> Iterator[str]:
    ranges, domain = _without_idle(use)
    used = {r.index: _fresh(r.index, names) for r in ranges}
    both = {**names, **used}
    if used:
        sizes = ", ".join(host_int(r.upper, names) for r in ranges)
        yield f"{_targets(list(used.values()))} = checked.grid({like}, {sizes})"
    tests = [f"{_int(c, both)} >= 0" for c in domain] + [_condition(g, both) for g in use.guards]
    text = re.sub(r"(?<=[\[ ])\(([^()]*)\)(?=[,\]])", r"\1", str(use.value))
    end = "None" if use.end is None else host_int(use.end, names)
    at = ", ".join(f"{quoted(n)}: {v}" for n, v in used.items())
    where = f"({', '.join(tests)}{',' if len(tests) == 1 else ''})"
    yield (
        f"checked.inside({quoted(text)}, {_int(use.value, both)}, {end}, {quoted(use.what)}, {where}, {{{at}}})"
    )


def _targets(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def unpacked(dims: list[str]) -> str:
    """A line that takes the dims out of what the launcher's check found."""
    return f"{_targets(dims)} = dims[:{len(dims)}]"


def _without_idle(use: Use) -> tuple[tuple[Range, ...], tuple[Int, ...]]:
    """The ranges that the value and its domain need, with every other index taken out of the domain.

    An index with coefficient 1 or -1 in all its constraints has a point exactly where each of its lower bounds
    is below each of its upper ones; any other stays.
    """
    domain = [*use.domain, *(index(r.index) - r.lower for r in use.ranges if r.lower.constant != 0)]
    needed = set(use.value.free_indices())
    for guard in use.guards:
        needed |= free_indices(guard)
    for r in use.ranges:
        if r.index in needed:
            continue
        found = bounds(r.index, r.upper, tuple(domain))
        if found is None:
            needed.add(r.index)
            continue
        rest = [c for c in domain if r.index not in c.free_indices()]
        rest += [high - low - 1 for low in found[0] for high in found[1]]
        domain = [c for c in dict.fromkeys(rest) if c.constant is None or c.constant < 0]
    return tuple(r for r in use.ranges if r.index in needed), tuple(domain)


def _fresh(name: str, names: Mapping[str, str]) -> str:
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    while text in names.values() or not text.isidentifier() or text in ("checked", "dims"):
        text = f"{text}_"
    return text


def _int(value: Int, names: Mapping[str, str], *, tight: bool = False) -> str:
    """An integer expression over grids."""

    def own(atom: Atom) -> str | None:
        match atom:
            case Datum(tensor, indices):
                return f"checked.pick({', '.join([names[tensor], *(_int(i, names) for i in indices)])})"
            case Least(args):
                return f"checked.least({', '.join(_int(a, names) for a in args)})"
            case Greatest(args):
                return f"checked.greatest({', '.join(_int(a, names) for a in args)})"
        return None

    return host_int(value, names, tight, own)


def _condition(value: Value, names: Mapping[str, str]) -> str:
    """A condition on integers, or an integer in one."""
    match value:
        case Extent(value=i):
            return _int(i, names, tight=True)
        case Scalar(name=name):
            return names[name]
        case Literal(value=number):
            return repr(number) if number >= 0 else f"({number!r})"
        case Read(name=name, indices=at):
            return _int(Int.of(Datum(name, at)), names)
        case Compare(op=op, a=a, b=b):
            return f"({_condition(a, names)} {RELATION[op]} {_condition(b, names)})"
        case Binary(op=op, a=a, b=b):
            return f"({_condition(a, names)} {SIGN[op]} {_condition(b, names)})"
        case Unary(op="neg", x=x):
            return f"(-{_condition(x, names)})"
        case Unary(x=x):
            return f"({_condition(x, names)} ^ True)"
        case Cast(x=x):
            return _condition(x, names)
        case _:
            raise AssertionError(value)
