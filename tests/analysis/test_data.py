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
