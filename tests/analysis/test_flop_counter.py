"""Our counts beside torch's counter: equal where that one is right, and different where the table says so."""

from __future__ import annotations

import random

import pytest

from tools.flop_counter import ENTRIES, count, main

pytest.importorskip("torch")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e.op}@{e.workload}")
def test_equal_where_the_counter_is_right(entry):
    row = count(entry)
    assert (row.counter == row.tensor) == (not entry.why or row.tensor == 0)
    if "full" in entry.why or "whole" in entry.why or "padded" in entry.why:
        assert row.counter > row.tensor
    if entry.why and row.tensor == 0:
        assert row.counter == 0 < row.flops


@pytest.mark.parametrize("seed", range(6))
def test_equal_at_random_shapes(seed):
    choose = random.Random(seed)
    by_op = {e.op: e for e in ENTRIES if not e.why}

    def pick(*names: str) -> dict[str, int]:
        return {n: choose.randint(1, 70) for n in names}

    heads = choose.randint(1, 4)
    shapes = {
        "matmul": pick("M", "N", "K"),
        "batched_matmul": pick("B", "M", "N", "K"),
        "lora": pick("M", "N", "K", "R"),
        "causal_conv1d": pick("B", "T", "C") | {"K": choose.randint(1, 5)},
        "attention": pick("B", "L", "T", "D") | {"Hkv": heads, "Hq": heads * choose.randint(1, 3)},
        "decode_attention": pick("B", "H", "T", "D"),
        "mla_decode": pick("B", "H", "T", "R", "P"),
        "latent_block": pick("B", "L", "H", "D"),
    }
    for name, dims in shapes.items():
        row = count(by_op[name], dims)
        assert row.counter == row.tensor, (name, dims)


def test_the_table_says_it_all(capsys, monkeypatch):
    monkeypatch.setattr("tools.flop_counter.ENTRIES", ENTRIES[1:2])
    assert main() == 0
    assert "matmul @ odd_4k" in capsys.readouterr().out
