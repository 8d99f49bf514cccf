"""The closed forms beside a kernel: as a function to call and as lines of its docstring."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from opspec.emit.layout import fold
from opspec.emit.names import escape
from opspec.ir.program import Boundary, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFunction:
    """A generated ``<op>_cost``."""

    name: str
    signature: str
    doc: str
    lines: tuple[str, ...]


def cost_function(op: Op, costs: dict[str, Any]) -> CostFunction:
    """``<op>_cost(*, dims…, sizes…)``: operations and bytes of the op's own boundary."""
    default = costs["boundaries"][""]
    forms = dict(costs["flops"]) | {
        k: v for k, v in default.items() if k in ("bytes", "bytes.read", "bytes.write")
    }
    sizes = {p.name: f"sizeof_{escape(p.name)}" for p in op.dtype_params}
    dims = [costs["names"].get(d, d) for d in op.dims]
    extra = sorted(_extra(forms, costs, dims))
    name = f"{escape(op.name)}_cost"
    params = ", ".join(
        [
            *(f"{d}: int" for d in dims),
            *(f"{s}: float" for s in sizes.values()),
            *(f"{e}: int" for e in extra),
        ]
    )
    star = "*, " if params else ""
    entries = {k: _sized(form, sizes, costs) for k, form in forms.items()}
    lines = ["return {"]
    for key, form in entries.items():
        lines += [("    " + f) for f in fold(f'"{key}": {_spaced(form)},', 102, inside=True)]
    lines += [f'    "launches": {len(default["kernels"])},', "}"]
    doc = f"Closed form of `{op.name}`: operations by unit and compulsory bytes; sizes in bytes per element."
    return CostFunction(
        name=name,
        signature="\n".join(fold(f"def {name}({star}{params}) -> dict[str, float]:")),
        doc=doc,
        lines=tuple(lines),
    )


def cost_lines(boundary: Boundary, costs: dict[str, Any]) -> list[str]:
    """Lines of a docstring: FLOPs by unit, bytes by direction, intensity."""
    out = ["closed form (operations; bytes; operations per byte):"]
    flops = {
        k: v
        for k, v in costs["flops"].items()
        if k in ("flops.tensor", "flops.vector", "flops.sfu") and v != "0"
    }
    forms = {**flops, **{k: v for k, v in costs["boundaries"][boundary.name].items() if isinstance(v, str)}}
    for key, form in forms.items():
        text = f"    {key} = {form}"
        out.append(text if len(text) < 100 else text[:97] + "…")
    return out


def extra_symbols(op: Op, costs: dict[str, Any]) -> list[str]:
    """Identifiers in the closed forms that are neither dims nor element sizes (moments of lengths)."""
    default = costs["boundaries"][""]
    forms = dict(costs["flops"]) | {k: v for k, v in default.items() if isinstance(v, str)}
    return sorted(_extra(forms, costs, [costs["names"].get(d, d) for d in op.dims]))


def cost_text(op: Op, costs: dict[str, Any], tensors: tuple[str, ...]) -> str:
    """A function of a checked call: the op's closed form, for its operations alone.

    A moment of lengths that they need is taken from the lengths themselves.
    """
    args = [f"{costs['names'].get(d, d)}=c.dims[{k}]" for k, d in enumerate(op.dims)]
    args += [f"sizeof_{escape(p.name)}=1" for p in op.dtype_params]
    wanted = re.findall(r"[A-Za-z_]\w*", costs["flops"]["flops"])
    written = {v: k for k, v in costs["names"].items()}
    for symbol in extra_symbols(op, costs):
        meaning = written.get(symbol, symbol)
        found = re.fullmatch(r"sum\((\w+)(?:\^(\d+))?\)", meaning)
        if symbol not in wanted:
            args.append(f"{symbol}=0")
        elif found is not None and escape(found[1]) in tensors:
            place = tensors.index(escape(found[1]))
            args.append(f"{symbol}=launch.moment(c.tensors[{place}], {found[2] or 1})")
        else:
            args.append(f'{symbol}=launch.uncounted("{meaning}")')
    return (
        f"lambda c: {escape(op.name)}_cost({', '.join(args)})"
        if args
        else f"lambda _: {escape(op.name)}_cost()"
    )


def _extra(forms: dict[str, str], costs: dict[str, Any], dims: list[str]) -> set[str]:
    known = set(dims) | {"max", "min"} | set(_size_names(costs))
    return {
        w for f in forms.values() for w in re.findall(r"[A-Za-z_]\w*", f) if w not in known and w != "sizeof"
    }


def _size_names(costs: dict[str, Any]) -> dict[str, str]:
    """Identifier of ``sizeof(X)`` in the closed forms → dtype parameter."""
    out = {}
    for param in costs["sizes"]:
        symbol = f"sizeof({param})"
        out[costs["names"].get(symbol, symbol)] = param
    return out


def _sized(form: str, sizes: dict[str, str], costs: dict[str, Any]) -> str:
    for ident, param in _size_names(costs).items():
        form = (
            re.sub(rf"\b{re.escape(ident)}\b", sizes[param], form)
            if "(" not in ident
            else form.replace(ident, sizes[param])
        )
    return form


def _spaced(form: str) -> str:
    """Powers of what is not a plain name get spaces, as the formatter has it."""
    return re.sub(r"(^|\(|, )-(\w+\*\*\d+)", r"\1-(\2)", form.replace(")**", ") ** "))
