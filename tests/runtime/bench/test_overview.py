"""The page at the end of a run: what a line says, and how it fits."""

from __future__ import annotations

import pytest

from opspec.runtime.bench.overview import Failed, overview

BASE = {"peer": "tools/peers.py:fused_call", "time_s": 2e-4, "verdict": "FASTER", "speedup": 2.0}


def record(workload="rows_4k", *, weight=None, dims=None, cost=None, **measured):
    found = {"status": "ok", "reason": "", "time_s": 1e-4, **measured}
    return {
        "workload": workload, "weight": weight, "dims": dims or {"M": 8}, "cost": cost or {}, "measured": found,
    }  # fmt: skip


def document(*records, op="softmax"):
    roofs = {"matmul_flops_per_s": {"bf16": 8e14, "f16": 8.1e14}}
    return {"op": op, "results": list(records), "roofs": roofs, "notes": []}


def lines(*found, width=120):
    return [" ".join(line.split()) for line in overview(found, width).splitlines()]


def test_a_line_stands_beside_a_stream_and_the_fastest_peer():
    share = {"share": 0.951, "kind": "copy"}
    made = document(record(share=share, baseline=BASE), record("rows_32k", share=share, baseline=None))
    head, _, first, second = lines(made)
    assert head == "op workload µs of the roof fastest peer µs ours is verdict"
    assert first == "softmax rows_4k 100.0 95.1% copy fused_call 200.0 2.00× FASTER"
    assert second == "rows_32k 100.0 95.1% copy –"


def test_a_line_bound_by_matrix_work_stands_beside_the_product_of_its_type():
    calibrated = {"bound": "tensor", "terms_s": {"tensor": 4e10 / 8.1e14, "memory": 1e-6}}
    cost = {"flops.tensor": 4e10}
    made = document(record(cost=cost, calibrated=calibrated, share={"share": 0.1, "kind": "read"}))
    assert "49.4% f16" in lines(made)[2]


def test_shapes_of_a_distribution_are_told_apart_by_what_differs():
    made = document(
        record("mixed", weight=0.5, dims={"M": 8, "N": 4}), record("mixed", weight=0.5, dims={"M": 9, "N": 4})
    )
    assert [line.split()[:3] for line in lines(made)[2:]] == [
        ["softmax", "mixed", "M=8"],
        ["mixed", "M=9", "100.0"],
    ]


def test_what_has_no_time_says_why_below():
    bad = record(status="incorrect", reason="y: 3 of 8 elements outside the tolerance")
    del bad["measured"]["time_s"]
    hot = record("hot", throttled_rounds=3, rounds=9)
    found = lines(document(bad, hot), Failed("rope", "its process ended by SIGSEGV"))
    assert found[2] == "softmax rows_4k – INCORRECT"
    ended = document(record(status="interrupted", reason="interrupted; the rest is kept"))
    assert lines(ended)[3] == "! softmax rows_4k: interrupted; the rest is kept"
    assert found[4] == "rope – ERROR"
    assert found[5:] == [
        "! softmax rows_4k: incorrect, y: 3 of 8 elements outside the tolerance",
        "! softmax hot: the card throttled in 3 of 9 rounds",
        "! rope: its process ended by SIGSEGV",
    ]


@pytest.mark.parametrize("width", [70, 80, 100, 120])
def test_a_narrow_page_has_shorter_names_and_all_numbers(width):
    long = record("a_workload_of_many_words", share={"share": 1.014, "kind": "mix21"}, baseline=BASE)
    text = overview([document(long, op="an_op_with_quite_a_long_name_too")], width)
    assert max(map(len, text.splitlines())) <= width
    assert "101.4% mix21" in text
    assert "200.0" in text
    assert "FASTER" in text
    assert ("…" in text) == (width < 110)
    assert ("2.00×" in text) == (width > 110)
