"""OP2xx: names, and how many of what they take."""

from __future__ import annotations

from collections.abc import Iterable

from opspec.diagnostics import Code, Diagnostic, Note, register
from opspec.frontend.faults.naming import listing, suggest
from opspec.source import Span

UNKNOWN = register(
    Code(
        code="OP201",
        title="unknown name",
        why="Every name is declared, so that a typo is an error and not a new thing.",
        example="y[i] = z[i]   # no z",
        fix="Declare it, or correct the spelling.",
    )
)
DUPLICATE = register(
    Code(
        code="OP202",
        title="a name is declared twice",
        why="A tensor, scalar, dim, statement or index has one name in its op, and they never clash.",
        example="op f[N](N: f32[N]) -> …",
        fix="Rename one of them.",
    )
)
UNKNOWN_FUNCTION = register(
    Code(
        code="OP203",
        title="unknown function",
        why="Functions come from the language, its prelude, an import or an `fn` of the file.",
        example="y[i] = sigmod(x[i])",
        fix="Correct the spelling, or define it with `fn`.",
    )
)
EXTENT = register(
    Code(
        code="OP204",
        title="an index over two different extents",
        why="An index takes its extent from the axes that it stands bare on, and they must agree.",
        example="y[i] = a[i] + b[i]   # a: f32[M], b: f32[N]",
        fix="Use two indices, make the dims one, or restrict the index with `for i < …`.",
    )
)
NO_EXTENT = register(
    Code(
        code="OP205",
        title="an index without an extent",
        why="An index that stands bare on no axis has no extent of its own.",
        example="y[i] = sum[r](x[i + r])",
        fix="Say `sum[r | r < R](…)`, or `for r < R` after the statement.",
    )
)
UNBOUND = register(
    Code(
        code="OP206",
        title="an index that nothing binds",
        why="There are no implicit sums: an index is on the left-hand side or bound by a reduction.",
        example="y[i] = x[i, j]",
        fix="Add it to the left-hand side, or reduce over it: `sum[j](x[i, j])`.",
    )
)
ARITY = register(
    Code(
        code="OP207",
        title="the wrong number of indices or arguments",
        why="A tensor takes one index per axis, a function one argument per parameter.",
        example="y[i] = x[i]   # x: f32[M, N]",
        fix="Write as many as were declared.",
    )
)
NOT_INDEX = register(
    Code(
        code="OP208",
        title="something else where an index name stands",
        why="A reduction or left-hand side binds index names, not expressions.",
        example="sum[2](x[i])",
        fix="Write a bare name.",
    )
)
UNKNOWN_DTYPE = register(
    Code(
        code="OP209",
        title="unknown dtype",
        why="The dtypes are those of storage; a generic one is declared with `dtype X in {…}`.",
        example="x: fp32[N]",
        fix="Use one of the dtypes that the message lists.",
    )
)
RECURSION = register(
    Code(
        code="OP210",
        title="a function that calls itself",
        why="Functions are inlined, so that their cost can be counted; there is no recursion.",
        example="fn f(x) = f(x)",
        fix="State it without recursion.",
    )
)
EARLY = register(
    Code(
        code="OP211",
        title="a value is read before it is defined",
        why="Statements are in order, and each reads inputs and earlier values only.",
        example="y[i] = z[i]\n  z[i] = x[i]",
        fix="Move the statement that defines it up.",
    )
)
NEEDS_INDICES = register(
    Code(
        code="OP212",
        title="a tensor without its indices",
        why="Every element is named by its indices; there is no implicit broadcast.",
        example="y[i] = x",
        fix="Write the indices: `x[i]`.",
    )
)


def unknown(span: Span, name: str, candidates: Iterable[str], what: str = "name") -> Diagnostic:
    """A name that is not declared."""
    return Diagnostic(
        code=UNKNOWN,
        message=f"unknown {what} `{name}`",
        span=span,
        help=suggest(name, candidates, "known here"),
    )


def duplicate(span: Span, name: str, first: Span | None, what: str = "") -> Diagnostic:
    """A second declaration."""
    notes = (Note("first declared here", first),) if first is not None else ()
    message = f"`{name}` is declared twice" if not what else f"`{name}` is already {what}"
    return Diagnostic(code=DUPLICATE, message=message, span=span, notes=notes)


def taken(span: Span, name: str, what: str, first: Span | None) -> Diagnostic:
    """An index called like something else."""
    notes = (Note("declared here", first),) if first is not None else ()
    return Diagnostic(
        code=DUPLICATE,
        message=f"`{name}` is {what} of this op and cannot be an index",
        span=span,
        notes=notes,
        help="choose another name for the index",
    )


def unknown_function(span: Span, name: str, candidates: Iterable[str], hint: str = "") -> Diagnostic:
    """A function that nobody defines."""
    return Diagnostic(
        code=UNKNOWN_FUNCTION,
        message=f"unknown function `{name}`",
        span=span,
        help=hint or suggest(name, candidates, "functions"),
    )


def extents(
    span: Span,
    index: str,
    first: str,
    second: str,
    where: Span,
    first_words: str,
    second_words: str,
    least: str = "",
) -> Diagnostic:
    """An index on axes of different extents; ``least``: the one that all of them reach, where that is known."""
    return Diagnostic(
        code=EXTENT,
        message=f"index `{index}` ranges over `{first}` and over `{second}`",
        span=span,
        notes=(Note(f"{second_words} gives it `{second}`"), Note(f"{first_words} gives it `{first}`", where)),
        help=f"use two indices, or restrict it to what both axes hold: `{index} < {least}`"
        if least
        else f"use two indices, or restrict it with `for {index} < …` to what both axes hold",
    )


def no_extent(
    span: Span, index: str, dims: Iterable[str], near: tuple[str, str, str, Span] | None = None
) -> Diagnostic:
    """An index that stands bare on no axis; ``near``: how far it goes, and the extent, name and place of one that it
    stands on with an offset or a factor."""
    notes: tuple[Note, ...] = ()
    end = next((d for d in dims if d.casefold() == index.casefold()), "…")
    if near is not None:
        end, extent, axis, place = near
        notes = (Note(f"`{place.text}` stands on {axis}, whose extent is `{extent}`", place),)
    help_ = f"say how far it goes: `for {index} < {end}`"
    return Diagnostic(
        code=NO_EXTENT, message=f"index `{index}` has no extent", span=span, notes=notes, help=help_
    )


def unbound(span: Span, index: str, statement: str) -> Diagnostic:
    """A free index of a statement that its left-hand side does not have."""
    return Diagnostic(
        code=UNBOUND,
        message=f"index `{index}` is neither on the left-hand side of `{statement}` nor reduced over",
        span=span,
        help=f"there are no implicit sums: write `sum[{index}](…)`, or add it to the left-hand side",
    )


def escapes(span: Span, index: str, function: str, statement: str) -> Diagnostic:
    """An index of a function whose value still depends on it."""
    return Diagnostic(
        code=UNBOUND,
        message=f"index `{index}` is not on the left-hand side of `{statement}`, and `{function}` has a value for each",
        span=span,
        help=f"add it to the left-hand side, or reduce over it: `sum[{index}]({function}[{index}](…))`",
    )


def arity(span: Span, what: str, expected: str, found: int, where: Span | None = None) -> Diagnostic:
    """The wrong number of indices or arguments."""
    notes = (Note("declared here", where),) if where is not None else ()
    return Diagnostic(code=ARITY, message=f"{what} takes {expected}, not {found}", span=span, notes=notes)


def not_index(span: Span, text: str, where: str, help: str = "") -> Diagnostic:
    """An expression where an index name is needed."""
    return Diagnostic(
        code=NOT_INDEX, message=f"`{text}` is no index name, as {where} needs", span=span, help=help
    )


def several(span: Span, name: str) -> Diagnostic:
    """An index parameter that stands for several indices where one is needed."""
    return Diagnostic(
        code=NOT_INDEX,
        message=f"`{name}` stands for several indices here, and one is needed",
        span=span,
        help="call the function with one index in `[ ]`",
    )


def dtype_parameter(span: Span, name: str, candidates: Iterable[str]) -> Diagnostic:
    """A dtype parameter where one dtype has to be named."""
    return Diagnostic(
        code=UNKNOWN_DTYPE,
        message=f"`using` takes one dtype, and `{name}` stands for several",
        span=span,
        help=f"name the one in which factors meet: {', '.join(f'`{c}`' for c in candidates)}",
    )


def unknown_dtype(span: Span, name: str, candidates: Iterable[str]) -> Diagnostic:
    """A dtype that does not exist."""
    spelled = {
        "fp32": "f32", "float": "f32", "float32": "f32", "fp16": "f16", "half": "f16", "float16": "f16",
        "bfloat16": "bf16", "int8": "i8", "int4": "i4", "int32": "i32", "int64": "i64", "int": "i32",
        "fp8": "f8e4m3", "e4m3": "f8e4m3", "e5m2": "f8e5m2", "boolean": "bool",
    }.get(name)  # fmt: skip
    help_ = f"did you mean `{spelled}`?" if spelled else suggest(name, candidates, "dtypes")
    return Diagnostic(code=UNKNOWN_DTYPE, message=f"unknown dtype `{name}`", span=span, help=help_)


def recursion(span: Span, chain: Iterable[str]) -> Diagnostic:
    """A call that leads back to itself."""
    names = list(chain)
    return Diagnostic(
        code=RECURSION,
        message=f"function `{names[0]}` calls itself",
        span=span,
        notes=(Note(" calls ".join(f"`{n}`" for n in names)),),
    )


def early(span: Span, name: str, where: str) -> Diagnostic:
    """A value that is read before the statement that defines it."""
    return Diagnostic(
        code=EARLY,
        message=f"`{name}` is read before it is defined",
        span=span,
        help=where or "move the statement that defines it up",
    )


def needs_indices(span: Span, name: str, rank: int, where: Span | None) -> Diagnostic:
    """A tensor used as if it were a scalar."""
    notes = (Note("declared here", where),) if where is not None else ()
    return Diagnostic(
        code=NEEDS_INDICES,
        message=f"`{name}` has {rank} {'axis' if rank == 1 else 'axes'} and stands here without indices",
        span=span,
        notes=notes,
        help=f"write `{name}[{', '.join('ijklmnpqrs'[:rank])}]`" if rank < 10 else "",
    )


def known(names: Iterable[str]) -> str:
    """A list of names for a help line."""
    return listing(names)
