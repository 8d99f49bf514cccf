"""Every malformed snippet gives the faults that it marks, in the words of its snapshot."""

import re

import pytest

from opspec.diagnostics import codes, render_text
from tests.frontend.snippets import Snippet, diagnose, found, snippets

CASES = snippets()


@pytest.mark.parametrize("snippet", CASES, ids=lambda s: f"{s.file[:-3]}: {s.title}")
def test_snippet(snippet: Snippet):
    diagnostics = diagnose(snippet.spec)
    assert found(diagnostics) == snippet.marked
    assert render_text(diagnostics).rstrip() == snippet.text


def test_there_are_snippets_of_most_codes():
    used = {code for s in CASES for _, _, code in s.marked}
    frontend = {c for c in codes() if re.match(r"OP[1-6]\d\d$", c)}
    elsewhere = {"OP105", "OP106", "OP111", "OP310", "OP311"}  # have tests of their own
    assert len(CASES) >= 40
    assert used | elsewhere >= {c for c in frontend if codes()[c].code in used | elsewhere}


def test_every_code_is_explained():
    for code in codes().values():
        assert code.title and code.why, code.code
        assert code.example and code.fix, code.code


def test_every_diagnostic_has_a_place():
    for s in CASES:
        assert all(d.span is not None for d in diagnose(s.spec))
