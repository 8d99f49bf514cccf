"""Specs of many kinds become legal IR, and the IR that was reviewed."""

from pathlib import Path

import pytest

from opspec.frontend import load
from opspec.ir.show import show_module
from opspec.ir.verify import verify
from tests.frontend.snippets import golden


@pytest.mark.parametrize(("spec", "text"), golden(), ids=[p.stem for p, _ in golden()])
def test_accepted(spec: Path, text: Path):
    module = load(spec)
    for op in module.ops:
        verify(op)
    assert show_module(module) == text.read_text(encoding="utf-8")


def test_no_stale_files():
    kept = {text.name for _, text in golden()} | {spec.name for spec, _ in golden()}
    assert {p.name for p in Path(__file__).with_name("accepted").iterdir()} <= kept
