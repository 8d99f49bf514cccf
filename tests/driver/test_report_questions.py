"""The page answers what makes an op reusable, and repeats what `opspec check` warns of."""

from __future__ import annotations

import shutil

import pytest

from opspec.analysis.report.markdown import to_markdown
from opspec.driver.questions.reuse import QUESTIONS
from opspec.driver.report import make_report
from tests.cli.conftest import ROOT
from tests.cli.explaining import HERE


@pytest.fixture
def made(tmp_path, monkeypatch):
    shutil.copytree(HERE / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    return make_report(["specs/products.op", "specs/queries.op"], ["h200"])


def test_each_op_has_four_questions_and_answers(made):
    pages = {p.name: dict(p.reuse) for p in made.ops}
    assert all(tuple(a) == QUESTIONS for a in pages.values())
    kind, patterns, limits, others = (pages["plain"][q] for q in QUESTIONS)
    assert kind == ("c is a product of m with n by k; on the matrix unit",)
    assert patterns[:2] == ("folds and maps: product over a", "traits: the matrix unit")
    assert "topology: one device; no program waits for another, and nothing is exchanged" in limits
    assert any("biased (specs/products.op): with an epilogue" in s for s in others)


def test_kernels_of_one_op_are_told_apart_and_what_they_share_is_said_once(made):
    page = next(p for p in made.ops if p.name == "stored")
    answers = dict(page.reuse)
    assert "scores: folds and maps: product over a" in answers[QUESTIONS[1]]
    assert (
        "weights: folds and maps: max over a; sum over a beside the max; a map over a"
        in answers[QUESTIONS[1]]
    )
    assert sum(s.startswith("topology") for s in answers[QUESTIONS[2]]) == 1
    assert any("`s` goes through memory: 4 GiB at `naive`" in n for n in page.notes)


def test_both_forms_hold_the_questions(made):
    text = to_markdown(made)
    assert all(f"**{q}** (D)" in text for q in QUESTIONS)


def test_gaps_of_evidence_stand_beside_it():
    (page,) = make_report([str(ROOT / "specs/world_model/latent_block.op")], ["h100"]).evidence
    assert any("ideal shapes" in w for w in page.warnings)
    assert any("without the result that it is from" in w for w in page.warnings)
