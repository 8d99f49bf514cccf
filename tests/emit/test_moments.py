"""Variances of rows that stream; see ``moment_cases``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checking import interpreter

SOURCE = (Path(__file__).parent / "moment_cases.py").read_text(encoding="utf-8")
NAMES = re.findall(r"^@case\ndef (\w+)", SOURCE, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_the_variance_is_right(name: str):
    answer = interpreter().ask({"exact": name, "module": "moment_cases"})
    assert answer == {"right": True}, answer.get("broken")


def test_there_are_cases():
    assert len(NAMES) > 9
