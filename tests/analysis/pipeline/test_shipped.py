"""Exact answers about the shipped specs of attention and of the latent block."""

from functools import lru_cache

import pytest
import sympy

from opspec.analysis.query import query
from opspec.frontend import load
from tests.analysis.pipeline.composing import SPECS

MiB = 2**20
DECODE, BLOCK, PREFILL = "attention/decode.op", "world_model/latent_block.op", "attention/prefill.op"


@lru_cache(maxsize=4)
def module(path):
    return load(SPECS / path)


def ask(path, op, text, **more):
    m = module(path)
    return query(m, m.op(op), text, **more)


def test_decode():
    at = {"workload": "decode_8k"}
    for what, value in (
        ("flops.tensor[s]", 536_870_912),
        ("flops.tensor[o]", 536_870_912),
        ("flops.tensor", 1_073_741_824),
        ("bytes[k] + bytes[v]", 2**30),
        ("bytes[q] + bytes[o]", 131_072),
        ("flops.tensor / (bytes[k] + bytes[v])", 1),
    ):
        assert ask(DECODE, "decode_attention", what, **at).value == value
    assert ask(DECODE, "decode_attention", "ai.tensor == 8192 / 8193", **at).word == "true"
    assert ask(DECODE, "decode_attention", "bytes / bandwidth on effective", **at).value == pytest.approx(
        0.42955e-3, abs=5e-9
    )


def test_no_batch_size_makes_decode_compute_bound():
    answer = ask(DECODE, "decode_attention", "solve(ai.tensor == ridge on h200, B)")
    assert (answer.word, answer.notes[0]) == ("never", "never, because B cancels")


def test_the_group_that_makes_decode_compute_bound():
    T, R = sympy.Symbol("T", integer=True, nonnegative=True), sympy.Rational("206.125")
    answer = ask(DECODE, "decode_gqa", "solve(ai.tensor == ridge on h200, G)")
    assert sympy.cancel(answer.form - R * T / (T - R)) == 0
    at = ask(DECODE, "decode_gqa", "solve(ai.tensor == ridge on h200, G)", settings={"T": 8192})
    assert at.value == pytest.approx(211.45, abs=0.05)
    assert at.notes == ("first integer: G = 212",)


@pytest.mark.parametrize(("scale", "mebibytes", "ai"), [("f16", 8, 1.969), ("f32", 16, 1.939)])
def test_scales_of_the_fp8_cache(scale, mebibytes, ai):
    from opspec.frontend import load_text

    text = (SPECS / DECODE).read_text(encoding="utf-8").replace("scale: f16", f"scale: {scale}")
    m = load_text(text)
    op = m.op("decode_attention_fp8")
    at = {"workload": "decode_8k_fp8"}
    assert query(m, op, "bytes[k_scale] + bytes[v_scale]", **at).value == mebibytes * MiB
    assert query(m, op, "ai.tensor", **at).value == pytest.approx(ai, abs=6e-4)


@pytest.mark.parametrize(
    ("boundary", "mebibytes", "intensity"),
    [("fused", 136, 3855), ("three_kernels", 648, 809), ("naive", 8840, 59.3), ("", 648, 809)],
)
def test_latent_block_over_boundaries(boundary, mebibytes, intensity):
    at = {"workload": "raw", "boundary": boundary}
    assert ask(BLOCK, "latent_block", "flops.tensor", **at).value == 549_755_813_888
    assert ask(BLOCK, "latent_block", "bytes", **at).value == mebibytes * MiB
    assert ask(BLOCK, "latent_block", "ai.tensor", **at).value == pytest.approx(intensity, rel=1e-3)


def test_latent_block_pieces():
    attention, projections = (
        "flops.tensor[s] + flops.tensor[o]",
        "flops.tensor - flops.tensor[s] - flops.tensor[o]",
    )
    for workload, a, p in (
        ("raw", 274_877_906_944, 274_877_906_944),
        ("compressed", 38_654_705_664, 103_079_215_104),
    ):
        assert ask(BLOCK, "latent_block", attention, workload=workload).value == a
        assert ask(BLOCK, "latent_block", projections, workload=workload).value == p
    assert ask(BLOCK, "latent_block", f"solve({attention} == {projections}, L)").symbolic == "2 * D * H"
    asserted = ask(BLOCK, "latent_block", "flops.tensor / 350 MiB", workload="raw")
    assert asserted.value == pytest.approx(1498, abs=0.5)


def test_exponentials_take_as_long_as_products_on_h100():
    at = {"workload": "raw", "boundary": "three_kernels", "machine": "h100"}
    assert ask(BLOCK, "latent_block", "flops.sfu.exp", **at).value == 2**30
    from opspec.analysis.machine import load as machine

    h100 = machine("h100")
    products = ask(BLOCK, "latent_block", "flops.tensor[attend]", **at).value
    assert products / h100.tensor["bf16"] == pytest.approx(2**30 / h100.sfu, rel=3e-3)


def bottom_right(queries, keys):
    return sum(min(keys, max(0, i + 1 + keys - queries)) for i in range(queries))


@pytest.mark.parametrize("shape", [(1, 1), (1, 160), (100, 160), (37, 37), (2, 5)])
def test_causal_pairs_are_counted_exactly(shape):
    L, T = shape
    dims = {"B": 1, "Hq": 1, "Hkv": 1, "L": L, "T": T, "D": 64}
    assert ask(PREFILL, "attention_causal", "flops.tensor", settings=dims).value == 4 * 64 * bottom_right(
        L, T
    )


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 9, 3), (9, 9, 4), (7, 40, 16), (8, 8, 20)])
def test_windows_are_counted_exactly(shape):
    L, T, W = shape
    pairs = sum(0 <= i + T - L - j < W for i in range(L) for j in range(T))
    dims = {"B": 1, "H": 1, "L": L, "T": T, "W": W, "D": 8}
    assert ask(PREFILL, "attention_window", "flops.tensor", settings=dims).value == 4 * 8 * pairs


def test_grouped_heads_at_prefill():
    dims = {"B": 2, "Hq": 24, "Hkv": 8, "L": 100, "T": 160, "D": 64}
    assert ask(PREFILL, "attention", "flops.tensor", settings=dims).value == 196_608_000


def test_ragged_lengths_are_moments_and_never_the_maximum():
    answer = ask(DECODE, "paged_decode", "flops.tensor", workload="paged_ragged")
    mean = 0.3 * 512 + 0.5 * 2048 + 0.2 * 8192
    assert answer.value == pytest.approx(4 * 128 * 8 * 4 * 32 * mean)
