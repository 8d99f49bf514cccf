"""OP3xx: where a value exists, what is read outside, and what is written."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Note, register
from opspec.frontend.faults.naming import short
from opspec.source import Span

RANGE = register(
    Code(
        code="OP301",
        title="a read that may leave the tensor",
        why="A read is provably in range, or says what it gives outside, or stands in a branch of `where`.",
        example="y[i] = x[i + 1]",
        fix="Restrict the index, write `x[i + 1] else 0`, or guard it with `where(i + 1 < N, …, …)`.",
    )
)
EMPTY = register(
    Code(
        code="OP302",
        title="a maximum over what may be nothing",
        why="A max, min or arg-reduction has no value over an empty domain unless one is declared.",
        example="y[i] = max[j | j < i](x[j])",
        fix="Declare the identity: `max[j | j < i](x[j]) else -inf`.",
    )
)
UNCOVERED = register(
    Code(
        code="OP303",
        title="an output with elements that are not written",
        why="Every element of an output is written exactly once.",
        example="y[i + 1] = x[i]",
        fix="Add the statement that writes the rest, or widen the domain.",
    )
)
TWICE = register(
    Code(
        code="OP304",
        title="an element that is written twice",
        why="Every element of an output is written exactly once, so that the order does not matter.",
        example="y[i] = a[i]\n  y[i] = b[i]",
        fix="Combine the values, or restrict the domains so that they do not overlap.",
    )
)
SCATTER = register(
    Code(
        code="OP305",
        title="scatter-add is not supported",
        why="Its order of additions, and so its value, would depend on the run.",
        example="scatter_add(y, idx, x)",
        fix="Turn it into a gather over sorted indices, or keep it outside the op.",
    )
)
GATHERED = register(
    Code(
        code="OP306",
        title="a write through indices that may repeat",
        why="Two programs could write one element, in either order.",
        example="cache[slot[b], d] = k[b, d]",
        fix="Promise it: `assume distinct(slot)`.",
    )
)
NEVER = register(
    Code(
        code="OP307",
        title="an output that is never written",
        why="Every element of an output is written exactly once.",
        example="op f[N](x: f32[N]) -> y: f32[N], z: f32[N] { … only y … }",
        fix="Write it, or remove it from the results.",
    )
)
TARGET = register(
    Code(
        code="OP308",
        title="a left-hand side that cannot be written to",
        why="Inputs are read-only, and a value's left-hand side is its list of indices.",
        example="x[i] = 0   # x is an input",
        fix="Declare the tensor `inout`, or write to a new name.",
    )
)
ELSEWHERE = register(
    Code(
        code="OP309",
        title="an updated tensor read at another point",
        why="Another program may already have overwritten that point.",
        example="x[i] = x[i + 1]   # x is inout",
        fix="Read the point that is written, or write to an output instead.",
    )
)
PARTS = register(
    Code(
        code="OP310",
        title="an output written in parts is read in its own kernel",
        why="Several statements hold its unrounded value, one for each part.",
        example="y[c] = …; y[c + C] = …; z[i] = y[i]",
        fix="Name the value in a statement of its own, or read it in a later kernel.",
    )
)
SCAN = register(
    Code(
        code="OP311",
        title="a scan over a domain with holes",
        why="A running reduction goes along one index in order.",
        example="y[i, j] = scan_sum[i](x[i, j])",
        fix="See the message.",
    )
)


def out_of_range(
    span: Span,
    text: str,
    axis: str,
    extent: str,
    over: bool,
    reach: str,
    where: Span | None,
    *,
    needed: str = "",
    within: str = "",
) -> Diagnostic:
    """A read that is not proven to stay inside; ``needed``: what must hold of the dims where no index has a say,
    ``within``: of the one index that it has."""
    side = f"be `{extent}` or more" if over else "be negative"
    notes = [Note(f"{axis} has the extent `{extent}`", where)] if where is not None else []
    if reach:
        notes.append(Note(f"`{text}` reaches `{reach}`"))
    return Diagnostic(
        code=RANGE,
        message=f"index `{short(text)}` may {side}",
        span=span,
        notes=tuple(notes),
        help=f"say `require {needed}`, or what lies outside with `else`"
        if needed
        else f"restrict the domain{f': `{within}`' if within else ' with `for`'}, say what lies outside with `else`, "
        "or guard it with `where`",
    )


def written_outside(
    span: Span, text: str, axis: str, extent: str, over: bool, where: Span | None
) -> Diagnostic:
    """A write that is not proven to stay inside."""
    side = f"be `{extent}` or more" if over else "be negative"
    return Diagnostic(
        code=RANGE,
        message=f"index `{short(text)}` on the left-hand side may {side}",
        span=span,
        notes=(Note(f"{axis} has the extent `{extent}`", where),),
        help="restrict the domain with `for`" + _required(text, extent),
    )


def _required(text: str, extent: str) -> str:
    return f", or say `require {extent} > {text}`" if text.isdigit() else ""


def outside_domain(span: Span, name: str, condition: str, where: Span | None) -> Diagnostic:
    """A read of a value where it is not defined."""
    notes = (Note(f"it is defined where `{condition}`", where),)
    return Diagnostic(
        code=RANGE,
        message=f"`{name}` is read where it may not be defined",
        span=span,
        notes=notes,
        help="restrict the domain with `for`, or say what lies outside with `else`",
    )


def may_be_empty(span: Span, name: str, condition: str) -> Diagnostic:
    """A max, min or arg-reduction that some points have nothing for."""
    identity = {"max": "-inf", "min": "inf"}.get(name, "-1")
    return Diagnostic(
        code=EMPTY,
        message=f"`{name}` may range over nothing, and has no value there",
        span=span,
        notes=(Note(f"not proven: `{condition} >= 0`"),) if condition else (),
        help=f"declare what it gives then: `{name}[…](…) else {identity}`",
    )


def may_select_nothing(span: Span, name: str, condition: str) -> Diagnostic:
    """A max or min over the points that fulfil a condition on data."""
    identity = {"max": "-inf", "min": "inf"}[name]
    return Diagnostic(
        code=EMPTY,
        message=f"`{short(condition)}` may select nothing, and `{name}` has no value then",
        span=span,
        help=f"declare its identity: `{name}[…](…) else {identity}`",
    )


def uncovered(span: Span, name: str, why: str, notes: tuple[Note, ...] = ()) -> Diagnostic:
    """An output whose elements are not all written, as far as can be proven."""
    return Diagnostic(
        code=UNCOVERED,
        message=f"not every element of `{name}` is written",
        span=span,
        notes=(Note(why), *notes),
        help="widen the domain, or write the rest in another statement",
    )


def twice(span: Span, name: str, first: Span | None, proven: bool = True) -> Diagnostic:
    """Two statements that write the same element."""
    return Diagnostic(
        code=TWICE,
        message=f"an element of `{name}` {'is' if proven else 'may be'} written twice",
        span=span,
        notes=(Note("also written here", first),) if first is not None else (),
    )


def updated_twice(span: Span, name: str, first: Span | None) -> Diagnostic:
    """Two assignments to a tensor that is updated in place."""
    return Diagnostic(
        code=TWICE,
        message=f"`{name}` is updated in place by more than one statement",
        span=span,
        notes=(Note("also updated here", first),) if first is not None else (),
        help="write it in one statement, its cases as branches of a `where`; or make it a result",
    )


def scatter(span: Span, name: str) -> Diagnostic:
    """Scatter-add, by name."""
    return Diagnostic(
        code=SCATTER,
        message=f"`{name}` is not supported: additions in no fixed order have no one value",
        span=span,
        help="sort by destination and sum with `for n in offs[e]..offs[e + 1]`, or keep it outside the op",
    )


def gathered(span: Span, name: str, tensor: str) -> Diagnostic:
    """A gathered write without the promise."""
    return Diagnostic(
        code=GATHERED,
        message=f"`{name}` is written through `{tensor}`, whose elements may repeat",
        span=span,
        help=f"if they never do, say `assume distinct({tensor})`",
    )


def never(span: Span, name: str, near: str = "", where: Span | None = None) -> Diagnostic:
    """An output without a statement; ``near``: a value that nothing reads and whose name is much like it."""
    return Diagnostic(
        code=NEVER,
        message=f"output `{name}` is never written",
        span=span,
        notes=(Note(f"`{near}` is written here, and nothing reads it", where),) if near else (),
        help=f"did you mean `{name}`?" if near else "",
    )


def no_result(span: Span, name: str) -> Diagnostic:
    """An op that gives and changes nothing."""
    return Diagnostic(
        code=NEVER,
        message=f"op `{name}` has no result",
        span=span,
        help="add `-> y: …` after its parameters, or mark a parameter `inout`",
    )


def target(span: Span, message: str, help: str = "", *notes: Note) -> Diagnostic:
    """A left-hand side that means nothing."""
    return Diagnostic(code=TARGET, message=message, span=span, help=help, notes=notes)


def elsewhere(span: Span, name: str, where: Span | None) -> Diagnostic:
    """An in-place update that reads a neighbour."""
    return Diagnostic(
        code=ELSEWHERE,
        message=f"`{name}` is updated in place and read here at another point than the one written",
        span=span,
        notes=(Note("it is written here", where),) if where is not None else (),
        help="read the point that is written, or write to an output instead",
    )


def in_parts(span: Span, name: str, notes: tuple[Note, ...]) -> Diagnostic:
    """A read of an output that several statements of the same kernel fill."""
    return Diagnostic(
        code=PARTS,
        message=f"`{name}` is written in parts and cannot be read in the same kernel",
        span=span,
        notes=notes,
        help="name the value in a statement of its own, and read that",
    )


def scan_order(span: Span, message: str, help: str = "") -> Diagnostic:
    """A scan that cannot run in order."""
    return Diagnostic(code=SCAN, message=message, span=span, help=help)
