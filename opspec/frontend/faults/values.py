"""OP4xx: types, casts and literals."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Note, register
from opspec.frontend.faults.naming import nearest, short
from opspec.source import Span

MISMATCH = register(
    Code(
        code="OP401",
        title="a value of the wrong type",
        why="Numbers and truth values do not mix, and a float becomes an integer only by a cast.",
        example="y[i] = x[i] + (x[i] > 0)",
        fix="Use `where(condition, 1, 0)`, or a cast.",
    )
)
MODE = register(
    Code(
        code="OP402",
        title="a cast that does not say what an overflow does",
        why="Into 8 bits and fewer, libraries differ on overflow: one clamps, another gives NaN or wraps.",
        example="y[i] = f8e4m3(x[i])",
        fix="Write `f8e4m3.sat(x)` or `f8e4m3.nonsat(x)`, `i8.sat(x)` or `i8.wrap(x)`.",
    )
)
POWER = register(
    Code(
        code="OP403",
        title="an exponent that is not a small integer",
        why="A power is a product that is written out; other exponents are `exp(a * log(x))` or `sqrt(x)`.",
        example="y[i] = x[i] ** 0.5",
        fix="Use `sqrt(x)`, `rsqrt(x)` or `exp` and `log`.",
    )
)
INTEGER = register(
    Code(
        code="OP404",
        title="not an integer expression",
        why="Extents, indices and bounds are made of dims, indices, integers and integer tensors only.",
        example="y[i] = x[i * 0.5]",
        fix="Use `//` for a division, and integer tensors for gathers.",
    )
)
DEFAULT = register(
    Code(
        code="OP405",
        title="a default that does not fit the parameter",
        why="A default is a literal of the parameter's type.",
        example="eps: f32 = M",
        fix="Write a literal.",
    )
)
CONDITION = register(
    Code(
        code="OP406",
        title="a condition that cannot bound a domain",
        why="A domain is given by comparisons of integer expressions, so that it can be counted.",
        example="y[i] = x[i] for x[i] > 0",
        fix="Compare indices, dims and integer tensors; a condition on data goes into `where`.",
    )
)


def mismatch(span: Span, message: str, help: str = "", *notes: Note) -> Diagnostic:
    """A type that does not fit."""
    return Diagnostic(code=MISMATCH, message=message, span=span, help=help, notes=notes)


def mode(span: Span, dtype: str, kind: str) -> Diagnostic:
    """A narrowing without a mode."""
    other = "nonsat" if kind == "float" else "wrap"
    return Diagnostic(
        code=MODE,
        message=f"a cast to `{dtype}` must say what an overflow does",
        span=span,
        help=f"write `{dtype}.sat(…)` to clamp, or `{dtype}.{other}(…)`",
    )


def wrong_mode(span: Span, dtype: str, kind: str, found: str, allowed: tuple[str, ...]) -> Diagnostic:
    """A mode that the dtype does not have."""
    if not allowed and kind == "float":
        help_ = f"write `{dtype}(…)`: its overflow is IEEE's"
    elif not allowed:
        help_ = f"write `{dtype}(…)`, of what `clamp` keeps in its range if it may be out of it"
    else:
        near = nearest(found, allowed)
        help_ = f"{near} " * bool(near) + "it has " + " and ".join(f"`.{m}`" for m in allowed)
    return Diagnostic(code=MODE, message=f"`{dtype}` has no cast mode `{found}`", span=span, help=help_)


def power(span: Span, text: str) -> Diagnostic:
    """An exponent that cannot be written out."""
    help_ = "write `sqrt(x)`" if text == "0.5" else "write `rsqrt(x)`" if text == "-0.5" else ""
    return Diagnostic(
        code=POWER,
        message="an exponent is an integer literal of at most 64",
        span=span,
        help=help_ or "for other powers use `exp(a * log(x))`",
    )


def integer(span: Span, text: str, why: str, help: str = "", declared: Span | None = None) -> Diagnostic:
    """An expression that is no integer of dims and indices; ``declared``: where what it reads is."""
    notes = (Note("declared here", declared),) if declared is not None else ()
    return Diagnostic(code=INTEGER, message=f"`{short(text)}` {why}", span=span, notes=notes, help=help)


def default(span: Span, name: str, dtype: str) -> Diagnostic:
    """A default of another type, or one that is not literal."""
    return Diagnostic(
        code=DEFAULT, message=f"the default of `{name}` is no literal of type `{dtype}`", span=span
    )


def on_data(span: Span, text: str, help: str) -> Diagnostic:
    """A requirement that the host cannot check."""
    return Diagnostic(code=CONDITION, message=f"`{short(text)}` depends on data", span=span, help=help)


def condition(
    span: Span, text: str, help: str = "", why: str = "does not compare integer expressions"
) -> Diagnostic:
    """A condition on values where a domain is stated."""
    return Diagnostic(
        code=CONDITION,
        message=f"`{short(text)}` {why}",
        span=span,
        help=help or "a condition on data goes into `where(condition, a, b)`",
    )
