"""A page per diagnostic: what, why, an example, a fix, and what it has to do with."""

import pytest

from opspec.driver.codes import all_codes, page
from opspec.driver.related import mentioned, related

CODES = all_codes()


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_is_complete(code: str):
    text = page(CODES[code])
    assert text.startswith(f"{CODES[code].severity}[{code}]: ")
    for part in ("\n\nFor example:\n\n", "\n\nFix: "):
        assert part in text
    assert max(map(len, text.splitlines())) <= 130


def test_related_codes_exist_and_know_each_other():
    assert mentioned() <= set(CODES)
    for code in mentioned():
        assert related(code) and code not in related(code)
        assert all(code in related(other) for other in related(code))


def test_the_page_names_related_codes():
    assert "See also:\n  OP205  an index without an extent\n" in page(CODES["OP204"])
    assert "See also" not in page(CODES["OP628"])
