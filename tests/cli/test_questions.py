"""What a reader of the two cases asks, as commands over the shipped specs, and the answers to the last digit.

Each row: the option string of `opspec query`, and the answer that must come: a number (in the answer's unit, exactly or
within the parts per million behind it), or a word.
"""

from __future__ import annotations

import html
import json
import shlex

import pytest

from tests.cli.conftest import ROOT

DECODE = str(ROOT / "specs/attention/decode.op")
BLOCK = str(ROOT / "specs/world_model/latent_block.op")
EXACT, ROUNDED = 0, 3e-4
R_H100, R_H200 = 989.4e12 / 3.35e12, 989.4e12 / 4.8e12


def group(ridge: float, *, keys: int = 8192, storage: float = 2.0) -> float:
    """The group size from which decode is bound by its products: R T s / (2 (T - R))."""
    return ridge * keys * storage / 2 / (keys - ridge)


QUESTIONS = [
    # one new token over a long cache: what it costs
    (DECODE, "'flops.tensor[s]' --at decode_8k", 536_870_912, EXACT),
    (DECODE, "'flops.tensor[o]' --at decode_8k", 536_870_912, EXACT),
    (DECODE, "flops.tensor --at decode_8k", 1_073_741_824, EXACT),
    (DECODE, "'bytes[k] + bytes[v]' --at decode_8k", 2**30, EXACT),
    (DECODE, "'bytes[q] + bytes[o]' --at decode_8k", 131_072, EXACT),
    (DECODE, "'flops.tensor / (bytes[k] + bytes[v])' --at decode_8k", 1, EXACT),
    (DECODE, "'ai.tensor == 8192 / 8193' --at decode_8k", "true", EXACT),
    (DECODE, "ai --at decode_8k", 1.0116, ROUNDED),
    # the roof, and from where on another one
    (DECODE, "bound --at decode_8k --machine h100", "memory", EXACT),
    (DECODE, "bound --at decode_8k --machine h200", "memory", EXACT),
    (DECODE, "'attainable == min(peak, bandwidth * ai.tensor)' --at decode_8k --machine h200", "true", EXACT),
    (DECODE, "'bandwidth * flops.tensor / (bytes[k] + bytes[v])' --at decode_8k --machine effective", 2.5e12, EXACT),
    (f"{DECODE}:decode_gqa", "'solve(ai.tensor == ridge, B)' --machine h100", "never", EXACT),
    (f"{DECODE}:decode_gqa", "'solve(ai.tensor == ridge, G)' --set T=8192 --machine h100", group(R_H100), 1e-9),
    (f"{DECODE}:decode_gqa", "'solve(ai.tensor == ridge, G)' --set T=8192 --machine h200", group(R_H200), 1e-9),
    (f"{DECODE}:decode_gqa", "'solve(ai.tensor == 206.1, G)' --set T=8192", 211.42, ROUNDED),
    (f"{DECODE}:decode_gqa", "'solve(ai.tensor == 295.4, G)' --set T=8192", 306.4, ROUNDED),
    (f"{DECODE}:decode_gqa", "'solve(ai.tensor == ridge, G)' --set T=200 --machine h200", "never", EXACT),
    (
        f"{DECODE}:decode_gqa",
        "'solve(flops.tensor / (bytes[q] + bytes[o] + (bytes[k] + bytes[v]) / 2) == ridge, G)' --set T=8192 --machine h100",
        group(R_H100, storage=1.0), 1e-9,
    ),
    (
        f"{DECODE}:decode_gqa",
        "'solve(flops.tensor / (bytes[q] + bytes[o] + (bytes[k] + bytes[v]) / 2) == ridge, G)' --set T=8192 --machine h200",
        group(R_H200, storage=1.0), 1e-9,
    ),
    (f"{DECODE}:decode_gqa", "'limit(ai.tensor, T -> oo)' --set G=7", 7, EXACT),
    (f"{DECODE}:decode_gqa", "'diff(ai.tensor, T) - G ** 2 / (G + T) ** 2'", 0, EXACT),
    # beside a measurement
    (DECODE, "'(bytes[k] + bytes[v]) / bandwidth' --at decode_8k --machine effective", 0.42950e-3, 1e-5),
    (DECODE, "'bytes / bandwidth' --at decode_8k --machine effective", 0.42955e-3, 1e-5),
    (DECODE, "'(bytes[k] + bytes[v]) / 0.55 ms' --at decode_8k", 1.9523e12, 3e-5),
    (DECODE, "'bytes / 0.55 ms' --at decode_8k", 1.9525e12, 2e-5),
    (DECODE, "'flops.tensor / 0.55 ms' --at decode_8k", 1.9523e12, 3e-5),
    (DECODE, "'bytes / 0.55 ms / bandwidth' --at decode_8k --machine effective", 0.781, ROUNDED),
    (DECODE, "'(bytes[k] + bytes[v]) / bandwidth' --at decode_8k_fp8 --machine effective", 0.2147e-3, 1e-3),
    (DECODE, "'bytes[k] + bytes[v]' --at decode_8k_fp8", 2**29, EXACT),
    (DECODE, "'bytes[k_scale] + bytes[v_scale]' --at decode_8k_fp8", 8 * 2**20, EXACT),
    (DECODE, "ai.tensor --at decode_8k_fp8", 1.969, ROUNDED),
    (DECODE, "'0.55 ms / 0.33 ms' --at decode_8k", 5 / 3, 1e-12),
    (DECODE, "'0.33 ms - 0.55 ms / 2' --at decode_8k", 0.055e-3, 1e-12),
    # the latent block
    (BLOCK, "'flops.tensor[s] + flops.tensor[o]' --at raw", 274_877_906_944, EXACT),
    (BLOCK, "'flops.tensor - flops.tensor[s] - flops.tensor[o]' --at raw", 274_877_906_944, EXACT),
    (BLOCK, "'solve(flops.tensor[s] + flops.tensor[o] == flops.tensor - flops.tensor[s] - flops.tensor[o], L)' --at raw", 2048, EXACT),
    (BLOCK, "'bytes[x]' --at raw", 64 * 2**20, EXACT),
    (BLOCK, "'bytes.write[s]' --at raw --boundary naive", 2 * 2**30, EXACT),
    (BLOCK, "'bytes[s] + bytes[p]' --at raw --boundary naive", 8 * 2**30, EXACT),
    (BLOCK, "bytes --at raw --boundary fused", 136 * 2**20, EXACT),
    (BLOCK, "bytes --at raw --boundary three_kernels", 648 * 2**20, EXACT),
    (BLOCK, "bytes --at raw --boundary naive", 8840 * 2**20, EXACT),
    (BLOCK, "ai.tensor --at raw --boundary fused", 3855, ROUNDED),
    (BLOCK, "ai.tensor --at raw --boundary three_kernels", 809, ROUNDED),
    (BLOCK, "ai.tensor --at raw --boundary naive", 59.3, 1e-3),
    (BLOCK, "'flops.tensor / 350 MiB' --at raw", 1498, ROUNDED),
    *((BLOCK, f"'ai.tensor < ridge' --at raw --boundary naive --machine {m}", "true", EXACT) for m in ("h100", "h200", "b200")),
    *((BLOCK, f"'ai.tensor > ridge' --at raw --machine {m}", "true", EXACT) for m in ("h100", "h200", "b200")),
    (BLOCK, "flops.sfu.exp --at raw", 2**30, EXACT),
    (BLOCK, "bound --at raw --machine b200", "sfu", EXACT),
    (BLOCK, "'flops.sfu.exp[attend] / peak.sfu ~ flops.tensor[attend] / peak within 0.01%' --at raw --machine h100", "true", EXACT),
    (BLOCK, "'flops.sfu.exp[attend] / peak.sfu / (flops.tensor[attend] / peak)' --at raw --machine b200", 2, 3e-3),
    (BLOCK, "'time - time[qkv] - time[attend] - time[out]' --at raw --machine h200", 0, EXACT),
    (BLOCK, "'bound[qkv]' --at raw --machine h200", "tensor", EXACT),
    (BLOCK, "'bound[attend]' --at raw --machine b200", "sfu", EXACT),
    (BLOCK, "'flops.tensor[s] + flops.tensor[o]' --at compressed", 38.65e9, ROUNDED),
    (BLOCK, "'flops.tensor - flops.tensor[s] - flops.tensor[o]' --at compressed", 103.08e9, ROUNDED),
    (BLOCK, "flops.tensor --at compressed", 141.73e9, ROUNDED),
    (BLOCK, "'elasticity(flops.tensor[s] + flops.tensor[o], L)'", 2, EXACT),
    (BLOCK, "'elasticity(flops.tensor - flops.tensor[s] - flops.tensor[o], L)'", 1, EXACT),
    (BLOCK, "'flops.tensor / (flops.tensor at (L = 768))' --at raw", 3.879, ROUNDED),
    (BLOCK, "'4.1 ms / 1.35 ms'", 3.037, ROUNDED),
    (BLOCK, "'flops.tensor / 4.1 ms' --at raw", 134.1e12, ROUNDED),
    (BLOCK, "'flops.tensor / 1.35 ms' --at compressed", 105.0e12, ROUNDED),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "asked", "answer", "within"), QUESTIONS, ids=[q[1] for q in QUESTIONS])
def test_the_answer(opspec, spec, asked, answer, within):
    ran = opspec("query", spec, *shlex.split(asked), "--format", "json")
    assert ran.status == 0, ran.err
    data = json.loads(ran.out)
    if isinstance(answer, str):
        assert data["symbolic"] == answer
    else:
        assert data["value"] == pytest.approx(answer, rel=within, abs=0)


def test_why_no_batch_size_helps(opspec):
    out = opspec("query", f"{DECODE}:decode_gqa", "solve(ai.tensor == ridge, B)", "--machine", "h200").out
    assert "never, because B cancels" in out


def test_from_which_group_on_and_where_that_exists(opspec):
    out = opspec("query", f"{DECODE}:decode_gqa", "solve(ai.tensor == ridge, G)", "--machine", "h200").out
    assert out.startswith("1649 * T / (8 * T - 1649)")
    assert "exists only where 8*T > 1649" in out
    at = opspec(
        "query",
        f"{DECODE}:decode_gqa",
        "solve(ai.tensor == ridge, G)",
        "--set",
        "T=8192",
        "--machine",
        "h200",
    )
    assert "first integer: G = 212" in at.out


PIPELINES = [
    (f"{DECODE}:decode_step", "attention   32 × 0.55 ms  17.6 ms   30.34%"),
    (f"{DECODE}:decode_step", "0.55 ms measured is 78.10% of that roof"),
    (
        f"{DECODE}:decode_step",
        "attention 1.6667× a run; end to end 1.1381× (58 ms → 50.96 ms, saves 7.04 ms)",
    ),
    (f"{DECODE}:decode_step", "ceiling with attention free: 1.4356×"),
    (f"{DECODE}:decode_step", "0.11184 ms above it"),
    (f"{BLOCK}:rollout", "end to end 1.3103× (38 ms → 29 ms, saves 9 ms)"),
    (f"{BLOCK}:rollout", "blocks 3.037× a run, 2.5714× for all runs"),
    (f"{BLOCK}:rollout", "blocks: one run         -12.073 ms   25.927 ms"),
    (f"{BLOCK}:rollout", "blocks: number of runs  +1.0732 ms       27 ms"),
    (f"{BLOCK}:rollout", "memory                       +2 ms       29 ms"),
    (f"{BLOCK}:rollout", "18 ms / 4.1 ms = 4.39 runs before, 7 ms / 1.35 ms = 5.19 after"),
    (f"{BLOCK}:rollout", "contact 3 * 16 * 16 = 768 already, and compressed has L = 768"),
    (f"{BLOCK}:rollout", "grew"),
]


@pytest.mark.parametrize(("spec", "line"), PIPELINES, ids=[p[1][:40] for p in PIPELINES])
def test_end_to_end(opspec, spec, line):
    ran = opspec("pipeline", spec)
    assert ran.status == 0
    assert line in ran.out


def test_advice_comes_with_the_time_that_it_saves(opspec, tmp_path):
    pytest.importorskip("plotly")
    assert opspec("report", DECODE, "--machine", "h200", "--out", str(tmp_path)).status == 0
    text = (tmp_path / "report.md").read_text()
    assert "| store every tensor in 8 bits, scales not counted | 111.86 µs | memory |" in text
    assert "| what would help | saves at most (D) | then bound by |" in text


def test_the_boundary_that_flips_the_bound_is_named(opspec, tmp_path):
    pytest.importorskip("plotly")
    assert opspec("report", BLOCK, "--machine", "h100", "--out", str(tmp_path)).status == 0
    text = html.unescape((tmp_path / "report.md").read_text())
    assert "the bound flips with the grouping naive: sfu → memory" in text
