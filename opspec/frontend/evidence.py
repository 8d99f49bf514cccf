"""Checks of evidence blocks, machine blocks and token ledgers."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from functools import lru_cache

from opspec import resources
from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults import names
from opspec.frontend.faults.naming import listing, nearest, short
from opspec.frontend.integer_exprs import NotInteger, try_integer
from opspec.frontend.measures import quantity
from opspec.frontend.pipelines import Scope, check_runnable
from opspec.frontend.scope import Env, OpScope, Skip
from opspec.ir.composition import (
    ROWS,
    Arithmetic,
    Condition,
    Constant,
    Evidence,
    EvidenceRow,
    Ledger,
    LedgerEntry,
    MachineBlock,
    MachineValue,
    Metric,
    Recomputed,
    Row,
    Term,
)

SOME = "some"


def evidence(node: s.EvidenceDecl, scope: Scope) -> Evidence | None:
    """Check an evidence block."""
    report = scope.report
    before = len(report)
    owner, change = node.pipeline.text, node.variant.text
    if owner not in scope.pipelines:
        if scope.complete:
            report.append(names.unknown(node.pipeline.span, owner, scope.pipelines, "pipeline"))
    elif (owner, change) not in scope.variants and scope.complete:
        known = [v for p, v in scope.variants if p == owner]
        report.append(names.unknown(node.variant.span, change, known, "variant"))
    rows = [r for r in (_row(d, node, report) for d in node.rows) if r is not None]
    given = {r.row for r in rows if not r.world} | ({"numbers"} if node.numbers else set())
    missing = [f"`{r}`" for r in ROWS if r not in given]
    if missing and len(report) == before:
        report.append(
            faults.evidence(
                node.name.span,
                f"evidence `{node.name.text}` lacks {', '.join(missing)}",
                'each row is a line such as `failure = "…"`',
            )
        )
    if not node.gate:
        report.append(
            faults.evidence(
                node.variant.span,
                f"evidence `{node.name.text}` has no gate, so nothing could ever close it",
                "add `gate { metric >= base(metric) }`",
            )
        )
    for d in node.numbers:
        check_runnable(d.op, d.workload, scope)
    gate = [c for c in (_condition(d, report) for d in node.gate) if c is not None]
    if len(report) > before:
        return None
    return Evidence(
        name=node.name.text,
        pipeline=owner,
        variant=change,
        doc=node.doc,
        rows=tuple(rows),
        numbers=tuple(
            Recomputed(op=d.op.text, workload=d.workload.text, text=d.query.text, span=d.query)
            for d in node.numbers
        ),
        gate=tuple(gate),
        span=node.span,
    )


def _row(node: s.RowDecl, owner: s.EvidenceDecl, report: list[Diagnostic]) -> EvidenceRow | None:
    row: Row | None = next((r for r in ROWS if r == node.name.text), None)
    if row is None:
        help_ = nearest(node.name.text, ROWS) or f"rows: {listing(ROWS)}"
        report.append(faults.evidence(node.name.span, f"evidence has no row `{node.name.text}`", help_))
        return None
    same = [d for d in owner.rows if (d.name.text, d.world) == (node.name.text, node.world)]
    if same[0] is not node:
        report.append(names.duplicate(node.name.span, node.name.text, same[0].name.span))
        return None
    if not all(t.strip() for t in node.texts):
        report.append(faults.evidence(node.span, f"the row `{row}` says nothing"))
        return None
    return EvidenceRow(row=row, world=node.world, texts=node.texts, span=node.span)


def _condition(node: s.GateLine, report: list[Diagnostic]) -> Condition | None:
    match node.condition:
        case s.Chain(first=first, rest=((op, second),)):
            a, b = _term(first, report), _term(second, report)
        case _:
            report.append(
                faults.evidence(
                    node.condition.span,
                    f"`{short(node.condition.span.text)}` is no condition of a gate",
                    "write one comparison, such as `recall >= base(recall)`",
                )
            )
            return None
    if a is None or b is None:
        return None
    if isinstance(a, Constant) and isinstance(b, Constant):
        report.append(faults.evidence(node.condition.span, "this condition depends on no metric"))
        return None
    return Condition(
        op=op,  # type: ignore[arg-type]  # the grammar has no other comparisons
        a=a,
        b=b,
        text=short(node.condition.span.text, 200),
        label=node.label,
        span=node.condition.span,
    )


def _term(expr: s.Expr, report: list[Diagnostic]) -> Term | None:
    match expr:
        case s.Number(value=value):
            return Constant(value=Fraction(repr(value)))
        case s.Name(name=name):
            return Metric(name=name)
        case s.Call(name=s.Ident(text="base"), binders=None, using=None, mode=None, otherwise=None) if len(
            expr.arguments
        ) == 1 and isinstance(expr.arguments[0], s.Name):
            return Metric(name=expr.arguments[0].name, base=True)
        case s.Prefix(op="-", x=x):
            inner = _term(x, report)
            return None if inner is None else Arithmetic(op="-", a=Constant(value=Fraction(0)), b=inner)
        case s.Infix(op="+" | "-" | "*" | "/" as op, a=a, b=b):
            left, right = _term(a, report), _term(b, report)
            return None if left is None or right is None else Arithmetic(op=op, a=left, b=right)
        case _:
            report.append(
                faults.evidence(
                    expr.span,
                    f"`{short(expr.span.text)}` is no part of a gate condition",
                    "a condition is made of metrics, `base(metric)`, numbers and `+ - * /`",
                )
            )
            return None


# machines ------------------------------------------------------------------------
_UNITS = {
    "clock.boost": "Hz", "vector.f32": "FLOP/s", "sfu.per_clock_sm": "", "memory.bandwidth": "B/s", "memory.size": "B",
    "l2.size": "B", "l2.bandwidth": "B/s", "sm.count": "", "sm.shared": "B", "sm.shared_block": "B",
    "sm.registers": "", "sm.threads": "", "launch.plain": "s", "launch.graph": "s",
}  # fmt: skip


@lru_cache(maxsize=1)
def _tensor_keys() -> tuple[str, ...]:
    """Matrix-unit types of the machines that ship."""
    found: dict[str, None] = {}
    for path in sorted(resources.machines().glob("*.toml")):
        found.update(dict.fromkeys(tomllib.loads(path.read_text(encoding="utf-8")).get("tensor", {})))
    return tuple(f"tensor.{k}" for k in found)


def machine(node: s.MachineDecl, scope: Scope, earlier: set[str]) -> MachineBlock | None:
    """Check a machine block; ``earlier`` are the machines that it may be like."""
    report = scope.report
    before = len(report)
    name = node.name.text
    if node.like is None:
        help_ = "write `machine NAME like h100 { … }` and state what differs"
        report.append(faults.machine(node.name.span, f"machine `{name}` is like no other", help_))
    elif node.like.text not in earlier:
        report.append(names.unknown(node.like.span, node.like.text, earlier, "machine"))
    values: dict[str, MachineValue] = {}
    for d in node.values:
        made = _value(d, report)
        if d.key in values:
            report.append(names.duplicate(d.span, d.key, values[d.key].span))
        elif made is not None:
            values[d.key] = made
    if not node.values:
        report.append(faults.machine(node.name.span, f"machine `{name}` states no value"))
    if len(report) > before or node.like is None:
        return None
    return MachineBlock(
        name=name, doc=node.doc, like=node.like.text, values=tuple(values.values()), span=node.span
    )


def _value(node: s.MachineValueDecl, report: list[Diagnostic]) -> MachineValue | None:
    before = len(report)
    tensor = node.key.startswith("tensor.")
    known = [*_UNITS, *_tensor_keys()]
    if node.key not in known:
        help_ = nearest(node.key, known) or f"keys: {listing(known, 30)}"
        report.append(faults.machine(node.span, f"`{node.key}` is not a property of a machine", help_))
        return None
    found = quantity(node.value, report)
    wanted = "FLOP/s" if tensor else _UNITS[node.key]
    if found is not None and found[1] != wanted:
        has = f"in {found[1]}" if found[1] else "without a unit"
        report.append(
            faults.machine(
                node.value.span,
                f"`{node.key}` is {f'in {wanted}' if wanted else 'a plain number'}, not {has}",
            )
        )
    if tensor and not node.dense:
        report.append(
            faults.machine(
                node.span,
                f"`{node.key}` does not say that it is dense: a sparse peak is no roof",
                "write `= 989.4 TFLOP/s dense …`",
            )
        )
    if node.dense and not tensor:
        report.append(
            faults.machine(node.span, f"`{node.key}` is neither dense nor sparse", "leave out `dense`")
        )
    if not node.origin.text.strip():
        report.append(
            faults.machine(
                node.origin.span,
                f"`{node.key}` does not say its source",
                f'write `{node.origin.word} "where"`',
            )
        )
    if len(report) > before or found is None:
        return None
    source = node.origin.text if node.origin.word == "from" else f"{node.origin.word}: {node.origin.text}"
    return MachineValue(key=node.key, value=found[0], dense=node.dense, source=source, span=node.span)


# ledgers ---------------------------------------------------------------------------
def ledger(node: s.LedgerDecl, scope: Scope) -> Ledger | None:
    """Check a token ledger; whether it adds up is the analysis' question."""
    report = scope.report
    before = len(report)
    workload = node.workload.text
    owners = [op for op, known in scope.ops.items() if workload in known]
    if not owners:
        if scope.complete and workload not in scope.refused:
            known = [w for ws in scope.ops.values() for w in ws]
            report.append(names.unknown(node.workload.span, workload, known, "workload"))
        return None
    found = scope.runnable(owners[0], workload)
    if found is not None and node.dim.text not in found[0].dims:
        report.append(names.unknown(node.dim.span, node.dim.text, found[0].dims, "dim"))
    if not node.entries:
        report.append(faults.ledger(node.name.span, f"ledger `{node.name.text}` has no entry"))
    entries: dict[str, LedgerEntry] = {}
    for name, expr in node.entries:
        if name.text in entries:
            report.append(names.duplicate(name.span, name.text, entries[name.text].span))
            continue
        tokens = _tokens(expr)
        if tokens is None or tokens < 0:
            report.append(
                faults.ledger(
                    expr.span,
                    f"`{short(expr.span.text)}` is no number of tokens",
                    "write frames times grid, such as `3 * 16 * 16`; `some` stands for a number that nobody stated",
                )
            )
            continue
        entries[name.text] = LedgerEntry(
            name=name.text, text=short(expr.span.text), tokens=tokens, open=_is_open(expr), span=name.span
        )
    if len(report) > before:
        return None
    return Ledger(
        name=node.name.text,
        workload=workload,
        dim=node.dim.text,
        doc=node.doc,
        entries=tuple(entries.values()),
        span=node.span,
    )


def _tokens(expr: s.Expr) -> int | None:
    """The tokens of an entry, with one for each ``some``."""
    try:
        return try_integer(_closed(expr), OpScope("", [], {}), Env({})).constant
    except (NotInteger, Skip, ZeroDivisionError):
        return None


def _closed(expr: s.Expr) -> s.Expr:
    match expr:
        case s.Name(name="some"):
            return s.Number(value=1, span=expr.span)
        case s.Infix(op="*" | "+", a=a, b=b):
            return s.Infix(op=expr.op, a=_closed(a), b=_closed(b), span=expr.span)
        case _:
            return expr


def _is_open(expr: s.Expr) -> bool:
    return any(isinstance(x, s.Name) and x.name == SOME for x in s.walk(expr))
