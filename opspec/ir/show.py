"""Readable text of the IR, close to the language; for people, tests and ``explain``.

It is not parsed back. Every piece of the IR that a pass can change is in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from opspec.ir.integers import Int
from opspec.ir.program import Boundary, Define, Module, Op, Tensor
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
    Scan,
    Select,
    Unary,
    Value,
)

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "div_fast": "/", "div_near": "/", "floordiv": "//", "mod": "%",
    "and": "and", "or": "or",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip


def show_module(module: Module) -> str:
    """All ops of a module."""
    return "\n".join(show_op(op) for op in module.ops)


def show_op(op: Op, boundary: str = "") -> str:
    """An op with the kernels of one boundary."""
    head = [f"op {op.name}[{', '.join(op.dims)}]"]
    head += [f"  let {name} = {value}" for name, value in op.derived]
    head += [f"  dtype {p.name} in {{{', '.join(c.name for c in p.choices)}}}" for p in op.dtype_params]
    head += [f"  {_tensor(t)}" for t in op.tensors]
    head += [
        f"  scalar {s.name}: {s.dtype.name}" + ("" if s.default is None else f" = {s.default}")
        for s in op.scalars
    ]
    head += [f"  require {r.left} {_SIGNS[r.op]} {r.right}" for r in op.requires]
    head += [
        f"  assume distinct({a.tensor})" if a.kind == "distinct" else f"  assume {a.slack} >= 0"
        for a in op.assumes
    ]
    chosen = next(b for b in op.boundaries if b.name == boundary)
    return "\n".join([*head, *_indented(show_boundary(chosen))]) + "\n"


def show_boundary(boundary: Boundary) -> str:
    """The kernels of a boundary."""
    lines: list[str] = []
    if boundary.name:
        lines.append(f"boundary {boundary.name}" + (" analysis" if boundary.analysis else ""))
    for kernel in boundary.kernels:
        lines.append(f"kernel {kernel.name}")
        lines += [f"  schedule {key} {value}" for key, value in kernel.schedule]
        for define in kernel.body:
            lines += _indented(show_define(define))
    return "\n".join(lines)


def show_define(define: Define) -> str:
    """One statement: name, domain, value; what it stores comes last."""
    text = f"{define.name}[{_ranges(define.ranges)}]"
    if define.constraints:
        text += f" where {_constraints(define.constraints)}"
    text += f" = {show_value(define.value)}"
    if define.storage is not None:
        text += f" as {define.storage.name}"
    if define.output is not None:
        text += f" -> {define.output.tensor}[{_join(define.output.at)}]"
    if define.origin != define.name:
        text += f"   # of {define.origin}"
    return text


def show_value(value: Value) -> str:
    """One value; parentheses around everything that is not a name or call."""
    match value:
        case Literal(value=v, dtype=dtype):
            return f"{v}:{dtype.name}" if not isinstance(v, bool) else str(v).lower()
        case Extent(value=v):
            return f"int({v})"
        case Scalar(name=name):
            return name
        case Read(name=name, indices=indices, otherwise=otherwise):
            text = f"{name}[{_join(indices)}]"
            return text if otherwise is None else f"{text} else {show_value(otherwise)}"
        case Unary(op=op, x=x):
            return f"{op}({show_value(x)})"
        case Binary(op="min" | "max" as op, a=a, b=b):
            return f"{op}({show_value(a)}, {show_value(b)})"
        case Binary(op=op, a=a, b=b) | Compare(op=op, a=a, b=b):
            return f"({show_value(a)} {_SIGNS[op]} {show_value(b)})"
        case Select(condition=condition, a=a, b=b):
            return f"where({show_value(condition)}, {show_value(a)}, {show_value(b)})"
        case Cast(to=to, mode=mode, x=x, implicit=implicit):
            name = to.name if mode == "ieee" else f"{to.name}.{mode}"
            return f"{'implicit ' if implicit else ''}{name}({show_value(x)})"
        case Reduce(monoid=monoid, ranges=ranges, constraints=constraints, body=body):
            text = f"{monoid}[{_ranges(ranges)}"
            text += f" | {_constraints(constraints)}]" if constraints else "]"
            text += f" using {value.using} " if value.using else ""
            text += f"({show_value(body)})"
            return text if value.empty is None else f"{text} else {show_value(value.empty)}"
        case Scan(monoid=monoid, index=index, reverse=reverse, body=body, decay=decay):
            rest = "" if decay is None else f", {show_value(decay)}"
            return f"scan_{monoid}[{'-' if reverse else ''}{index}]({show_value(body)}{rest})"
        case _:
            assert_never(value)


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.role} {tensor.name}: {tensor.dtype.name}[{_join(tensor.extents)}]"


def _ranges(ranges: Iterable[Range]) -> str:
    return ", ".join(
        f"{r.index} < {r.upper}" if r.lower.constant == 0 else f"{r.lower} <= {r.index} < {r.upper}"
        for r in ranges
    )


def _constraints(constraints: Iterable[Int]) -> str:
    return ", ".join(f"{c} >= 0" for c in constraints)


def _join(values: Iterable[Int]) -> str:
    return ", ".join(map(str, values))


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
