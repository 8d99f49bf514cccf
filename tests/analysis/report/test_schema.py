from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from documents import document, write

from opspec.analysis.report.results import measurements, read_result
from opspec.analysis.report.schema import faults
from opspec.diagnostics import Failure
from opspec.resources import PACKAGE

SCHEMA = json.loads((PACKAGE / "runtime/bench/result.schema.json").read_text())


def broken(path: str, value: object) -> dict:
    """A good document with one value replaced; ``...`` takes it out."""
    data = document("a.op", "0")
    at: object = data
    *way, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    for step in way:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return data


def test_a_good_document_has_no_faults():
    assert list(faults(document("a.op", "0"), SCHEMA)) == []


@pytest.mark.parametrize(
    ("path", "value", "place", "said"),
    [
        ("schema", "other/2", "schema", "is not 'opspec.bench/1'"),
        ("op", ..., "", "lacks `op`"),
        ("op", 3, "op", "is no string"),
        ("more", 1, "", "has an unknown `more`"),
        ("status", "fine", "status", "is none of running"),
        ("results.0.dims.M", 2.5, "results[0].dims.M", "is no integer"),
        ("results.0.dims.M", -1, "results[0].dims.M", "is not at least 0"),
        ("results.0.seed", True, "results[0].seed", "is no integer"),
        ("results.0.measured.time_s", 0, "results[0].measured.time_s", "is not above 0"),
        ("results.0.measured.interval_s", [1.0], "results[0].measured.interval_s", "has 1 items"),
        ("results.0.measured.checks.before.0.matched", 2, "results[0].measured.checks.before[0].matched", "is above 1"),
        ("results.0.roofline.bound", "luck", "results[0].roofline.bound", "is none of memory"),
    ],
)  # fmt: skip
def test_every_fault_has_a_place(path, value, place, said):
    jsonschema = pytest.importorskip("jsonschema")
    data = broken(path, value)
    found = list(faults(data, SCHEMA))
    assert [p for p, _ in found] == [place]
    assert found[0][1].startswith(said)
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_a_keyword_that_is_not_known_is_our_fault():
    with pytest.raises(ValueError, match="patternProperties"):
        list(faults({}, {"patternProperties": {}}))


@pytest.mark.parametrize(
    ("raw", "said"), [(b"{", "it is no JSON"), (b"\xff", "it is no JSON"), (b"[]", "does not fit"), (b"[" * 100_000, "no JSON")]
)  # fmt: skip
def test_what_is_no_result(tmp_path, raw: bytes, said: str):
    path = tmp_path / "r.json"
    path.write_bytes(raw)
    with pytest.raises(Failure) as failed:
        read_result(str(path))
    assert failed.value.diagnostics[0].code.code == "OP781"
    assert said in failed.value.diagnostics[0].message


def test_a_measurement_says_what_it_lacks(tmp_path):
    data = document("a.op", "0")
    result = read_result(str(write(tmp_path, data)))
    (m,) = measurements((result,), "softmax", "rows_4k", "h200")
    assert (m.time, m.floor, m.calibrated) == (40e-6, 28e-6, 36e-6)
    assert m.baseline == "1.3× against torch compile (torch 2.11)"
    assert m.warnings == ("the rate drifted by -14.0% during the run",)
    assert m.missing == ("end-to-end gain: a kernel's time alone claims none",)
    assert measurements((result,), "softmax", "rows_4k", "a100") == ()
    data["results"][0]["measured"] = None
    data["environment"]["gpu"] = None
    (m,) = measurements((read_result(str(write(tmp_path, data))),), "softmax", "rows_4k", "h200")
    assert (m.status, m.time) == ("not measured", None)
    assert {"latency", "achieved rates", "a baseline", "the GPU"} <= set(m.missing)


def test_a_rejected_time_is_not_shown(tmp_path):
    data = document("a.op", "0")
    data["results"][0]["measured"] |= {"status": "rejected", "reason": "under the floor"}
    (m,) = measurements((read_result(str(write(tmp_path, data))),), "softmax", "rows_4k", "h200")
    assert (m.time, m.ledger, m.reason) == (None, (), "under the floor")
