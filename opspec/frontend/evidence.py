"""Checks of evidence blocks: rows, numbers and gate."""

from __future__ import annotations

from fractions import Fraction

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults import names
from opspec.frontend.faults.naming import listing, nearest, short
from opspec.frontend.stages import Scope, check_runnable
from opspec.ir.composition import (
    ROWS,
    Arithmetic,
    Condition,
    Constant,
    Evidence,
    EvidenceRow,
    Metric,
    Recomputed,
    Row,
    Term,
)


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
