"""OP5xx: kernels, boundaries and what crosses them; OP6xx: workloads and budgets."""

from __future__ import annotations

from collections.abc import Iterable

from opspec.diagnostics import Code, Diagnostic, Note, register
from opspec.frontend.faults.naming import listing
from opspec.source import Span

CROSSING = register(
    Code(
        code="OP501",
        title="a value crosses kernels without saying how it is stored",
        why="Between kernels a value lives in memory, in some dtype; f32 is used unless another is said.",
        example="kernel a { s[i] = … }  kernel b { y[i] = s[i] }",
        fix="Annotate it: `s: bf16[i] = …`, or `s: f32[i] = …` to say that f32 is meant.",
        severity="warning",
    )
)
LEFT_OUT = register(
    Code(
        code="OP502",
        title="a boundary that leaves a statement out, or names one twice",
        why="A boundary regroups all statements of an op; it cannot drop or repeat any.",
        example="boundary b of f { kernel a { x } }   # f also defines y",
        fix="Name every statement in exactly one kernel.",
    )
)
ORDER = register(
    Code(
        code="OP503",
        title="kernels out of order",
        why="Kernels run one after the other, and each reads what earlier ones wrote.",
        example="boundary b of f { kernel second { y }  kernel first { x } }   # y reads x",
        fix="Order the kernels so that values are defined before they are read.",
    )
)
NO_KERNEL = register(
    Code(
        code="OP504",
        title="an op without a kernel, or a statement outside one",
        why="A `kernel` block is the fusion boundary, and every statement belongs to one.",
        example="op f[N](x: f32[N]) -> y: f32[N] { y[i] = x[i] }",
        fix="Put the statements into `kernel name { … }`.",
    )
)
UNUSED = register(
    Code(
        code="OP506",
        title="a value that nothing uses",
        why="It is not an output and no statement reads it, so that it has no effect.",
        example="kernel k { s[i] = x[i]; y[i] = x[i] }   # s is never read",
        fix="Remove it, or read it.",
        severity="warning",
    )
)
OFF_MATRIX = register(
    Code(
        code="OP505",
        title="a contraction stays off the matrix units",
        why="Matrix units take operands of at most 16 bits. An operand that no such type holds exactly would "
        "be rounded on the way in, and that has to be allowed.",
        example="o[i, d] = sum[j](p[i, j] * v[j, d])   # p is computed in f32",
        fix="Allow it: `sum[j] using bf16 (p[i, j] * v[j, d])`; for f32 inputs also `using tf32`.",
        severity="warning",
    )
)
SETTING = register(
    Code(
        code="OP601",
        title="a workload that does not fit its op",
        why="A workload gives every dim of its op a positive size that the op's requirements allow.",
        example="workload w for matmul { M = 8, N = 0 }",
        fix="Give each dim one positive integer.",
    )
)
BUDGET = register(
    Code(
        code="OP602",
        title="an expect block that names no workload",
        why="A budget holds at the shape of one workload.",
        example="expect decode { … }   # no such workload",
        fix="Name a workload of the file.",
    )
)


def crossing(span: Span, name: str, kernel: str, where: Span | None) -> Diagnostic:
    """A value that another kernel reads, without a storage dtype."""
    notes = (Note(f"kernel `{kernel}` reads it here", where),) if where is not None else ()
    return Diagnostic(
        code=CROSSING,
        message=f"`{name}` crosses into another kernel and is stored in f32",
        span=span,
        notes=notes,
        help=f"say how it is stored: `{name}: bf16[…] = …`, or `{name}: f32[…]` if f32 is meant",
        severity="warning",
    )


def left_out(span: Span, boundary: str, missing: Iterable[str]) -> Diagnostic:
    """Statements that a boundary does not name."""
    return Diagnostic(
        code=LEFT_OUT,
        message=f"boundary `{boundary}` leaves out {listing(missing)}",
        span=span,
        help="name every statement of the op in one of its kernels",
    )


def repeated(span: Span, name: str, first: Span) -> Diagnostic:
    """A statement in two kernels of a boundary."""
    return Diagnostic(
        code=LEFT_OUT,
        message=f"`{name}` stands in two kernels",
        span=span,
        notes=(Note("first named here", first),),
    )


def order(span: Span, kernel: str, name: str, other: str) -> Diagnostic:
    """A kernel before one that it reads from."""
    return Diagnostic(
        code=ORDER,
        message=f"kernel `{kernel}` reads `{name}`, which the later kernel `{other}` defines",
        span=span,
        help=f"put kernel `{other}` before it",
    )


def together(span: Span, kernel: str, tensor: str, reader: str) -> Diagnostic:
    """A statement that reads a tensor back from memory, in the kernel that writes it."""
    return Diagnostic(
        code=ORDER,
        message=f"kernel `{kernel}` writes `{tensor}` and reads it back from memory in `{reader}`",
        span=span,
        help=f"put `{reader}` into a later kernel",
    )


def tangled(span: Span, first: str, second: str) -> Diagnostic:
    """Kernels that would have to run before each other."""
    return Diagnostic(
        code=ORDER,
        message=f"kernels `{first}` and `{second}` each read what the other defines",
        span=span,
        help="no order of launches can carry this grouping; move a statement",
    )


def outside(span: Span, name: str) -> Diagnostic:
    """A statement directly in an op."""
    return Diagnostic(
        code=NO_KERNEL,
        message=f"`{name}` is defined outside any kernel",
        span=span,
        help="put it into `kernel name { … }`; directly in an op, `let` names integers of dims",
    )


def no_kernel(span: Span, name: str) -> Diagnostic:
    """An op without a kernel block."""
    return Diagnostic(
        code=NO_KERNEL,
        message=f"op `{name}` has no kernel",
        span=span,
        help="add `kernel name { … }` with the statements that define its results",
    )


def unused(span: Span, name: str) -> Diagnostic:
    """A value without a reader."""
    return Diagnostic(
        code=UNUSED,
        message=f"`{name}` is never used",
        span=span,
        help="remove it, or read it in a statement that leads to an output",
        severity="warning",
    )


def off_matrix(span: Span, operand: str, kind: str, where: Span, *, further: str = "") -> Diagnostic:
    """A contraction with an operand of 32 bits or more and no `using`; ``further``: how a factor enters an operand,
    `times` or `over` it."""
    shown = operand if operand.startswith("an ") else f"`{operand}`"
    if further:
        beside = "another factor" if operand.startswith("an ") else shown
        shown, kind = f"an operand {further} {beside}", "f32"
    why, help_ = (
        "no type of at most 16 bits holds it exactly",
        "if its rounding is acceptable, say `using bf16` (or `f16`, `tf32`) after the `sum[…]`",
    )
    if kind != "f32":
        why, help_ = "matrix units multiply integers of 8 bits", "if it fits, take it as `i8`"
    return Diagnostic(
        code=OFF_MATRIX,
        message="this contraction stays off the matrix units",
        span=span,
        notes=(Note(f"{shown} is {kind}, and {why}", where),),
        help=help_,
        severity="warning",
    )


def setting(span: Span, message: str, help: str = "", *notes: Note) -> Diagnostic:
    """A line of a workload that does not fit."""
    return Diagnostic(code=SETTING, message=message, span=span, help=help, notes=notes)


def no_workload(span: Span, name: str, help: str) -> Diagnostic:
    """An expect block for a workload that does not exist."""
    return Diagnostic(code=BUDGET, message=f"unknown workload `{name}`", span=span, help=help)
