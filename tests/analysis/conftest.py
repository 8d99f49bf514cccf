from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


@lru_cache(maxsize=16)
def module(name: str):
    from opspec.frontend import load

    return load(HERE / "specs" / f"{name}.op")


@pytest.fixture
def ask():
    """``ask("decode", "ai", op="decode", …)``: a question about a fixture spec."""
    from opspec.analysis.query import query

    def go(spec: str, text: str, op: str | None = None, **more):
        m = module(spec)
        return query(m, m.op(op or spec), text, **more)

    return go


@pytest.fixture
def op_of():
    def go(spec: str, op: str):
        return module(spec).op(op)

    return go
