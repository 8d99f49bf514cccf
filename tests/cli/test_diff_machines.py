"""``opspec diff`` on machines that specs state, on machine files, and where only an import changed."""

from __future__ import annotations

import json

import pytest

from opspec.resources import machines
from tests.cli import test_diff
from tests.cli.test_diff import LIBRARY, Work, record

SCALE, HALF = (
    t.replace("1000", "10000000").replace("8000", "80000000") for t in (test_diff.SCALE, test_diff.HALF)
)
CARD = """machine card like h100 {
  memory.bandwidth = 2.5 TB/s measured "a copy"
}
"""
FAST = CARD.replace("2.5 TB/s", "5.0 TB/s")
BOUND = "\nexpect small { time on card >= 25 us }\n"


@pytest.fixture
def work(tmp_path, monkeypatch) -> Work:
    found = Work(tmp_path / "repo")
    found.write("specs/scale.op", 'import "../lib/cards.op"\n' + SCALE)
    found.write("specs/other.op", SCALE.replace("scale", "other").replace("small", "little"))
    found.write("lib/cards.op", CARD)
    found.write("lib/library.op", LIBRARY)
    found.commit()
    monkeypatch.chdir(found.root)
    return found


def times(found: dict) -> dict[str, tuple[float, float]]:
    return {
        n["machine"]: (n["before"], n["after"])
        for s in found["specs"]
        for o in s["ops"]
        for n in o["numbers"]
        if n["quantity"] == "time"
    }


def test_a_stated_machine_is_looked_at_with_those_that_ship(work, opspec):
    work.write("specs/scale.op", 'import "../lib/cards.op"\n' + HALF)
    assert {"card", "h200"} <= set(times(record(opspec, "HEAD")))
    assert set(times(record(opspec, "HEAD", "--machine", "card"))) == {"card"}
    assert set(times(record(opspec, "HEAD", "--machine", "h100"))) == {"h100"}


def test_a_machine_that_changed_in_an_import_changes_times_and_breaks_budgets(work, opspec):
    work.write("specs/scale.op", 'import "../lib/cards.op"\n' + SCALE + BOUND)
    work.commit()
    work.write("lib/cards.op", FAST)
    ran = opspec("diff", "HEAD", "--format", "json")
    assert ran.status == 1
    (spec,) = (s for s in json.loads(ran.out)["specs"] if s["ops"])
    assert spec["path"] == "specs/scale.op"
    assert [b["standing"] for b in spec["budgets"]] == ["broken"]
    (op,) = spec["ops"]
    assert (op["edited"], op["forms"]) == (False, [])
    (number,) = op["numbers"]
    assert (number["machine"], number["quantity"]) == ("card", "time")
    assert number["before"] - number["after"] == pytest.approx(80e6 / 2.5e12 - 80e6 / 5e12)
    assert "machine card has other values now" in op["notes"]


def test_words_about_a_machine_are_no_change(work, opspec):
    work.write("lib/cards.op", CARD.replace("a copy", "a copy of 4 GiB"))
    assert opspec("diff", "HEAD").out.startswith("opspec: no change of cost")


def test_a_machine_that_is_new_is_used_for_both_sides(work, opspec):
    work.write("specs/scale.op", 'import "../lib/cards.op"\n' + HALF + CARD.replace("card", "shelf"))
    assert "shelf" in times(record(opspec, "HEAD"))


def test_a_machine_file_of_the_repository_has_its_revision(work, opspec):
    text = (machines() / "h200.toml").read_text(encoding="utf-8").replace('"h200"', '"mine"')
    work.write("machines/mine.toml", text)
    work.commit()
    assert record(opspec, "HEAD", "--machine", "machines/mine.toml")["specs"] == []
    work.write("machines/mine.toml", text.replace("value = 4.8e12", "value = 2.4e12"))
    found = record(opspec, "HEAD", "--machine", "machines/mine.toml")
    assert {s["path"] for s in found["specs"] if s["ops"]} == {"specs/scale.op", "specs/other.op"}
    before, after = times(found)["mine"]
    assert before < after
    assert opspec("diff", "HEAD", "--machine", "machines/mine.toml", "--policy", "cost").status == 1
    assert record(opspec, "HEAD")["specs"] == []


def test_a_machine_that_nobody_knows(work, opspec):
    ran = opspec("diff", "HEAD", "--machine", "cart")
    assert ran.status == 2
    assert "error[OP711]: there is no machine `cart`" in ran.err
    assert "did you mean `card`?" in ran.err
    assert "stated by specs: card" in ran.err


def test_a_machine_file_that_is_not_usable(work, opspec):
    work.write("mine.toml", "name = 3")
    ran = opspec("diff", "HEAD", "--machine", "mine.toml")
    assert ran.status == 2
    assert "OP711" in ran.err


def test_a_budget_that_only_an_import_breaks(work, opspec):
    user = (
        'import "../lib/library.op"\n'
        + SCALE.replace("a * x[m]", "twice(x[m])")
        + "expect small { flops == 10000000 }\n"
    )
    work.write("specs/user.op", user.replace("scale", "double").replace("small", "tiny"))
    work.commit()
    work.write("lib/library.op", "fn twice(x) = x + x + x\n")
    ran = opspec("diff", "HEAD")
    assert ran.status == 1
    assert "budget broken: flops == 10000000 at tiny" in ran.out
