"""A driver run as users run it: a file of its own, from any folder, with and without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import torch

from opspec.runtime.bench.result import SCHEMA_FILE

ROOT = Path(__file__).resolve().parents[3]
DRIVER = ROOT / "tests/runtime/fixtures/rows/bench.py"


def run(folder, *argv, **environment):
    """(exit status, printed text) of the driver, started in ``folder``."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, str(DRIVER), *argv]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def document(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(found, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    return found


def test_on_a_machine_without_a_gpu(tmp_path):
    folder = tmp_path / "my ops"
    folder.mkdir()
    status, text = run(
        folder, "--op", "softmax", "--machine", "h200", "--json", "out.json", CUDA_VISIBLE_DEVICES=""
    )
    assert status == 0, text
    assert "nothing was measured" in text
    found = document(folder / "out.json")
    assert found["status"] == "not measured"
    assert found["results"][0]["roofline"]["floor_s"] == pytest.approx(2 * 2 * 8192 * 4096 / 4.8e12)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu(tmp_path):
    status, text = run(tmp_path, "--quick", "--warm", "--json", "out.json")
    assert status == 0, text
    in_place, found = document(tmp_path / "out.accumulate.json"), document(tmp_path / "out.softmax.json")
    assert in_place["status"] == found["status"] == "measured"
    for record in found["results"]:
        measured = record["measured"]
        rows = {row["name"]: row for row in measured["candidates"]}
        assert rows["torch eager"]["status"] == rows["torch.compile"]["status"] == "ok"
        assert rows["missing library"]["status"] == "failed"
        assert measured["time_s"] >= record["roofline"]["limit_s"]
        assert measured["baseline"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "workload", "dims"), [("softmax", "tiny", "M=4,N=200"), ("accumulate", "large", "M=4,N=1024")]
)
def test_the_cuda_path_runs_from_end_to_end_on_a_pretended_gpu(tmp_path, op, workload, dims):
    command = [sys.executable, str(ROOT / "tests/runtime/fixtures/dry_run.py"), op, "--at", workload]
    command += ["--set", dims, "--quick", "--budget", "1", "--warm", "--json", "out.json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = document(tmp_path / "out.json")
    (record,) = found["results"]
    assert found["status"] == "measured"
    assert found["roofs"]["missing"] == {}
    assert set(found["roofs"]["bandwidth_bytes_per_s"]) == {"read", "write", "copy", "mix21"}
    assert found["machine"]["name"] == "h200"
    assert [row["role"] for row in record["measured"]["candidates"]][:2] == ["ours", "stream"]
    assert record["measured"]["warm"]["cache"] == "warm"
    assert record["measured"]["wall_s"] > 0
    method = "graph" if op == "softmax" else "events"  # what works in place cannot repeat inside a graph
    assert record["measured"]["method"] == method
    assert record["measured"]["time_s"] == pytest.approx(100e-6 if op == "softmax" else 101e-6)
    assert record["measured"]["ledger"][-1]["name"] == "unexplained"


@pytest.mark.slow
def test_a_run_of_several_drivers_goes_from_end_to_end_on_a_pretended_gpu(tmp_path):
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package
    from opspec.frontend import load_text
    from opspec.runtime.bench import suite

    text = "op {n}[M](x: f32[M]) -> y: f32[M] {{\n  kernel k {{ y[m] = 2.0 * x[m] }}\n}}\n"
    for name in ("one", "two"):
        spec = text.format(n=name) + f"workload small for {name} {{ M = 100 }}\n"
        package = build_package(load_text(spec, f"{name}.op"), f"{name}.op", limits())
        (tmp_path / "g" / name).mkdir(parents=True)
        for file in ("kernel.py", "bench.py"):
            (tmp_path / "g" / name / file).write_text(package.files[file])

    def start(command):
        dry = [sys.executable, str(ROOT / "tests/runtime/fixtures/dry_run.py"), "worker", command[-1]]
        return subprocess.run(dry, env=suite.environment(), check=False).returncode

    options = suite.build_parser().parse_args(["g", "--json", str(tmp_path / "r"), "--budget", "0.2"])
    packages = dict.fromkeys(suite.find_packages([tmp_path / "g"]))
    assert suite.measure(packages, options, start=start) == 0
    one, two = document(tmp_path / "r/one.json"), document(tmp_path / "r/two.json")
    assert one["status"] == two["status"] == "measured"
    assert one["run"] == two["run"]
    assert one["roofs"]["measured_at"] == two["roofs"]["measured_at"]
    assert two["roofs"]["age_s"] > one["roofs"]["age_s"]
    assert two["seconds"]["roofs"] < one["seconds"]["roofs"]
