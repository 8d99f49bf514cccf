"""OP1xx: text that is not a spec."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Note, register
from opspec.frontend.faults.lookalikes import meant_by
from opspec.source import Source, Span

STRAY = register(
    Code(
        code="OP101",
        title="a character that no token begins with",
        why="Outside strings and comments a spec is ASCII: names, numbers, brackets and operators.",
        example="y[i] = x[i] $ 2",
        fix="Remove the character, or put it into a comment or a doc string.",
    )
)
UNEXPECTED = register(
    Code(
        code="OP102",
        title="unexpected token",
        why="The text does not follow the grammar from this token on.",
        example="y[i] = x[i] +* 2",
        fix="Write one of the tokens that the message names.",
    )
)
UNCLOSED = register(
    Code(
        code="OP103",
        title="a bracket is never closed",
        why="The item ends while a bracket is still open, so that nothing after it can be understood.",
        example="y[i = x[i]",
        fix="Close the bracket.",
    )
)
MISMATCHED = register(
    Code(
        code="OP104",
        title="a bracket is closed by another kind",
        why="Brackets close in the reverse order in which they open.",
        example="y[i) = x[i]",
        fix="Use the closing bracket of the same kind.",
    )
)
TOO_DEEP = register(
    Code(
        code="OP105",
        title="nested too deeply",
        why="An expression of that depth is a mistake or an attack; refusing it keeps every pass bounded.",
        example="y = ((((…))))",
        fix="Name parts of it with `let`.",
    )
)
TOO_BIG = register(
    Code(
        code="OP106",
        title="too much text",
        why="A spec states a handful of operators. Text of this size is a mistake or an attack.",
        example="a file of 10 MB",
        fix="Split it into files and `import` them.",
    )
)
RESERVED = register(
    Code(
        code="OP107",
        title="a word of the language used as a name",
        why="The word has a meaning of its own, and a name must never have two.",
        example="fn for(x) = x",
        fix="Choose another name.",
    )
)
NUMBER = register(
    Code(
        code="OP108",
        title="not a number",
        why="A literal is digits with an optional fraction and exponent.",
        example="y[i] = 1.2.3 * x[i]",
        fix="Write it like `12`, `0.5` or `1e-6`.",
    )
)
FORM = register(
    Code(
        code="OP109",
        title="a form that the language does not have",
        why="The text parses, but this combination means nothing.",
        example="exp.sat(x)",
        fix="See the message.",
    )
)
UNREADABLE = register(
    Code(
        code="OP110",
        title="a file cannot be read",
        why="A spec is UTF-8 text in a file that exists.",
        example='import "missing.op"',
        fix="Check the path; relative paths start at the file that imports.",
    )
)
CYCLE = register(
    Code(
        code="OP111",
        title="files import each other",
        why="Imports must end somewhere.",
        example='a.op: import "b.op", b.op: import "a.op"',
        fix="Move what both need into a third file.",
    )
)


def stray(span: Span, text: str) -> Diagnostic:
    """A character outside the language."""
    if text == '"':
        return Diagnostic(
            code=STRAY, message="a string is never closed", span=span, help='end it with `"` on the same line'
        )
    shown = text if text.isprintable() else f"U+{ord(text):04X}"
    return Diagnostic(
        code=STRAY, message=f"unexpected character `{shown}`", span=span, help=meant_by(text[:1])
    )


def unexpected(span: Span, found: str, expected: str, help: str = "") -> Diagnostic:
    """A token where another is needed; ``expected`` is a list in words."""
    notes = (Note(f"expected {expected}"),) if expected else ()
    return Diagnostic(code=UNEXPECTED, message=f"unexpected {found}", span=span, notes=notes, help=help)


def unclosed(span: Span, bracket: str) -> Diagnostic:
    """A bracket that stays open to the end of the item."""
    return Diagnostic(code=UNCLOSED, message=f"`{bracket}` is never closed", span=span)


def mismatched(span: Span, found: str, opened: str, where: Span) -> Diagnostic:
    """A bracket of the wrong kind."""
    return Diagnostic(
        code=MISMATCHED,
        message=f"`{found}` cannot close `{opened}`",
        span=span,
        notes=(Note(f"`{opened}` was opened here", where),),
    )


def unopened(span: Span, found: str) -> Diagnostic:
    """A closing bracket without an opening one."""
    return Diagnostic(code=MISMATCHED, message=f"`{found}` closes nothing", span=span)


def too_deep(span: Span, limit: int) -> Diagnostic:
    """Nesting beyond the limit."""
    return Diagnostic(
        code=TOO_DEEP,
        message=f"nested more than {limit} levels deep",
        span=span,
        help="name parts of the expression with `let`",
    )


def too_much(span: Span, limit: int) -> Diagnostic:
    """Functions that unfold to more than can be worked on."""
    return Diagnostic(
        code=TOO_BIG,
        message=f"the op unfolds to more than {limit:,} operations",
        span=span,
        help="functions are inlined where they are called; call fewer of them, or name values in statements",
    )


def too_hard(span: Span, op: str) -> Diagnostic:
    """Proofs that take longer than any that are meant."""
    return Diagnostic(
        code=TOO_BIG,
        message=f"the proofs about op `{op}` take too many steps",
        span=span,
        help="state fewer conditions or simpler index expressions; reads with `else` need no proof",
    )


def too_many(span: Span, indices: int, conditions: int) -> Diagnostic:
    """A statement beyond what proofs are tried on."""
    return Diagnostic(
        code=TOO_BIG,
        message=f"a statement with more than {indices} indices or {conditions} conditions",
        span=span,
        help="name parts of it in statements of their own",
    )


def more_than(span: Span, what: str, limit: int, help: str = "") -> Diagnostic:
    """A list that is longer than anything that is meant."""
    return Diagnostic(code=TOO_BIG, message=f"more than {limit:,} {what}", span=span, help=help)


def too_big(source: Source, limit: str) -> Diagnostic:
    """Text beyond the limit."""
    return Diagnostic(
        code=TOO_BIG,
        message=f"`{source.name}` is larger than a spec may be ({limit})",
        span=Span(source, 0, 0),
        help="split it into files and import them",
    )


def too_long(span: Span, limit: int) -> Diagnostic:
    """A name or number of absurd length."""
    return Diagnostic(
        code=TOO_BIG,
        message=f"a name or number of more than {limit} characters",
        span=Span(span.source, span.start, span.start + 40),
    )


def reserved(span: Span, name: str, what: str) -> Diagnostic:
    """A word of the language as a name."""
    return Diagnostic(
        code=RESERVED,
        message=f"`{name}` is a word of the language and cannot name {what}",
        span=span,
        help=f"for instance `{name}_`",
    )


def bad_number(span: Span, text: str, why: str) -> Diagnostic:
    """A literal that is no number, or one out of range."""
    return Diagnostic(code=NUMBER, message=f"`{text[:40]}` {why}", span=span)


def form(span: Span, message: str, help: str = "", *notes: Note) -> Diagnostic:
    """A combination without meaning."""
    return Diagnostic(code=FORM, message=message, span=span, help=help, notes=notes)


def unreadable(span: Span | None, path: str, reason: str, help: str = "") -> Diagnostic:
    """A file that is missing, not a file, or not UTF-8."""
    return Diagnostic(code=UNREADABLE, message=f"cannot read `{path}`: {reason}", span=span, help=help)


def cycle(span: Span, chain: tuple[str, ...]) -> Diagnostic:
    """An import that leads back to itself."""
    return Diagnostic(
        code=CYCLE,
        message="this import leads back to the file that it stands in",
        span=span,
        notes=(Note(" imports ".join(chain)),),
        help="move what both need into a third file",
    )
