"""Legal IR as a table of checks; run before and after each pass in tests.

A failure here is a fault of ours, never of a spec: the front end has reported those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opspec.ir import bounds
from opspec.ir.dtypes import BOOL, F32, I32, I64, compute_dtype
from opspec.ir.facts import facts_of
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Boundary, Define, Op
from opspec.ir.values import (
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
    free_indices,
    integers,
    operands,
    walk,
)

_COMPUTE = {F32, I32, I64, BOOL}


class IllegalIR(Exception):
    """The IR breaks one of its own rules; the message names the define and the rule."""


def verify(op: Op) -> None:
    """Raise IllegalIR unless the op is legal in every boundary."""
    for check in CHECKS:  # in order: each relies on those before it
        problems = list(check(op))
        if problems:
            raise IllegalIR(f"{op.name}: " + "; ".join(problems))


def names_are_unique(op: Op) -> Iterator[str]:
    """Dims, tensors, scalars and statements share one name space (an output names its statement)."""
    seen: set[str] = set()
    for name in (
        *op.dims,
        *(n for n, _ in op.derived),
        *(t.name for t in op.tensors),
        *(s.name for s in op.scalars),
    ):
        if name in seen:
            yield f"name {name} is declared twice"
        seen.add(name)
    defined: set[str] = set()
    for d in op.defines:
        if d.name in defined:
            yield f"{d.name} is defined twice"
        defined.add(d.name)
        if d.name in seen and (d.output is None or d.output.tensor != d.name):
            yield f"{d.name} is a statement and something else"
        if d.kind == "temp" and "." not in d.name:
            yield f"temporary {d.name} could clash with a user's name"


def indices_are_bound(op: Op) -> Iterator[str]:
    """Every index of a define is in its ranges or bound by its reduction, once."""
    dims = set(op.dims)
    for d in op.defines:
        own = set(d.indices)
        if len(own) != len(d.indices):
            yield f"{d.name} repeats an index"
        free = set(free_indices(d.value))
        for c in d.constraints:
            free |= c.free_indices()
        if d.output is not None:
            free |= {n for i in d.output.at for n in i.free_indices()}
        if free - own:
            yield f"{d.name} has free indices {sorted(free - own)}"
        if isinstance(d.value, Reduce):
            bound = [r.index for r in d.value.ranges]
            if set(bound) & own or len(set(bound)) != len(bound):
                yield f"{d.name} binds an index twice"
        for i in _all_integers(d):
            if i.dims() - dims:
                yield f"{d.name} has unknown dims {sorted(i.dims() - dims)}"


def reductions_are_roots(op: Op) -> Iterator[str]:
    """A ``Reduce`` or ``Scan`` stands only at the root of a define."""
    for d in op.defines:
        for v in walk(d.value):
            if isinstance(v, Reduce | Scan) and v is not d.value:
                yield f"{d.name} has a {type(v).__name__.lower()} below its root"
        if isinstance(d.value, Scan) and d.value.index not in d.indices:
            yield f"{d.name} scans over an index that it does not have"


def reads_are_resolved(op: Op) -> Iterator[str]:
    """Every read names a tensor or an earlier define, with as many indices as it has."""
    for boundary in op.boundaries:
        known = {t.name: len(t.extents) for t in op.tensors}
        for kernel in boundary.kernels:
            for d in kernel.body:
                for v in walk(d.value):
                    if isinstance(v, Read) and v.name not in known:
                        yield f"{d.name} reads {v.name}, which is not defined before it in {boundary.name or 'the op'}"
                    elif isinstance(v, Read) and known[v.name] != len(v.indices):
                        yield f"{d.name} reads {v.name} with {len(v.indices)} indices"
                known[d.name] = len(d.ranges)
    tensors = {t.name: len(t.extents) for t in op.tensors}
    for d in op.defines:
        for i in _all_integers(d):
            for a in i.atoms():
                if isinstance(a, Datum) and tensors.get(a.tensor) != len(a.indices):
                    yield f"{d.name} has a datum of {a.tensor} with {len(a.indices)} indices"


def reads_are_in_range(op: Op) -> Iterator[str]:
    """Every unguarded read with affine indices is provably in range."""
    facts = facts_of(op)
    tensors = {t.name: t.extents for t in op.tensors}
    defines = {d.name: d for d in op.defines}
    for d in op.defines:
        known = facts.extended(bounds.domain(d.ranges, d.constraints))
        if isinstance(d.value, Reduce):
            known = known.extended(bounds.domain(d.value.ranges, d.value.constraints))
        for v in _unguarded(d.value):
            if not isinstance(v, Read) or v.otherwise is not None:
                continue
            source = defines.get(v.name)
            axes = (
                [(r.lower, r.upper) for r in source.ranges]
                if source is not None
                else [(Int(()), e) for e in tensors[v.name]]
            )
            for index, (low, high) in zip(v.indices, axes, strict=True):
                if not index.tensors() and not (
                    bounds.prove(index - low, known) and bounds.prove(high - 1 - index, known)
                ):
                    yield f"{d.name} reads {v.name} at {index}, which may be out of range"


def types_agree(op: Op) -> Iterator[str]:
    """Operands have the types that their operation needs."""
    for d in op.defines:
        for v in walk(d.value):
            problem = _type_problem(v)
            if problem:
                yield f"{d.name}: {problem}"


def outputs_are_written(op: Op) -> Iterator[str]:
    """Each output has a writer, and each writer a tensor that may be written, at its rank."""
    tensors = {t.name: t for t in op.tensors}
    written: set[str] = set()
    for d in op.defines:
        if d.output is None:
            continue
        tensor = tensors.get(d.output.tensor)
        if tensor is None or tensor.role == "in":
            yield f"{d.name} writes {d.output.tensor}, which is no output"
        elif len(tensor.extents) != len(d.output.at):
            yield f"{d.name} writes {d.output.tensor} with {len(d.output.at)} indices"
        written.add(d.output.tensor)
    for t in op.tensors:
        if t.role == "out" and t.name not in written:
            yield f"output {t.name} is never written"


def boundaries_agree(op: Op) -> Iterator[str]:
    """Every boundary holds the same defines, and the first is the op's own."""
    if not op.boundaries or op.boundaries[0].name:
        yield "the first boundary is not the op's own"
        return
    own = {d.name: d for d in op.defines}
    for b in op.boundaries:
        found = [d for k in b.kernels for d in k.body]
        if {d.name: d for d in found} != own or len(found) != len(own):
            yield f"boundary {b.name} has other statements than the op"
        yield from _whole_statements(b)


CHECKS: tuple[Callable[[Op], Iterator[str]], ...] = (
    names_are_unique,
    indices_are_bound,
    reductions_are_roots,
    boundaries_agree,
    reads_are_resolved,
    types_agree,
    outputs_are_written,
    reads_are_in_range,
)


def _whole_statements(boundary: Boundary) -> Iterator[str]:
    home: dict[str, str] = {}
    for k in boundary.kernels:
        for d in k.body:
            if d.kind == "temp" and home.setdefault(d.origin, k.name) != k.name:
                yield f"{d.name} is not in the kernel of its statement"


def _unguarded(value: Value) -> Iterator[Value]:
    """Nodes outside the branches of a choice."""
    yield value
    for child in (value.condition,) if isinstance(value, Select) else operands(value):
        yield from _unguarded(child)


def _all_integers(define: Define) -> Iterator[Int]:
    for r in define.ranges:
        yield from (r.lower, r.upper)
    yield from define.constraints
    if define.output is not None:
        yield from define.output.at
    for v in walk(define.value):
        yield from integers(v)


def _type_problem(v: Value) -> str:
    if v.dtype not in _COMPUTE:
        return f"{type(v).__name__} computes in {v.dtype.name}"
    match v:
        case Binary(op="and" | "or", a=a, b=b):
            fine = a.dtype is b.dtype is v.dtype is BOOL
        case Binary(op="floordiv" | "mod", a=a, b=b):
            fine = a.dtype is b.dtype is v.dtype and v.dtype.kind == "int"
        case Binary(op="div", a=a, b=b):
            fine = a.dtype is b.dtype is v.dtype is F32
        case Binary(a=a, b=b):
            fine = a.dtype is b.dtype is v.dtype and v.dtype is not BOOL
        case Compare(a=a, b=b):
            fine = a.dtype is b.dtype and v.dtype is BOOL
        case Select(condition=c, a=a, b=b):
            fine = c.dtype is BOOL and a.dtype is b.dtype is v.dtype
        case Unary(op="not", x=x):
            fine = x.dtype is v.dtype is BOOL
        case Unary(op="neg" | "abs", x=x):
            fine = x.dtype is v.dtype and v.dtype is not BOOL
        case Unary(x=x):
            fine = x.dtype is v.dtype is F32
        case Cast(to=to, x=x):
            fine = v.dtype is compute_dtype(to) and x.dtype is not BOOL
        case Reduce(monoid="argmax" | "argmin", body=body, empty=empty):
            fine = v.dtype is I64 and body.dtype is not BOOL and (empty is None or empty.dtype is I64)
        case Reduce(monoid="any" | "all", body=body):
            fine = body.dtype is v.dtype is BOOL
        case Reduce(body=body, empty=empty):
            fine = body.dtype is v.dtype and v.dtype is not BOOL and (empty is None or empty.dtype is v.dtype)
        case Scan(monoid=monoid, body=body, decay=decay):
            fine = body.dtype is v.dtype and (
                decay is None or (monoid == "sum" and body.dtype is decay.dtype is F32)
            )
        case Read(otherwise=otherwise):
            fine = otherwise is None or otherwise.dtype is v.dtype
        case Extent():
            fine = v.dtype is I64
        case Literal(value=value):
            fine = isinstance(value, bool) == (v.dtype is BOOL) and isinstance(value, float) == (
                v.dtype is F32
            )
        case Scalar():
            fine = True
    return "" if fine else f"{type(v).__name__} {getattr(v, 'op', '')} has operands of the wrong type"
