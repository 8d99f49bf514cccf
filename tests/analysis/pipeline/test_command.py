"""``opspec pipeline``: what is printed, in which form, with which status."""

import json
from pathlib import Path

import pytest

from opspec.cli import main

SPECS = Path(__file__).parents[3] / "specs"
DECODE = str(SPECS / "attention" / "decode.op")
BLOCK = str(SPECS / "world_model" / "latent_block.op")

STATED = """op scale[M](x: f32[M]) -> y: f32[M] { kernel k { y[m] = 2 * x[m] } }
workload w for scale { M = 1000 }
pipeline p { stage a = scale @ w takes 1 ms }
"""


@pytest.fixture
def run(capsys):
    def go(*arguments: str):
        status = main(arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return go


def test_text(run):
    status, out, _ = run("pipeline", DECODE, "--variant", "fp8_kv")
    assert status == 0
    for words in (
        "58 ms → 50.96 ms, saves 7.04 ms",
        "1.1381×",
        "ceiling with attention free: 1.4356×",
        "30.34%",
    ):
        assert words in out
    assert "variant half" not in out


@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize("spec", [DECODE, BLOCK])
def test_no_gain_of_a_kernel_stands_without_the_end_to_end_one(run, spec, form):
    _, out, _ = run("pipeline", spec, "--format", form)
    lines = [x for x in out.splitlines() if " a run" in x]
    assert lines
    assert all("end to end" in x for x in lines)


def test_a_gain_between_a_measurement_and_a_bound_says_so(run):
    _, out, _ = run("pipeline", DECODE, "--variant", "roof")
    assert "2.4757× a run (measured → derived, a bound)" in out


def test_json(run):
    status, out, _ = run("pipeline", f"{BLOCK}:rollout", "--format", "json")
    data = json.loads(out)
    assert (status, data["schema"]) == (0, "opspec.pipeline/1")
    (v,) = data["variants"]
    assert v["end_to_end_gain"] == pytest.approx(38 / 29)
    assert v["waterfall"][-1]["total_s"] == pytest.approx(29e-3)
    assert [t["consistent"] for t in data["ledgers"]] == [True, False]
    assert {s["provenance"] for s in data["base"]["stages"]} == {"measured"}


def test_another_machine(run):
    _, out, _ = run("pipeline", DECODE, "--variant", "roof", "--machine", "h200")
    assert "on h200, bound by memory" in out


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("softmax", "measures `softmax`, which no stage runs"),
        ("scale", "would not be used"),
        ("", "lacks `op`"),
    ],
)
def test_a_result_that_no_stage_takes_is_refused(run, tmp_path, op, words):
    (tmp_path / "step.op").write_text(STATED)
    (tmp_path / "result.json").write_text(json.dumps({"schema": "opspec.bench/1", "op": op}))
    status, out, err = run("pipeline", str(tmp_path / "step.op"), "--results", str(tmp_path / "result.json"))
    assert (status, out) == (2, "")
    assert "OP743" in err
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((f"{DECODE}:decode_stp",), "did you mean `decode_step`?"),
        ((DECODE, "--variant", "fp8"), "known: `fp8_kv`, `half`, `roof`"),
        ((DECODE, "--machine", "h999"), "there is no machine `h999`"),
        ((DECODE, "--results", "no/such.json"), "cannot read `no/such.json`"),
        ((str(SPECS / "gemm" / "matmul.op"),), "the spec states no pipeline"),
    ],
)
def test_wrong_input(run, arguments, words):
    status, out, err = run("pipeline", *arguments)
    assert (status, out) == (2, "")
    assert words in err
