from __future__ import annotations

import pytest

from opspec.analysis.expectations import check_expectations, is_budget
from opspec.frontend import load_text

SPEC = """op t[M, N](x: f32[M, N], w: f32[N]) -> y: f32[M] {{
  kernel k {{ y[m] = sum[n](x[m, n] * w[n]) }}
}}
workload w for t {{ M = 4096, N = 4096 }}
expect w {{
  {line}
}}
"""


def check(line: str):
    return check_expectations(load_text(SPEC.format(line=line)))


@pytest.mark.parametrize(
    "line",
    [
        "flops.tensor == 2 * M * N", "ai.tensor ~ 0.5 within 1%", "bound on h200 == memory", "bound on h100 != sfu",
        "bytes <= 70 MB", "time on h200 < 1 ms", "bytes[x] == 64 MiB", "ai.tensor < ridge on h200",
        "measured time < 1 ms", 'flops.tensor == (2   # a sum, in "N" (\n    * M * N)', "bytes <= 70 MB  # all",
    ],
)  # fmt: skip
def test_budgets_that_hold(line: str):
    assert check(line) == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ai.tensor ~ 1.0 within 1%", "the left side is 0.49975"),
        ("bound on h200 == tensor", "the left side is memory"),
        ("bytes == 1", "the left side is 67141632 B"),
    ],
)
def test_a_broken_budget_says_the_value_and_its_place(line: str, said: str):
    (found,) = check(line)
    assert is_budget(found)
    assert found.severity == "error"
    assert said in found.message
    assert found.span is not None
    assert found.span.text == line
    assert found.span.place.endswith(":6:3")


def test_a_broken_budget_is_shown_without_its_comments():
    (found,) = check("bytes == (1   # one\n    + 1)")
    assert found.message.startswith("`bytes == (1 + 1)` does not hold")


def test_a_line_that_can_not_be_read_is_wrong_input():
    (found,) = check("bytes + flops == 3")
    assert not is_budget(found)
    assert found.code.code == "OP723"
    assert found.span is not None
    assert found.span.text == "bytes + flops"


def test_a_line_that_is_no_condition_is_a_fault():
    (found,) = check("bytes")
    assert "is not a condition" in found.message
