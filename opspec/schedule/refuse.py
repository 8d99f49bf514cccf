"""Diagnostics of the scheduler: what one launch can't carry, said with its line and reason."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Failure, Note, register
from opspec.source import Span

UNFUSABLE = register(
    Code(
        code="OP641",
        title="one launch can't carry this kernel block",
        why="A kernel block is one launch. Where a value is needed at another point than the one at which the "
        "program holds it, the launch would have to recompute it or exchange it between programs, and opspec "
        "never inserts that silently.",
        example="kernel all { s[i] = sum[j](x[i, j])  y[i] = s[i] - s[i + 1] }      # s at two points at once",
        fix="Split the block in two where the value is handed over, or mark the boundary `analysis`.",
    )
)
UNSUPPORTED = register(
    Code(
        code="OP642",
        title="the emitter can't generate this yet",
        why="The spec is legal and its costs are exact, but no kernel is generated for this construct. "
        "opspec says so rather than emit slow or wrong code in silence.",
        example="kernel all { q[m, n] = i4.sat(round(x[m, n])) }      # q: i4[M, N]",
        fix="Rewrite the statement with constructs that the emitter supports, or mark the boundary `analysis`.",
    )
)


def unfusable(message: str, span: Span | None, *notes: Note, help: str = "") -> Failure:
    """The failure for a block that no single launch can carry."""
    return Failure(
        Diagnostic(code=UNFUSABLE, message=message, span=span, notes=notes, help=help or UNFUSABLE.fix)
    )


def unsupported(message: str, span: Span | None, *notes: Note, help: str = "") -> Failure:
    """The failure for a construct without an emitter."""
    return Failure(
        Diagnostic(code=UNSUPPORTED, message=message, span=span, notes=notes, help=help or UNSUPPORTED.fix)
    )
