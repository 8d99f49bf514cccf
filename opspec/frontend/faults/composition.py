"""OP65x: pipelines, variants, evidence, machines, ledgers and recorded traffic."""

from __future__ import annotations

from opspec.diagnostics import Code, Diagnostic, Note, register
from opspec.source import Span

STAGE = register(
    Code(
        code="OP651",
        title="a stage, pipeline or variant that means nothing",
        why="An end-to-end time is made of named stages, each with one time, and a variant restates some of them.",
        example="variant fast of decode_token { stage attenton = 32 * 0.33 ms }",
        fix="See the message.",
    )
)
MEASURE = register(
    Code(
        code="OP652",
        title="a number or unit that cannot be read",
        why="Every time, rate and size has its unit, so that none is taken for another.",
        example="stage mlp = 24.0",
        fix="Write `24.0 ms`, `2.5 TB/s`, `50 MiB`.",
    )
)
EVIDENCE = register(
    Code(
        code="OP653",
        title="an evidence block that cannot decide",
        why="Evidence is for a variant of a pipeline: five rows of text, numbers to compute again, and a gate.",
        example="evidence e for decode_token.fp8 { }",
        fix="Give the rows cost, numbers, failure, level and acceptance, and at least one gate condition.",
    )
)
MACHINE = register(
    Code(
        code="OP654",
        title="a machine block that does not give a machine",
        why="A roofline against a wrong or unlabelled peak misleads: each value has a key, a unit and a source.",
        example='machine card like h100 { memory.bandwith = 2.5 TB/s asserted "a slide" }',
        fix="Use the keys that `opspec machine show` lists.",
    )
)
LEDGER = register(
    Code(
        code="OP655",
        title="a token ledger that is for nothing",
        why="A ledger says where the tokens of one dim of a workload come from.",
        example="ledger tokens for raw.LL { frames = 8 * 256 }",
        fix="Name a workload of the file and a dim of its op, and give each entry a whole number of tokens.",
    )
)
TRAFFIC = register(
    Code(
        code="OP656",
        title="a traffic file that cannot be used",
        why="Recorded shapes are rows of dims with a count; a row that is misread would weigh in silently.",
        example='workload served for decode { (B, T) ~ "traffic.csv" }',
        fix="Give a CSV with a header of dim names, or a JSON list of objects, with an optional `count`.",
    )
)


def stage(span: Span, message: str, help: str = "", *notes: Note) -> Diagnostic:
    """Something that no stage, pipeline or variant can be."""
    return Diagnostic(code=STAGE, message=message, span=span, help=help, notes=notes)


def measure(span: Span, message: str, help: str = "") -> Diagnostic:
    """A number with a wrong unit, or none."""
    return Diagnostic(code=MEASURE, message=message, span=span, help=help)


def evidence(span: Span, message: str, help: str = "") -> Diagnostic:
    """An evidence block with something missing or unknown."""
    return Diagnostic(code=EVIDENCE, message=message, span=span, help=help)


def machine(span: Span, message: str, help: str = "") -> Diagnostic:
    """A machine block with something missing or unknown."""
    return Diagnostic(code=MACHINE, message=message, span=span, help=help)


def ledger(span: Span, message: str, help: str = "") -> Diagnostic:
    """A ledger with something missing or unknown."""
    return Diagnostic(code=LEDGER, message=message, span=span, help=help)


def traffic(span: Span, message: str, help: str = "", *notes: Note) -> Diagnostic:
    """A traffic file that is missing, misread or does not fit."""
    return Diagnostic(code=TRAFFIC, message=message, span=span, help=help, notes=notes)
