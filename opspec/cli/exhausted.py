"""What is said where Python's stack or the memory ends before the work does."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Failure, register

EXHAUSTED = register(
    Code(
        code="OP912",
        title="the stack or the memory was not enough",
        why="Limits on what a file may hold are meant to be met long before this; here one was missing.",
        example="opspec build deep.op",
        fix="A fault of opspec. Smaller ops get through; please report the spec.",
    )
)


def exhausted(error: RecursionError | MemoryError) -> Failure:
    """The failure that stands for running out of stack or memory."""
    what = "stack" if isinstance(error, RecursionError) else "memory"
    message = f"opspec ran out of {what}; nothing was written of what this command makes"
    return Failure(Diagnostic(code=EXHAUSTED, message=message, span=None, help="split the op, or the file"))
