"""Invented specs of many kinds: each kernel is right, or refused in words that its file declares."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checking import ask, faults

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.op"))
WANTED = re.compile(r"^# refused: (OP\d+)$", re.MULTILINE)
HEAVY = {"conv2d", "frames", "rank5_map", "gathered_product"}  # many elements or programs, slow to interpret


def check(path: Path, count: int, limit: int) -> None:
    text = path.read_text(encoding="utf-8")
    answer = ask(text, count, limit=limit)
    assert not faults(answer), "\n".join(faults(answer))
    refused = sorted({r["code"] for r in answer.get("refused", ())})
    assert refused == WANTED.findall(text)


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_a_kernel_is_right_or_refused(path: Path):
    check(path, 2, 150 if path.stem in HEAVY else 300)


@pytest.mark.slow
@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_a_kernel_is_right_on_every_kind_of_case(path: Path):
    check(path, 14, 150 if path.stem in HEAVY else 600)
