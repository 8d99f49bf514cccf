"""Diagnostic codes of the analyses: costs, machines, queries and budgets."""

from __future__ import annotations

from opspec.diagnostics import Code, register

UNCOUNTED = register(
    Code(
        code="OP701",
        title="No closed form is known for this count.",
        why="Costs are exact or they are refused: a count that can't be written down is never replaced by a guess.",
        example="o[i] = sum[j, k | 2*j + 3*k <= i](x[i, j, k])",
        fix="State the order of the bounds with `require`, or split the domain into simpler statements.",
    )
)
BAD_MACHINE = register(
    Code(
        code="OP711",
        title="A machine file is not usable.",
        why="A roofline against a wrong or unlabelled peak misleads: every peak needs a value, a unit and a source.",
        example='tensor.bf16 = { value = 1978.9e12, source = "datasheet", sparse = true }',
        fix="Give the dense peak with its source.",
    )
)
BAD_QUERY = register(
    Code(
        code="OP721",
        title="The query can't be read.",
        why="Queries are arithmetic over the closed forms of an op, in the tool's own small language.",
        example="opspec query decode.op 'flops / / bytes'",
        fix="Write it as in `ai.tensor at (T = 8192)`, `solve(ai.tensor == ridge, G)` or `bytes[k] / 2.5 TB/s`.",
    )
)
UNKNOWN_NAME = register(
    Code(
        code="OP722",
        title="The query names something that the op does not have.",
        why="A name is a cost, a dim, a derived dim, a kernel, a tensor or a statement.",
        example="opspec query decode.op 'bytes[kk]'",
        fix="Use one of the names listed.",
    )
)
BAD_UNITS = register(
    Code(
        code="OP723",
        title="Quantities of different units don't add or compare.",
        why="FLOPs, bytes and seconds are different things; adding them is always a slip.",
        example="bytes + flops",
        fix="Divide one by the other, or compare quantities of one unit.",
    )
)
NO_ANSWER = register(
    Code(
        code="OP724",
        title="The question has no answer with what was given.",
        why="Some quantities need a machine, a workload or a schedule; none is assumed silently.",
        example="opspec query decode.op time",
        fix="Give `--machine`, `--at` or `--set`.",
    )
)
BAD_RANGE = register(
    Code(
        code="OP725",
        title="The range of a plot can't be read.",
        why="A plot runs over the extents of one dim, from a positive integer to a larger one.",
        example="opspec query decode.op ai --plot T=1,65536",
        fix="Write `--plot T=1..65536`, and name a file that ends in `.png` or `.svg` to save it.",
    )
)
NOTHING_DRAWS = register(
    Code(
        code="OP726",
        title="The library that draws is not installed.",
        why="Plots in the terminal are drawn by plotille, pictures by matplotlib; nothing else needs them.",
        example="opspec query decode.op ai --plot T=1..65536     # without the extra `plot`",
        fix='Install them: `pip install "opspec[plot]"`.',
    )
)
BUDGET = register(
    Code(
        code="OP731",
        title="A budget does not hold.",
        why="An `expect` block states what the closed form must give; the computed value differs.",
        example="expect decode_8k { ai.tensor ~ 2.0 within 1% }",
        fix="Change the op, or the budget if the new cost is meant.",
    )
)
