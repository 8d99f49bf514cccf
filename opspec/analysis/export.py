"""``cost.json``: the closed forms of an op as data for generated packages and reviews.

Deterministic: equal specs give equal text. All forms are Python source over the
identifiers in ``names``; see ``forms.closed_form_python``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

from opspec.analysis.costs import BlockCost, FlopTerm, OpCost, cost
from opspec.analysis.costs.flops import merged
from opspec.analysis.forms import closed_form_python, evaluate, python_names, tidy, unbound
from opspec.ir.dtypes import DType, choices
from opspec.ir.program import Module, Op, Workload

SCHEMA = 1


def cost_json(module: Module, op: Op) -> dict[str, Any]:
    """The costs of an op as JSON-able data: forms per boundary and block, numbers per workload.

    Sizes of free dtype parameters appear as ``sizeof(X)``; ``sizes`` lists their values.
    """
    costs = cost(op)
    names = python_names([*op.dims, *_symbols(costs)])

    def form(expr: sympy.Expr, key: str = "") -> str:
        return closed_form_python(tidy(expr), names, integer=not key.startswith("ai"))

    return {
        "schema": SCHEMA,
        "op": op.name,
        "dims": list(op.dims),
        "names": {k: v for k, v in sorted(names.items()) if k != v},
        "derived": {k: form(v) for k, v in costs.derived.items()},
        "sizes": {
            p.name: {d.name: d.bits / 8 if d.bits % 8 else d.bits // 8 for d in choices(p)}
            for p in op.dtype_params
        },
        "flops": {k: form(v) for k, v in flop_totals(costs.flops).items()},
        "terms": [
            {"statement": t.origin, "unit": t.unit, "op": t.op, "dtype": t.dtype, "flops": form(t.count)}
            for t in merged(costs.flops)
        ],
        "boundaries": {
            b.name: {
                "analysis": b.analysis,
                "launches": len(b.kernels),
                **{k: form(v, k) for k, v in byte_totals(costs, b.name).items()},
                "kernels": [_block(k, form) for k in costs.boundaries[b.name]],
            }
            for b in op.boundaries
        },
        "workloads": {w.name: _numbers(op, w) for w in module.workloads_of(op.name)},
    }


def flop_totals(terms: Iterable[FlopTerm]) -> dict[str, sympy.Expr]:
    """``flops``, ``flops.tensor`` … and each ``flops.sfu.exp`` that occurs."""
    terms = tuple(terms)
    result: dict[str, sympy.Expr] = {"flops": sympy.Add(*(t.count for t in terms))}
    for unit in ("tensor", "vector", "sfu"):
        result[f"flops.{unit}"] = sympy.Add(*(t.count for t in terms if t.unit == unit))
    for op in sorted({t.op for t in terms if t.unit == "sfu"}):
        result[f"flops.sfu.{op}"] = sympy.Add(*(t.count for t in terms if t.unit == "sfu" and t.op == op))
    return result


def byte_totals(costs: OpCost, boundary: str) -> dict[str, sympy.Expr]:
    """``bytes`` by direction and the two intensities of a boundary."""
    total = costs.total_bytes(boundary)
    result = {
        "bytes": total,
        "bytes.read": costs.total_bytes(boundary, "read"),
        "bytes.write": costs.total_bytes(boundary, "write"),
    }
    if total != 0:
        result["ai"] = costs.total_flops() / total
        result["ai.tensor"] = costs.total_flops("tensor") / total
    return result


def _block(block: BlockCost, form: Any) -> dict[str, Any]:
    return {
        "name": block.name,
        "flops": {k: form(v) for k, v in flop_totals(block.flops).items()},
        "bytes": [
            {
                "tensor": t.tensor,
                "direction": t.direction,
                "dtype": t.dtype.name,
                "bytes": form(t.count),
                "bound": t.bound,
                **({"why": t.why} if t.why else {}),
            }
            for t in block.bytes
        ],
    }


def workload_dtypes(op: Op, workload: Workload | None) -> dict[str, DType]:
    """The dtype parameters as a workload fixes them, else the first choice of each."""
    fixed = dict(workload.dtypes) if workload else {}
    return {p.name: fixed.get(p.name, p.choices[0]) for p in op.dtype_params}


def _numbers(op: Op, workload: Workload) -> dict[str, Any]:
    dtypes = workload_dtypes(op, workload)
    costs = cost(op, dtypes)
    cases = [
        {
            "weight": weight,
            "dims": dict(dims),
            "flops": {k: number(evaluate(v, dict(dims))) for k, v in flop_totals(costs.flops).items()},
            "boundaries": {
                b.name: {k: number(evaluate(v, dict(dims))) for k, v in byte_totals(costs, b.name).items()}
                for b in op.boundaries
            },
        }
        for weight, dims in workload.cases
    ]
    return {"dtypes": {k: v.name for k, v in dtypes.items()}, "cases": cases}


def number(expr: sympy.Expr) -> int | float | None:
    """A Python number, exact where it is an integer; None if symbols are left or it is not finite."""
    if unbound(expr) or not expr.is_finite:
        return None
    return int(expr) if expr.is_integer else float(expr)


def _symbols(costs: OpCost) -> list[str]:
    found: set[str] = set()
    for t in costs.flops:
        found.update(unbound(t.count))
    for blocks in costs.boundaries.values():
        for block in blocks:
            for b in block.bytes:
                found.update(unbound(b.count))
    return sorted(found)
