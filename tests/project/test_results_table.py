"""The table of results says what the files say, and no more."""

from __future__ import annotations

import json

from tools.results_table import HEAD, earlier, main, table


def document(**measured):
    result = {
        "workload": "w",
        "dtypes": {"X": "bf16"},
        "cost": {"flops.tensor": 2e12},
        "roofline": {"bound": measured.pop("bound", "memory")},
        "measured": measured or None,
    }
    return {"op": "o", "roofs": {"matmul_flops_per_s": {"bf16": 8e14}}, "results": [result]}


def written(tmp_path, name, data):
    path = tmp_path / name
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


STREAM = {"kind": "copy", "share": 0.951}
PEER = {"peer": "torch.compile", "time_s": 2e-4, "verdict": "FASTER"}


def test_a_memory_bound_row_stands_beside_a_stream(tmp_path):
    data = document(status="ok", time_s=1e-4, rates={"bytes_per_s": 4.05e12}, share=STREAM, baseline=PEER)
    lines = table([written(tmp_path, "a.json", data)]).splitlines()
    assert "\n".join(lines[:2]) == HEAD
    assert lines[2:] == [
        "| o | w | bf16 | 100.0 | 4.05 TB/s | 95.1% of a copy | torch.compile | 200.0 | FASTER |"
    ]


def test_a_matrix_bound_row_stands_beside_a_product(tmp_path):
    data = document(status="ok", time_s=4e-3, bound="tensor", rates={}, share=None, baseline=None)
    row = table([written(tmp_path, "a.json", data)]).splitlines()[-1]
    assert row == "| o | w | bf16 | 4000.0 | 500 TFLOP/s | 62% of a bf16 product | - | - | - |"


def test_a_result_of_another_kernel_is_marked(tmp_path):
    from hashlib import sha256

    kernel = tmp_path / "reduce/softmax/kernel.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("now")
    for text, marked in (("now", False), ("before", True)):
        known = {"kernel_hash": sha256(text.encode()).hexdigest()}
        measured = {"spec": "specs/reduce/softmax.op", "environment": {"software": known}}
        assert earlier(measured, tmp_path) is marked


def test_a_fault_is_a_row_that_says_so(tmp_path):
    data = document(status="error", reason="wrong: 3 elements")
    assert table([written(tmp_path, "a.json", data)]).endswith("| - | - | - | - | - | wrong: 3 elements |")


def test_what_was_not_measured_is_said(tmp_path):
    assert "not measured" in table([written(tmp_path, "a.json", document())])


def test_a_folder_is_read_in_order(tmp_path, capsys):
    for name in ("b.json", "a.json"):
        data = document(status="error", reason=name)
        written(tmp_path, name, data)
    assert main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("a.json") < printed.index("b.json")
