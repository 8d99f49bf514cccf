"""Files beside a spec, recorded traffic and results, belong to its revision."""

import json
import subprocess

import pytest

from opspec.cli import main

SPEC = """op scale[M](x: f32[M]) -> y: f32[M] {
  kernel k { y[m] = 2 * x[m] }
}
workload served for scale { M ~ "traffic/shapes.csv" }
workload one for scale { M = 1000 }
pipeline step { stage scale = 2 * scale @ one from "results/scale.json" }
"""
RESULT = {
    "schema": "opspec.bench/1", "op": "scale", "spec": "scale.op", "status": "measured", "distributions": [],
    "results": [{"workload": "one", "dims": {"M": 1000}, "measured": {"status": "ok", "time_s": 1e-5}}],
}  # fmt: skip


@pytest.fixture
def repository(tmp_path, monkeypatch):
    (tmp_path / "ops" / "traffic").mkdir(parents=True)
    (tmp_path / "ops" / "results").mkdir()
    (tmp_path / "ops" / "scale.op").write_text(SPEC)
    (tmp_path / "ops" / "traffic" / "shapes.csv").write_text("M,count\n100,3\n200,1\n")
    (tmp_path / "ops" / "results" / "scale.json").write_text(json.dumps(RESULT))
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ops"


def test_both_sides_have_the_traffic_of_their_revision(repository, capsys):
    (repository / "traffic" / "shapes.csv").write_text("M,count\n100,1\n200,3\n")
    assert main(["diff", "HEAD", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["specs"]
    assert (found["faults_before"], found["faults_after"]) == ([], [])


def test_a_change_of_a_result_is_a_change_of_the_pipeline(repository, capsys):
    changed = json.dumps(RESULT).replace("1e-05", "2e-05")
    (repository / "results" / "scale.json").write_text(changed)
    assert main(["diff", "HEAD", "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert "OP743" not in out
    assert "2e-05" in out
    assert "4e-05" in out
