"""Evidence on the page: five rows with marks, the gate, and files of results that fit or do not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opspec.analysis.report.evidence import gather_evidence, peek
from opspec.analysis.report.html import to_html
from opspec.analysis.report.markdown import to_markdown
from opspec.analysis.report.model import Report
from opspec.diagnostics import Failure
from opspec.driver.report import make_report
from opspec.frontend import load

ROOT = Path(__file__).parents[3]
SPEC = "specs/world_model/latent_block.op"


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def proof(folder: Path, **changes) -> str:
    data = {
        "schema": "opspec.evidence/1", "spec": SPEC, "spec_sha256": load(SPEC).digest,
        "evidence": "token_compression", "pipeline": "rollout", "variant": "compressed", "level": "hard replay",
        "base": {"contact_f1": 0.91}, "metrics": {"contact_f1": 0.91, "top1_flips": 0}, "environment": {},
    }  # fmt: skip
    path = folder / "proof.json"
    path.write_text(json.dumps(data | changes))
    return str(path)


def page(*paths: str):
    report = make_report(paths, [])
    (found,) = report.evidence
    return found, report


def test_without_results_the_gate_is_closed_and_says_what_is_missing():
    found, report = page(SPEC)
    assert (found.open, found.source) == (False, "")
    holds = {what: word for what, word, _ in found.verdicts}
    assert holds["contact-event F1 does not fall"] == "missing"
    assert holds["the rollout is faster"] == "yes"
    assert [r.title for r in found.rows] == [
        "which cost is solved", "numbers to compute again", "failure case", "level of evidence", "acceptance",
    ]  # fmt: skip
    numbers = dict(found.rows[1].record)
    assert numbers["latent_block @ raw: flops.tensor = 549755813888 FLOP (549.756 GFLOP)"] == "derived"
    assert (
        dict(found.rows[0].record)["compute of attention and projections in the latent blocks"] == "asserted"
    )
    assert "every metric is missing" in to_markdown(report)


def test_results_bring_their_spec_along_and_open_the_gate(tmp_path):
    path = proof(tmp_path)
    found, report = page(path)
    assert (found.open, found.source) == (True, path)
    assert ("results: hard replay", "measured") in found.rows[3].record
    html, text = to_html(report, ""), to_markdown(report)
    assert "token_compression: the gate is open" in html
    assert "## Evidence `token_compression`: the gate is open" in text
    assert "no results given" not in html


def test_what_the_rows_say_is_marked():
    html = to_html(Report(version="1", machines=(), ops=(), evidence=page(SPEC)[1].evidence), "")
    rows = re.findall(r"<div>(.*?)</div>", html)
    assert len(rows) > 15
    assert all("<sup><abbr title=" in r for r in rows)


def test_a_bad_result_shows_no(tmp_path):
    found, _ = page(proof(tmp_path, metrics={"contact_f1": 0.9, "top1_flips": 0}))
    assert not found.open
    assert (
        "contact-event F1 does not fall",
        "no",
        "0.9 is not >= 0.91  (contact_f1 >= base(contact_f1))",
    ) in found.verdicts


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"evidence": "other"}, "OP7"),
        ({"variant": "other"}, "OP7"),
        ({"spec": "specs/none.op"}, "OP6"),
        ({"level": 3}, "OP7"),
    ],
)
def test_results_that_do_not_belong_are_refused(tmp_path, changes, code):
    with pytest.raises(Failure) as caught:
        make_report([proof(tmp_path, **changes)], [])
    assert caught.value.diagnostics[0].code.code.startswith(code)


def test_only_evidence_is_taken_for_it(tmp_path):
    for text in ("{", "[]", '{"schema": "opspec.bench/1"}'):
        (tmp_path / "x.json").write_text(text)
        assert peek(str(tmp_path / "x.json")) is None
    assert peek(str(tmp_path / "none.json")) is None


def test_a_spec_without_evidence_has_no_such_page():
    module = load("specs/reduce/softmax.op")
    assert gather_evidence(module, "x.op", Path(), "h200", {}, []) == ()
