from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis/report"))

from documents import document, write

pytest.importorskip("plotly")
ROOT = Path(__file__).parents[2]
SPEC = "specs/reduce/softmax.op"


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def hashed() -> str:
    from opspec.emit.package import spec_hash
    from opspec.frontend import load

    return spec_hash(load(SPEC))


def test_a_result_brings_its_spec_along(opspec, tmp_path):
    result = write(tmp_path, document(SPEC, hashed()))
    ran = opspec("report", str(result), "--out", str(tmp_path / "my report"))
    assert ran.status == 0
    text = (tmp_path / "my report/report.md").read_text()
    assert "**40 µs** (M), 70.0% of the floor 28 µs (D)" in text
    assert "| unexplained | 4 µs (M) | 10.0% |" in text
    assert "Achieved: 3.3554 TB/s (M), 4.1951 TFLOP/s (M)." in text
    assert "Missing: end-to-end gain" in text
    assert "Plotly" in (tmp_path / "my report/report.html").read_text()


def test_specs_without_results_and_other_machines(opspec, tmp_path):
    assert (
        opspec(
            "report", "specs/gemm", "--machine", "h100", "--machine", "a100", "--out", str(tmp_path)
        ).status
        == 0
    )
    text = (tmp_path / "report.md").read_text()
    assert "### `cube_8k` on `h100`" in text
    assert "### `cube_8k` on `a100`" in text


def test_all_of_specs_if_nothing_is_named(opspec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/a.op").write_text("op f[M](x: f32[M]) -> y: f32[M] { kernel k { y[m] = x[m] } }\n")
    assert opspec("report", "--out", "out").status == 0
    assert "## `f`" in (tmp_path / "out/report.md").read_text()


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"spec": "specs/none.op"}, "OP782", "there is no such file"),
        ({"op": "soft"}, "OP782", "no op `soft`"),
        ({"schema": "x"}, "OP781", "does not fit the schema"),
        ({"status": None}, "OP781", "status is none of"),
    ],
)
def test_a_result_that_does_not_belong(opspec, tmp_path, change, code, said):
    result = write(tmp_path, document(SPEC, hashed()) | change)
    ran = opspec("report", str(result), "--out", str(tmp_path / "out"))
    assert ran.status == 2
    assert f"error[{code}]" in ran.err
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_a_result_of_an_older_spec(opspec, tmp_path):
    result = write(tmp_path, document(SPEC, "0" * 64))
    ran = opspec("report", str(result), "--out", str(tmp_path / "out"))
    assert (ran.status, "which has changed since" in ran.err) == (2, True)


@pytest.mark.parametrize(("path", "code"), [("none.json", "OP781"), ("none.op", "OP621")])
def test_what_is_not_there(opspec, tmp_path, path, code):
    ran = opspec("report", path, "--out", str(tmp_path / "out"))
    assert (ran.status, f"error[{code}]" in ran.err) == (2, True)


def test_without_the_plotting_library(opspec, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    ran = opspec("report", "specs/gemm", "--out", str(tmp_path / "out"))
    assert ran.status == 2
    assert "error[OP783]" in ran.err
    assert "opspec[report]" in ran.err
