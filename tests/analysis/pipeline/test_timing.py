"""Times of stages: stated, derived on a machine, measured by a driver."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from opspec.analysis.pipeline import Sources, analyse, find_pipeline
from opspec.diagnostics import Failure
from opspec.frontend import load_text
from tests.analysis.pipeline.composing import report

OP = """op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = 2 * x[i] } }
machine m like h200 {
  memory.bandwidth = 4 TB/s asserted "round"
  launch.plain = 1 us asserted "round"
}
workload w for f { N = 1000000 }
workload spread for f { N ~ {1000000: 3, 4000000: 1} }
"""
us = Fraction(1, 10**6)


def stage(text: str, **more):
    return report(f"{OP}pipeline p {{ stage a = {text} }}", **more).base.parts[0].timed


def test_the_model_gives_a_bound_and_says_so():
    t = stage("3 * f @ w on m")
    assert (t.provenance, t.source) == ("derived", "a bound on m, no prediction")
    assert (t.each, t.bound.floor, t.seconds) == (3 * us, 2 * us, 9 * us)
    assert t.bound.resource == "memory"


def test_a_machine_of_the_command_line_comes_first():
    assert stage("f @ w on m", machine="h200").bound.machine == "h200"


def test_without_a_machine_there_is_no_time():
    with pytest.raises(Failure) as e:
        stage("f @ w")
    assert e.value.diagnostics[0].code.code == "OP742"
    assert stage("f @ w takes 3 us").bound is None


def test_a_distribution_gives_mean_and_worst():
    t = stage("f @ spread on m")
    assert t.each == Fraction(3 * 3 + 9, 4) * us
    assert (t.worst, t.worst_dims) == (9 * us, "N = 4000000")


def test_lengths_that_nobody_stated_give_no_time():
    text = """op g[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B] {
  assume len[b] <= T
  kernel k { y[b] = sum[t | t < len[b]](x[b, t]) }
}
workload w for g { B = 4, T = 16%s }
pipeline p { stage a = g @ w on h200 }
"""
    with pytest.raises(Failure) as e:
        report(text % "")
    assert "depends on sum(len)" in e.value.diagnostics[0].message
    known = report(text % ", len ~ [1, 2, 3, 10]").base.parts[0].timed.bound
    assert known.bytes == 4 * (16 + 4 + 4)


def record(workload="w", time=5e-6, status="ok", weight=None, n=1_000_000):
    return {
        "workload": workload,
        "weight": weight,
        "dims": {"N": n},
        "measured": {"status": status, "time_s": time},
    }


def result(folder: Path, *records, name="r.json", **more) -> str:
    data = {
        "schema": "opspec.bench/1", "op": "f", "spec": "specs/spec.op", "status": "measured",
        "results": list(records), "distributions": [], **more,
    }  # fmt: skip
    path = folder / name
    path.write_text(json.dumps(data))
    return str(path)


def test_a_result_of_the_driver(tmp_path):
    t = stage("2 * f @ w on m", results={"f": result(tmp_path, record())})
    assert (t.provenance, t.each, t.seconds) == ("measured", 5 * us, 10 * us)
    assert t.bound.floor == 2 * us


def test_a_result_named_in_the_spec_is_beside_it(tmp_path):
    result(tmp_path, record())
    module = load_text(f'{OP}pipeline p {{ stage a = f @ w from "r.json" }}', "spec.op")
    found = analyse(module, find_pipeline(module), Sources(module=module, folder=tmp_path))
    assert found.base.parts[0].timed.each == 5 * us


def test_shapes_of_a_result_are_weighted(tmp_path):
    rows = [record("spread", 4e-6, weight=3.0), record("spread", 8e-6, weight=1.0, n=4_000_000)]
    t = stage("f @ spread", results={"f": result(tmp_path, *rows)})
    assert (t.each, t.worst, t.worst_dims) == (5 * us, 8 * us, "N = 4000000")


def test_a_result_of_another_revision_says_so(tmp_path):
    other = {"environment": {"software": {"spec_hash": "0" * 64}}}
    t = stage("f @ w", results={"f": result(tmp_path, record(), **other)})
    assert t.notes == ("measured with another revision of the spec",)


@pytest.mark.parametrize(
    ("records", "more", "words"),
    [
        ([record()], {"op": "g"}, "measures `g`, not `f`"),
        ([record()], {"spec": "specs/other.op"}, "is from the spec `specs/other.op`"),
        ([record()], {"schema": "opspec.bench/9"}, "has the schema `opspec.bench/9`"),
        ([record("v")], {}, "has no measurement at `w`"),
        ([record(status="incorrect")], {}, "has no valid time at `w`: incorrect"),
        ([record(time=None)], {}, "has no valid time at `w`"),
        ([record(time=10**400)], {}, "has no valid time at `w`"),
        ([record(time=-1.0)], {}, "has no valid time at `w`"),
        ([record()], {"results": 3}, "has no list of results"),
    ],
)
def test_a_result_of_something_else_is_refused(tmp_path, records, more, words):
    with pytest.raises(Failure) as e:
        stage("f @ w", results={"f": result(tmp_path, *records, **more)})
    (d,) = e.value.diagnostics
    assert d.code.code == "OP743"
    assert words in d.message


@pytest.mark.parametrize("content", ["", "[]", "{", "7", '{"schema": "opspec.bench/1"}'])
def test_a_file_that_is_no_result_is_refused(tmp_path, content):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(Failure) as e:
        stage("f @ w", results={"f": str(tmp_path / "r.json")})
    assert e.value.diagnostics[0].code.code == "OP743"
