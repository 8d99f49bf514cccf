"""``opspec gate``: what lets a variant out, what does not, and what is no evidence at all."""

import json
from pathlib import Path

import pytest

from opspec.cli import main
from opspec.frontend import load

SPEC = Path(__file__).parents[3] / "specs" / "world_model" / "latent_block.op"


def results(**changes):
    data = {
        "schema": "opspec.evidence/1",
        "spec": "specs/world_model/latent_block.op",
        "spec_sha256": load(SPEC).digest,
        "evidence": "token_compression",
        "pipeline": "rollout",
        "variant": "compressed",
        "level": "hard replay",
        "base": {"contact_f1": 0.91},
        "metrics": {"contact_f1": 0.91, "top1_flips": 0},
        "environment": {"gpu": "NVIDIA H100"},
    }
    return {k: v for k, v in {**data, **changes}.items() if v is not ...}


@pytest.fixture
def gate(tmp_path, capsys):
    def go(data, *more, spec=str(SPEC)):
        path = tmp_path / "results.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        status = main(["gate", spec, str(path), *more])
        out, err = capsys.readouterr()
        return status, out, err

    return go


def test_all_evidence_opens_the_gate(gate):
    status, out, _ = gate(results())
    assert status == 0
    assert out.startswith("open: rollout.compressed by token_compression; kernel 3.037×, end to end 1.3103×")
    assert "1.3103×" in out


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"metrics": {"contact_f1": 0.90, "top1_flips": 0}}, "0.9 is not >= 0.91"),
        ({"metrics": {"contact_f1": 0.95, "top1_flips": 1}}, "1 is not == 0"),
        ({"metrics": {"contact_f1": 0.95, "top1_flips": True}}, "1 is not == 0"),
        ({"metrics": {"contact_f1": 0.95}}, "`top1_flips` is missing"),
        ({"metrics": {"contact_f1": 0.95, "top1_flips": None}}, "`top1_flips` is missing"),
        ({"base": {}}, "the base of `contact_f1` is missing"),
        ({"metrics": {}, "base": {}}, "`contact_f1` is missing"),
        ({"level": "microbenchmark"}, "`microbenchmark` is not `hard replay` or `closed loop`"),
        ({"level": ""}, "not stated"),
        ({"spec_sha256": "0" * 64}, "another revision"),
    ],
)
def test_evidence_that_is_missing_or_bad_closes_the_gate(gate, changes, reason):
    status, out, _ = gate(results(**changes))
    assert status == 1
    assert out.startswith("closed")
    assert reason in out


@pytest.mark.parametrize(
    "field", ["schema", "spec", "evidence", "pipeline", "variant", "level", "base", "metrics", "environment"]
)
def test_a_missing_field_is_no_decision(gate, field):
    status, out, err = gate(results(**{field: ...}))
    assert (status, out) == (2, "")
    assert "OP743" in err
    assert field in err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spec": "specs/attention/decode.op"}, "is from the spec `specs/attention/decode.op`"),
        ({"evidence": "other"}, "is about the evidence `other`"),
        ({"pipeline": "other"}, "is about the pipeline `other`"),
        ({"variant": "other"}, "is about the variant `other`"),
        ({"schema": "opspec.bench/1"}, "has the schema `opspec.bench/1`"),
        ({"metrics": {"contact_f1": "high"}}, "`metrics.contact_f1` that is no finite number"),
        ({"metrics": [1]}, "`metrics` that is no object"),
        ({"metrics": {"end_to_end_gain": 9.0}}, "states `metrics.end_to_end_gain`, which the pipeline gives"),
        ({"metrc": {}}, "a field `metrc`"),
    ],
)
def test_results_of_something_else_are_no_decision(gate, changes, words):
    status, out, err = gate(results(**changes))
    assert (status, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("text", ["", "{", "[]", '{"metrics": NaN}'])
def test_a_file_that_is_no_results_is_no_decision(gate, text):
    assert gate(text)[0] == 2


def test_a_metric_that_is_not_finite_is_no_decision(gate):
    for value in (float("inf"), float("nan"), 10**400):
        assert gate(results(metrics={"contact_f1": value, "top1_flips": 0}))[0] == 2


def test_evidence_that_is_not_there_lists_what_is(gate):
    status, _, err = gate(results(), spec=f"{SPEC}:token_compresion")
    assert status == 2
    assert "did you mean `token_compression`?" in err


def test_results_that_do_not_say_their_revision_carry_a_warning(gate):
    status, out, _ = gate(results(spec_sha256=...))
    assert status == 0
    assert "warning: the results do not say of which revision" in out


def test_the_table_has_five_rows_filled_from_spec_model_and_results(gate):
    _, out, _ = gate(results(), "--format", "json")
    data = json.loads(out)
    assert [t["row"] for t in data["table"]] == ["cost", "numbers", "failure", "level", "acceptance"]
    numbers = " ".join(data["table"][1]["record"])
    assert "flops.tensor = 549755813888 FLOP" in numbers
    assert "flops.tensor / 4.1 ms = 134.087 TFLOP/s" in numbers
    assert all(t["record"] for t in data["table"])
    assert all(t["world"] for t in data["table"])
    assert data["open"] is True


def test_markdown_holds_both_gains_and_every_condition(gate):
    _, out, _ = gate(results(), "--format", "markdown")
    assert "kernel 3.037×, end to end 1.3103×" in out
    assert "contact-event F1 does not fall" in out
    assert out.count("| yes |") == 4


def test_a_measurement_under_its_bound_closes_the_gate(gate, tmp_path):
    text = SPEC.read_text(encoding="utf-8").replace("takes 1.35 ms each", "takes 0.0135 ms each")
    spec = tmp_path / "latent_block.op"
    spec.write_text(text, encoding="utf-8")
    status, out, _ = gate(results(spec_sha256=load(spec).digest), spec=str(spec))
    assert status == 1
    assert "less than the bound" in out


def test_the_schema_names_the_fields_that_are_checked():
    from opspec.analysis.evidence import results as module

    schema = json.loads(Path(module.__file__).with_name("evidence.schema.json").read_text(encoding="utf-8"))
    assert schema["$id"] == module.SCHEMA
    assert set(schema["required"]) == set(module._FIELDS)
    assert set(schema["properties"]) == {*module._FIELDS, *module._OPTIONAL}
