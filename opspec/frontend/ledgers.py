"""Checks of token ledgers."""

from __future__ import annotations

from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults import names
from opspec.frontend.faults.naming import short
from opspec.frontend.integer_exprs import NotInteger, try_integer
from opspec.frontend.scope import Env, OpScope, Skip
from opspec.frontend.stages import Scope
from opspec.ir.composition import Ledger, LedgerEntry

SOME = "some"


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
