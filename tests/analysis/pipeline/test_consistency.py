"""Ledgers and times that do not agree."""

import pytest

from tests.analysis.pipeline.composing import report

OP = """op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = x[i] } }
workload w for f { N = 768 }
pipeline p { stage a = 1 ms }
"""


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ("a = 3 * 256", None),
        ("a = 2 * 256; b = 256", None),
        ("a = 2 * 256; b = some", None),
        ("a = 2 * 16 * 16; b = 3 * some", None),
        ("a = 3 * 256; b = some", "nothing is left for b"),
        ("a = 767; b = 3 * some", "1 are left for b, which need at least 3"),
        ("a = 512", "add up to 512"),
        ("a = 1024", "add up to 1024"),
    ],
)
def test_ledgers(entries, words):
    r = report(f"{OP}ledger t for w.N {{ {entries} }}")
    assert (r.ledgers[0].flag is None) == (words is None)
    if words:
        assert words in r.flags[0].text


def test_a_measurement_under_its_bound_cannot_be_real():
    text = OP.replace("stage a = 1 ms", 'machine h200\n  stage a = f @ w takes 0.001 ns measured "x"')
    flags = report(text).flags
    assert [f.impossible for f in flags] == [True]
    assert "less than the bound" in flags[0].text


def test_runs_that_agree_are_not_flagged():
    text = "pipeline p { stage a = 12 ms of 4 ms each }\nvariant v of p { stage a = 6 ms of 2 ms each }"
    assert report(text).flags == ()


def test_runs_that_changed_their_number_are_flagged():
    text = "pipeline p { stage a = 12 ms of 4 ms each }\nvariant v of p { stage a = 8 ms of 2 ms each }"
    assert ["3 runs before" in f.text and "4 after" in f.text for f in report(text).flags] == [True]
