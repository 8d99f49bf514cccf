"""Codes of the lints."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, register
from opspec.source import Span

DISAGREE = register(
    Code(
        code="OP751",
        title="stated numbers do not agree with each other",
        why="A total that is no whole number of runs, a measurement under its bound, tokens that do not add up: one of "
        "the numbers is wrong, and whatever follows from it is, too.",
        example="stage blocks = 18 ms of 4.1 ms each      # 4.39 runs",
        fix="Correct the number, or say what it counts; `opspec pipeline` shows the whole calculation.",
        severity="warning",
    )
)
IDEAL = register(
    Code(
        code="OP752",
        title="evidence rests on ideal shapes",
        why="Every extent of every workload is a power of two or a multiple of 16, so no tile is ever partly filled. "
        "Real shapes are not like that, and a gain may vanish on them.",
        example="workload w for f { M = 8192, N = 4096 }      # and no other",
        fix="Add a workload with the shapes that are served, ragged ones included.",
        severity="warning",
    )
)
NO_TRAFFIC = register(
    Code(
        code="OP753",
        title="evidence ignores the distribution of shapes",
        why="The op is only looked at shape by shape. What is served is a mixture, and its mean and worst shape decide.",
        example="workload w for f { T = 8192 }      # though lengths vary",
        fix='Give a distribution, `T ~ {512: 0.3, 2048: 0.7}`, or recorded traffic, `T ~ "traffic.csv"`.',
        severity="warning",
    )
)
NO_BYTES = register(
    Code(
        code="OP754",
        title="evidence computes no bytes",
        why="Wrong bytes are the most common error of a cost argument. A line that computes them lets anybody see.",
        example="numbers { decode @ decode_8k: flops }      # and no bytes",
        fix="Add `OP @ WORKLOAD: bytes` or an intensity to `numbers`.",
        severity="warning",
    )
)
NOT_STEADY = register(
    Code(
        code="OP755",
        title="nothing shows that a measurement is of a steady state",
        why="A time that is only stated may hold a first launch, a compilation or a throttled clock, and nobody can "
        "measure it again. A result file keeps samples, environment and the driver that took them.",
        example="stage attention = 32 * decode @ decode_8k takes 0.55 ms measured",
        fix='Measure with the generated driver and write `from "result.json"`.',
        severity="warning",
    )
)
ONE_SIDED = register(
    Code(
        code="OP756",
        title="theory and measurement do not stand side by side",
        why="Before a release both are needed, so that their distance can be explained: the bound of an op on a "
        "machine, and the time that it took.",
        example="stage attention = 12 ms measured      # which op, on which machine?",
        fix="State what runs, `OP @ WORKLOAD`, the machine, and the measured time.",
        severity="warning",
    )
)

MATERIALISED = register(
    Code(
        code="OP757",
        title="an intermediate value that dwarfs the tensors goes through memory",
        why="One kernel writes it and another reads it back. Kept in the kernel that uses it, it would never leave the "
        "chip: a score matrix is the usual case.",
        example="kernel scores { s: bf16[i, j] = … }  kernel weights { p[i, j] = softmax[j](s[i, j]) }",
        fix="Put both statements into one kernel block; `opspec explain` says whether they can share a launch.",
        severity="warning",
    )
)


def warning(code: Code, message: str, span: Span | None, help: str = "") -> Diagnostic:
    """A warning with the code's own fix, if no better one is known."""
    return Diagnostic(code=code, message=message, span=span, help=help or code.fix, severity="warning")
