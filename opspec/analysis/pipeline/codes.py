"""Diagnostic codes of pipelines, result files and gates."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.source import Source, Span

NO_PIPELINE = register(
    Code(
        code="OP741",
        title="The spec has no such pipeline, variant or evidence.",
        why="`SPEC:NAME` names a pipeline (or, for the gate, an evidence block) that the file states.",
        example="opspec pipeline specs/attention/decode.op:decode_tokn",
        fix="Name one of those that the message lists.",
    )
)
NO_TIME = register(
    Code(
        code="OP742",
        title="A stage has no time.",
        why="A stage's time is stated, measured, or derived on a machine; nothing is assumed silently.",
        example="stage attention = 32 * decode @ decode_8k   # no machine anywhere",
        fix="Give `--machine NAME`, write `machine NAME` into the pipeline, or `takes 0.55 ms measured`.",
    )
)
BAD_RESULT = register(
    Code(
        code="OP743",
        title="A result file can't be used.",
        why="A number from another spec, op or schema would decide about the wrong thing.",
        example="opspec gate decode.op results-of-another-spec.json",
        fix="Give the file that was measured for this spec, with every field of its schema.",
    )
)


def refuse(code: Code, message: str, span: Span | None, help: str = "") -> Failure:
    """A failure of one diagnostic."""
    return Failure(Diagnostic(code=code, message=message, span=span, help=help or code.fix))


def unknown(name: str, known: list[str], what: str) -> Failure:
    """The failure for a name on the command line that nothing has."""
    from difflib import get_close_matches

    if not known:
        return refuse(NO_PIPELINE, f"the spec states no {what}", None, f"state one: `{what} NAME {{ … }}`")
    near = get_close_matches(name[:60], known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    listed = ", ".join(f"`{k}`" for k in known)
    span = Span(Source(f"<{what}>", name), 0, len(name)) if name else None
    message = f"the spec has no {what} `{name}`" if name else f"say which {what} is meant"
    return refuse(NO_PIPELINE, message, span, f"{hint}known: {listed}")
