"""Extents and addresses that are data become named moments and bounds."""

from __future__ import annotations


def forms(op):
    from opspec.analysis.costs import cost

    return {(t.tensor, t.direction): (str(t.elements), t.bound) for t in cost(op).byte_terms()}


def test_lengths_become_their_sum(ask):
    assert ask("data", "flops.tensor", "paged_decode").symbolic == "4 * D * Hq * sum_len"
    at = {"B": 2, "Hq": 8, "Hkv": 2, "T": 64, "NB": 9, "P": 16, "D": 4, "sum(len)": 50}
    assert ask("data", "flops.tensor", "paged_decode", settings=at).value == 4 * 4 * 8 * 50


def test_lengths_unknown_give_no_number(ask):
    at = {"B": 2, "Hq": 8, "Hkv": 2, "T": 64, "NB": 9, "P": 16, "D": 4}
    assert ask("data", "flops.tensor", "paged_decode", settings=at).value is None


def test_causal_lengths_become_second_moments(ask):
    assert ask("data", "flops.tensor", "causal_varlen").symbolic == "D * (sum_len + sum_len_2)"


def test_pages_are_bounded_by_points_and_pool(op_of):
    found = forms(op_of("data", "paged_decode"))
    assert found["k", "read"] == ("D*Hkv*Min(sum(len), NB*P)", "upper")
    assert found["table", "read"][1] == "exact"
    assert found["len", "read"] == ("B", "exact")


def test_segments_add_up_to_all_rows(ask, op_of):
    assert ask("data", "flops.tensor", "grouped_gemm").symbolic == "2 * F * K * N"
    found = forms(op_of("data", "grouped_gemm"))
    assert found["w", "read"] == ("E*F*K", "exact")
    assert found["x", "read"] == ("K*N", "exact")


def test_a_gather_is_an_upper_bound_that_says_why(ask, op_of):
    assert forms(op_of("data", "embed"))["e", "read"] == ("D*Min(M, V)", "upper")
    answer = ask("data", "bytes", "embed")
    assert answer.notes == ("`e` is an upper bound: a gather: addresses may repeat",)


def test_distinct_slots_are_exact(op_of):
    found = forms(op_of("data", "append"))
    assert found["cache", "write"] == ("B*D", "exact")
    assert ("cache", "read") not in found


def test_an_update_reads_and_writes(op_of):
    found = forms(op_of("data", "halve"))
    assert found["x", "read"] == ("N", "exact") == found["x", "write"]


PAGES = """op pages[B, T, P](x: f32[B, T], table: i32[B, T // P], len: i32[B]) -> y: f32[B] {
  require T % P == 0
  assume len[b] <= T
  kernel k { y[b] = sum[t](x[b, t] * table[b, t // P])  for t < len[b] }
}
workload w for pages { B = 4, T = 64, P = 16, len ~ [1, 16, 17, 64] }
workload spread for pages { B = 8, T = 64, P = 16, len ~ {1: 0.5, 33: 0.5} }
workload known for pages { B = 4, T = 64, P = 16, len ~ mean 20 }
"""


def test_pages_of_known_lengths_are_counted():
    from opspec.analysis.query import query
    from opspec.frontend import load_text

    m = load_text(PAGES)
    assert query(m, m.ops[0], "bytes[table]", workload="w").value == 4 * (1 + 1 + 2 + 4)
    assert query(m, m.ops[0], "bytes[table]", workload="spread").value == 4 * 8 * (1 + 3) / 2
    assert query(m, m.ops[0], "bytes[table]", workload="known").value is None
    moved = query(m, m.ops[0], "sensitivity(bytes[x])", workload="w")
    assert {x.dim: x.value for x in moved.moves}["sum(len)"] == 1
    assert any("sums over lengths" in n for n in moved.notes)


def test_pages_have_times_in_reports_reviews_and_pipelines():
    from opspec.analysis.machine import load as machine
    from opspec.analysis.pipeline.timing import op_bound
    from opspec.analysis.query import query
    from opspec.analysis.report.readings import cases_of
    from opspec.analysis.review.numbers import at_workload
    from opspec.frontend import load_text

    m = load_text(PAGES)
    op, w = m.ops[0], next(x for x in m.workloads if x.name == "w")
    want = query(m, op, "bytes", workload="w").value
    assert cases_of(op, w)[0][1].total_bytes() == want
    assert at_workload(op, w, [machine("h200")])[""].counts["bytes"] == want
    assert op_bound(m, op, w, "h200").bytes == want


def test_sums_over_lengths_follow_the_dims_that_are_set():
    from opspec.analysis.plot.sweep import read_range, sweep
    from opspec.analysis.query import query
    from opspec.analysis.query.question import prepare
    from opspec.frontend import load_text

    m = load_text(PAGES)
    op = m.ops[0]

    def table(workload, **settings):
        return query(m, op, "bytes[table]", workload=workload, settings=settings).value

    assert table("spread") == 4 * 8 * 2
    assert table("spread", P=32) == 4 * 8 * 1.5
    assert table("spread", B=2) == 4 * 2 * 2
    assert query(m, op, "bytes[table] at (P = 32, B = 2)", workload="spread").value == 4 * 2 * 1.5
    assert query(m, op, "bytes[x]", workload="spread", settings={"sum(len)": 10, "P": 32}).value == 40
    plot = sweep(prepare(m, op, "bytes[table]", workload="spread"), "bytes[table]", read_range("P=1..64"))
    points = dict(plot.curves[0].points)
    assert sorted(points) == [1, 2, 4, 8, 16, 32, 64]
    assert (points[16], points[32], points[64]) == (64, 48, 32)
    rows = sweep(prepare(m, op, "bytes", workload="spread"), "bytes", read_range("B=1..8"))
    assert rows.curves[0].points[-1][1] == 8 * rows.curves[0].points[0][1]
