"""Workloads and budgets."""

from __future__ import annotations

from itertools import product

from opspec.diagnostics import Diagnostic, Note
from opspec.frontend import syntax as s
from opspec.frontend.faults import grouping, names
from opspec.frontend.faults.naming import suggest
from opspec.frontend.integer_exprs import NotInteger, try_integer
from opspec.frontend.scope import Env, OpScope, Skip
from opspec.ir.dtypes import DTYPES, DType
from opspec.ir.program import Expectation, Op, Workload

MAX_EXTENT = 2**40
MAX_CASES = 10_000


def add(
    node: s.WorkloadDecl,
    ops: dict[str, Op | None],
    made: dict[str, Workload | None],
    report: list[Diagnostic],
    *,
    complete: bool,
) -> None:
    """Check a workload and add it; None stands for one that was refused."""
    name = node.name.text
    if name in made:
        report.append(names.duplicate(node.name.span, name, None))
        return
    made[name] = None
    if node.op.text not in ops:
        if complete:
            report.append(names.unknown(node.op.span, node.op.text, ops, "op"))
        return
    op = ops[node.op.text]
    if op is None:
        return
    before = len(report)
    dims: dict[str, list[tuple[float, int]]] = {}
    dtypes: list[tuple[str, DType]] = []
    for setting in node.settings:
        _setting(setting, op, dims, dtypes, report)
    if len(report) == before:
        missing = [d for d in op.dims if d not in dims]
        if missing:
            report.append(
                grouping.setting(
                    node.name.span,
                    f"workload `{name}` gives no size for " + ", ".join(f"`{d}`" for d in missing),
                    f"add `{missing[0]} = …`",
                )
            )
    if len(report) > before:
        return
    if _count(dims) > MAX_CASES:
        report.append(
            grouping.setting(node.name.span, f"workload `{name}` has more than {MAX_CASES:,} cases")
        )
        return
    cases = tuple(_case(choice, op.dims) for choice in product(*(dims[d] for d in op.dims)))
    workload = Workload(name=name, op=op.name, cases=cases, dtypes=tuple(dtypes), span=node.span)
    fault = _broken_requirement(workload, op, node)
    if fault is not None:
        report.append(fault)
        return
    made[name] = workload


def _count(dims: dict[str, list[tuple[float, int]]]) -> int:
    total = 1
    for cases in dims.values():
        total *= len(cases)
    return total


def _case(
    choice: tuple[tuple[float, int], ...], dims: tuple[str, ...]
) -> tuple[float, tuple[tuple[str, int], ...]]:
    weight = 1.0
    for w, _ in choice:
        weight *= w
    return weight, tuple((d, v) for d, (_, v) in zip(dims, choice, strict=True))


def _setting(
    setting: s.Setting,
    op: Op,
    dims: dict[str, list[tuple[float, int]]],
    dtypes: list[tuple[str, DType]],
    report: list[Diagnostic],
) -> None:
    name = setting.name.text
    params = {p.name: p for p in op.dtype_params}
    if name in dims or name in {d for d, _ in dtypes}:
        report.append(names.duplicate(setting.name.span, name, None))
    elif name in params:
        expr = setting.cases[0][0]
        chosen = DTYPES.get(expr.name) if isinstance(expr, s.Name) and len(setting.cases) == 1 else None
        if chosen not in params[name].choices:
            options = [c.name for c in params[name].choices]
            help_ = suggest(expr.span.text, options, "choices")
            report.append(grouping.setting(expr.span, f"`{name}` cannot be `{expr.span.text}`", help_))
        else:
            assert chosen is not None
            dtypes.append((name, chosen))
    elif name in op.dims:
        found = [_weighted(v, w, name, report) for v, w in setting.cases]
        dims[name] = [f for f in found if f is not None]
    elif name in {d for d, _ in op.derived}:
        report.append(
            grouping.setting(
                setting.name.span,
                f"`{name}` is derived from other dims",
                "give those instead: " + ", ".join(f"`{d}`" for d in op.dims),
            )
        )
    else:
        report.append(names.unknown(setting.name.span, name, [*op.dims, *params], "dim"))


def _weighted(
    value: s.Expr, weight: s.Expr | None, name: str, report: list[Diagnostic]
) -> tuple[float, int] | None:
    try:
        extent = try_integer(value, OpScope("", [], {}), Env({})).constant
    except (NotInteger, Skip):
        extent = None
    if extent is None or not 0 < extent <= MAX_EXTENT:
        report.append(
            grouping.setting(
                value.span, f"`{name}` is given `{value.span.text[:40]}`, which is no positive integer"
            )
        )
        return None
    if weight is None:
        return 1.0, extent
    if not isinstance(weight, s.Number) or weight.value <= 0:
        report.append(
            grouping.setting(weight.span, f"a weight is a positive number, not `{weight.span.text[:40]}`")
        )
        return None
    return float(weight.value), extent


_HOLDS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def _broken_requirement(workload: Workload, op: Op, node: s.WorkloadDecl) -> Diagnostic | None:
    for _, case in workload.cases:
        env = dict(case)
        for r in op.requires:
            try:
                fine = _HOLDS[r.op](r.left.evaluate(env), r.right.evaluate(env))
            except ZeroDivisionError:
                fine = False
            if not fine:
                shown = ", ".join(f"{d} = {env[d]}" for d in sorted(r.left.dims() | r.right.dims()))
                return grouping.setting(
                    node.name.span,
                    f"workload `{workload.name}` breaks `require {r.text}`",
                    "",
                    Note(f"with {shown}"),
                    Note("required here", r.span),
                )
    return None


def budgets(
    node: s.ExpectDecl, made: dict[str, Workload | None], report: list[Diagnostic], *, complete: bool
) -> list[Expectation]:
    """The lines of an expect block, for a workload that exists."""
    name = node.workload.text
    if name not in made:
        if complete:
            help_ = suggest(name, made, "workloads")
            report.append(grouping.no_workload(node.workload.span, name, help_))
        return []
    return [Expectation(workload=name, text=b.text, span=b) for b in node.budgets]
