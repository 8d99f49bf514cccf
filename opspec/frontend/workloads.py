"""Workloads and budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod

from opspec.diagnostics import Diagnostic, Note
from opspec.frontend import lengths
from opspec.frontend import syntax as s
from opspec.frontend.faults import grouping, names
from opspec.frontend.faults.naming import suggest
from opspec.frontend.integer_exprs import NotInteger, try_integer
from opspec.frontend.scope import Env, OpScope, Skip
from opspec.frontend.traffic import Reader
from opspec.ir.dtypes import DTYPES, DType
from opspec.ir.program import Expectation, Lengths, Op, Workload

MAX_EXTENT = 2**40
MAX_CASES = 10_000


@dataclass(slots=True)
class _Draft:
    """What the settings of a workload give: sizes by the dims that share a setting, dtypes, lengths."""

    sizes: dict[tuple[str, ...], list[tuple[float, tuple[int, ...]]]] = field(default_factory=dict)
    dtypes: list[tuple[str, DType]] = field(default_factory=list)
    lengths: list[Lengths] = field(default_factory=list)

    def given(self) -> set[str]:
        """Every name that has a setting."""
        dims = {d for names in self.sizes for d in names}
        return dims | {d for d, _ in self.dtypes} | {x.tensor for x in self.lengths}


def add(
    node: s.WorkloadDecl,
    ops: Mapping[str, Op | None],
    made: dict[str, Workload | None],
    report: list[Diagnostic],
    read: Reader,
    *,
    complete: bool,
) -> None:
    """Check a workload and add it; None stands for one that was refused. ``read`` opens traffic files."""
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
    draft = _Draft()
    for setting in node.settings:
        _setting(setting, op, draft, report, read)
    if len(report) == before:
        missing = [d for d in op.dims if d not in draft.given()]
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
    if prod(map(len, draft.sizes.values())) > MAX_CASES:
        report.append(
            grouping.setting(node.name.span, f"workload `{name}` has more than {MAX_CASES:,} cases")
        )
        return
    cases = tuple(_case(choice, draft, op.dims) for choice in product(*draft.sizes.values()))
    workload = Workload(
        name=name,
        op=op.name,
        cases=cases,
        dtypes=tuple(draft.dtypes),
        lengths=tuple(draft.lengths),
        span=node.span,
    )
    fault = _broken_requirement(workload, op, node) or lengths.misfit(workload, op, node)
    if fault is not None:
        report.append(fault)
        return
    made[name] = workload


def _case(
    choice: tuple[tuple[float, tuple[int, ...]], ...], draft: _Draft, dims: tuple[str, ...]
) -> tuple[float, tuple[tuple[str, int], ...]]:
    weight = 1.0
    sizes: dict[str, int] = {}
    for given, (w, values) in zip(draft.sizes, choice, strict=True):
        weight *= w
        sizes.update(zip(given, values, strict=True))
    return weight, tuple((d, sizes[d]) for d in dims)


def _setting(setting: s.Setting, op: Op, draft: _Draft, report: list[Diagnostic], read: Reader) -> None:
    given = (setting.name, *setting.joint)
    params = {p.name: p for p in op.dtype_params}
    name = setting.name.text
    before = len(report)
    for k, ident in enumerate(given):
        known = ident.text in op.dims or (k == 0 and not setting.joint and ident.text in params)
        if ident.text in draft.given() or ident.text in {i.text for i in given[:k]}:
            report.append(names.duplicate(ident.span, ident.text, None))
        elif ident.text in {d for d, _ in op.derived}:
            report.append(
                grouping.setting(
                    ident.span,
                    f"`{ident.text}` is derived from other dims",
                    "give those instead: " + ", ".join(f"`{d}`" for d in op.dims),
                )
            )
        elif not known and (setting.joint or lengths.tensor(ident.text, op) is None):
            report.append(names.unknown(ident.span, ident.text, [*op.dims, *params], "dim"))
    if len(report) > before:
        return
    if name in params:
        _dtype(setting, [c.name for c in params[name].choices], draft, report)
    elif name not in op.dims:
        found = lengths.lengths(setting, op, report, read)
        draft.lengths += [found] if found is not None else []
    elif setting.kind == "recorded":
        rows = read(setting, tuple(i.text for i in given))
        draft.sizes[tuple(i.text for i in given)] = [(float(w), values) for w, values in rows]
    elif setting.kind in ("listed", "averaged"):
        report.append(
            grouping.setting(
                setting.span,
                f"`{name}` is a dim, and this form is for lengths that are data",
                f"write `{name} ~ {{512: 0.3, 2048: 0.7}}` for a distribution",
            )
        )
    else:
        weighted = [_weighted(v, w, name, report) for v, w in setting.cases]
        draft.sizes[name,] = [(w, (v,)) for w, v in (x for x in weighted if x is not None)]


def _dtype(setting: s.Setting, options: list[str], draft: _Draft, report: list[Diagnostic]) -> None:
    name = setting.name.text
    expr = setting.cases[0][0] if setting.cases else None
    chosen = DTYPES.get(expr.name) if isinstance(expr, s.Name) and setting.kind == "fixed" else None
    if chosen is not None and chosen.name in options:
        draft.dtypes.append((name, chosen))
        return
    span = expr.span if expr is not None else setting.span
    help_ = suggest(span.text, options, "choices")
    report.append(grouping.setting(span, f"`{name}` cannot be `{span.text[:40]}`", help_))


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
    node: s.ExpectDecl, made: Mapping[str, Workload | None], report: list[Diagnostic], *, complete: bool
) -> list[Expectation]:
    """The lines of an expect block, for a workload that exists."""
    name = node.workload.text
    if name not in made:
        if complete:
            help_ = suggest(name, made, "workloads")
            report.append(grouping.no_workload(node.workload.span, name, help_))
        return []
    return [Expectation(workload=name, text=b.text, span=b) for b in node.budgets]
