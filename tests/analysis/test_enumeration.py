"""Closed forms against enumeration, on random ops and shapes.

About a hundred here; ``python tests/analysis/compare.py 10000`` runs as many as are asked for.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from compare import differences
from conftest import module
from random_ops import Maker


@pytest.mark.parametrize("block", range(8))
def test_random_ops(block: int):
    stats: dict[str, int] = defaultdict(int)
    for seed in range(block * 15, block * 15 + 15):
        wrong = differences(Maker(seed).op(), seed, many=1, most=4, stats=stats)
        assert not wrong, f"seed {seed}: {wrong[0]}"
    assert stats["refused"] <= 2, "a random op is seldom refused"
    assert stats["upper"] < stats["exact"] / 3, "most byte counts are exact"


@pytest.mark.parametrize(
    ("spec", "op"),
    [
        ("cases", "attention"), ("cases", "bottom_right"), ("cases", "top_left"), ("cases", "linear"),
        ("cases", "broadcast_matmul"), ("cases", "depthwise"), ("cases", "row_scale"), ("cases", "window"),
        ("cases", "strided"), ("cases", "ragged_triangle"), ("cases", "interleaved"), ("cases", "prefix_causal"), ("cases", "either"), ("latent_block", "latent_block"),
    ],
)  # fmt: skip
def test_written_specs(spec: str, op: str):
    found = module(spec).op(op)
    if not any(r.op == "eq" for r in found.requires):
        large = (2, 2) if len(found.defines) > 5 else (5, 6)
        assert not differences(found, 0, many=1, most=3, large=large)


def test_a_wrong_form_is_seen(monkeypatch):
    """The comparison can fail: a count that halves the causal triangle is caught."""
    import compare

    found = module("cases").op("bottom_right")
    from dataclasses import replace

    real = compare.cost(found)
    halved = replace(real, flops=tuple(replace(t, count=t.count / 2) for t in real.flops))
    monkeypatch.setattr(compare, "cost", lambda op: halved)
    assert differences(found, 0)
