"""Neighbouring axes walked as one; see ``adjacent_cases``. And what that does for vectors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checking import interpreter

SOURCE = (Path(__file__).parent / "adjacent_cases.py").read_text(encoding="utf-8")
NAMES = re.findall(r"^@case\ndef (\w+)", SOURCE, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_the_values_are_right(name: str):
    answer = interpreter().ask({"exact": name, "module": "adjacent_cases"})
    assert answer == {"right": True}, answer.get("broken")


def test_there_are_cases():
    assert len(NAMES) > 6
