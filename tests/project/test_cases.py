"""The case pages: every number in them is computed, and is what the tool says today."""

import re

import pytest

from tools import cases


@pytest.mark.parametrize("page", cases.pages(), ids=lambda p: p.stem)
def test_numbers_are_those_of_the_specs(page):
    assert cases.computed(page) == page.read_text(encoding="utf-8"), "run `python -m tools.cases`"


@pytest.mark.parametrize("page", cases.pages(), ids=lambda p: p.stem)
def test_no_number_is_typed(page):
    text = cases.prose(page.read_text(encoding="utf-8"))
    assert re.findall(r"(?<![A-Za-z0-9])\d\S*", text) == []


def test_a_wrong_number_and_an_unanswerable_question_are_noticed(tmp_path):
    spec = cases.FOLDER.parent / "attention" / "decode.op"
    page = tmp_path / "page.md"
    page.write_text(
        f"<!-- spec: {spec} -->\n<!--= pipeline decode_step: total | ms -->57 ms<!--/-->\n", encoding="utf-8"
    )
    assert "-->58 ms<!--" in cases.computed(page)
    page.write_text(
        f"<!-- spec: {spec} -->\n<!--= decode_attention @ decode_8k: ai.tensr -->1<!--/-->\n",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match=r"ai\.tensr"):
        cases.computed(page)


def test_the_check_changes_nothing(capsys):
    before = {p: p.read_text(encoding="utf-8") for p in cases.pages()}
    assert cases.main(["--check"]) == 0
    assert {p: p.read_text(encoding="utf-8") for p in cases.pages()} == before
    assert capsys.readouterr().out == ""
