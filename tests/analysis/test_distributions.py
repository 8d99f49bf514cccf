"""Workloads that are distributions: weighted means, and the range over the shapes."""

from opspec.analysis.query import query
from opspec.frontend import load_text

OP = """op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[i, j] = 2 * x[i, j] } }
workload w for f { M = 4, N ~ {8: 0.25, 16: 0.75} }
"""


def ask(text, **more):
    m = load_text(OP)
    return query(m, m.ops[0], text, workload="w", **more)


def test_counts_are_weighted_means_and_say_their_range():
    answer = ask("bytes")
    assert answer.value == 0.25 * 4 * 8 * 8 + 0.75 * 4 * 16 * 8
    assert answer.notes[-2:] == ("weighted over 2 shapes", "from 256 B at N = 8 to 512 B at N = 16")


def test_what_is_the_same_for_all_shapes_has_no_range():
    assert ask("ai").notes[-1] == "weighted over 2 shapes"


def test_words_have_no_range():
    assert ask("bound", machine="h200").notes[-1] == "weighted over 2 shapes"
