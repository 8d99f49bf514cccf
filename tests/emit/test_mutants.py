"""A kernel with one mask, rescale or rounding less must not pass: each edit is made in the generated text."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from checking import ask

HERE = Path(__file__).parent

ATTENTION = """op attend[L, T, D](q: bf16[L, D], k: bf16[T, D], v: bf16[T, D]) -> o: bf16[L, D], lse: f32[L] {
  require L <= T, D >= 1
  kernel flash {
    s[i, j] = sum[d](q[i, d] * k[j, d]) / sqrt(D)  for j < i + 1 + T - L
    p[i, j] = softmax[j](s[i, j])
    lse[i] = logsumexp[j](s[i, j])
    o[i, d] = sum[j] using bf16 (p[i, j] * v[j, d])
  }
}
"""
VECTOR = """op f[T, D](q: bf16[D], k: bf16[T, D], v: bf16[T, D]) -> o: bf16[D] {
  kernel flash {
    s[t] = sum[d](q[d] * k[t, d])
    p[t] = softmax[t](s[t])
    o[d] = sum[t] using bf16 (p[t] * v[t, d])
  }
}
"""
LONG = """op f[M, N](x: f32[M, N]) -> y: f32[M] { require N > 300; kernel k { y[m] = var[n](x[m, n]) } }
"""
SCORES = """op f[M, N, D](q: f32[M, D], k: f32[N, D]) -> y: f32[M] {
  require N > 200, D >= 1
  kernel k {
    s[i, j] = sum[d](q[i, d] * k[j, d])
    y[i] = var[j](s[i, j])
  }
}
"""
TRIANGLE = (HERE / "corpus" / "strict_triangle.op").read_text(encoding="utf-8")
LOGITS = """op f[M, V, K](x: bf16[M, K], w: bf16[V, K], label: i64[M]) -> loss: f32[M] {
  kernel k {
    z: f32[m, v] = sum[k](x[m, k] * w[v, k])
    loss[m] = logsumexp[v](z[m, v]) - z[m, label[m]]
  }
}
"""
MATMUL = (HERE / "corpus" / "matmul_transposed.op").read_text(encoding="utf-8")
SOFTMAX = """op softmax[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = softmax[n](x[m, n]) } }
"""
MONOIDS = (HERE / "corpus" / "monoids.op").read_text(encoding="utf-8")
QUANTISE = (HERE / "corpus" / "quantise.op").read_text(encoding="utf-8")
DECODE = (HERE / "corpus" / "decode_lengths.op").read_text(encoding="utf-8")
GATHER = (HERE / "corpus" / "gather.op").read_text(encoding="utf-8")
NORM = (HERE / "corpus" / "layer_norm.op").read_text(encoding="utf-8")

SCAN = (HERE / "corpus" / "scan_before.op").read_text(encoding="utf-8")
DECAY = (HERE / "corpus" / "scan_decay.op").read_text(encoding="utf-8")
PLACE = (HERE / "corpus" / "arg_value.op").read_text(encoding="utf-8")
TIES = "op ties[M, N](x: f32[N, M]) -> i: i64[M] { require N >= 1; kernel k { i[m] = argmax[n](floor(x[n, m])) } }\n"

MUTANTS = {
    "a rescale of the running sum": (ATTENTION, "tiny", [(r"lse_sum \* scale", "lse_sum")]),
    "a rescale of the product": (ATTENTION, "tiny", [(r"o_sum \* scale\[:, None\]", "o_sum")]),
    "the causal mask": (ATTENTION, "tiny", [(r" & \(\(j \+ L\)\[None, :\] <= \(i \+ T\)\[:, None\]\)", "")]),
    "the last key of the causal mask": (ATTENTION, "tiny", [(r"<= \(i \+ T\)\[:, None\]", "< (i + T)[:, None]")]),
    "the last step of a stream": (ATTENTION, "tiny", [(r"tl\.minimum\(T, i_last", "tl.minimum(T - 1, i_last")]),
    "a tile at the edge taken for one inside": (ATTENTION, "tiny", [(r"// BLOCK_T \* BLOCK_T", "// BLOCK_T * BLOCK_T + BLOCK_T")]),
    "what a step adds as the mean moves": (LONG, "tiny", [(r" \+ \w+_count \* \w+_moved \* \w+_moved\n", "\n")]),
    "what a lane adds as the mean moves": (LONG, "tiny", [(r" \+ \w+_count \* \w+_moved \* \w+_moved\)", ")")]),
    "what parts of a stream add as the mean moves": (SCORES, "tiny", [(r" \+ \w+_count_parts \* \w+_moved \* \w+_moved", "")]),
    "the count of a step": (NORM, "tiny", [(r"tl\.where\(n < N, 1\.0, 0\.0\)", "tl.where(n < N, 1.0, 1.0)")]),
    "a rescale of the parts of a stream": (VECTOR, "tiny", [(r"o_sum_parts \* \w+\[[^\]]*\]", "o_sum_parts")]),
    "a rescale where each step is a product": (LOGITS, "tiny", [(r"loss_sum_parts \* \w+", "loss_sum_parts")]),
    "an edge where each step is a product": (LOGITS, "tiny", [(r'int\(V % options\["BLOCK_V"\] != 0\)', "0")]),
    "the element that is selected": (LOGITS, "tiny", [(r"label\[:, None\] == v\[None, :\]", "label[:, None] == (v + 1)[None, :]")]),
    "the guard of the identity": (TRIANGLE, "tiny", [(r"tl\.where\(\w+_new == [^\n]*, 0\.0, (\w+)\)", r"\1")]),
    "the guard of an empty row": (TRIANGLE, "tiny", [(r"    y = tl\.where\([^\n]*, (\w+ / [^\n]*), 0\.0\)", r"    y = \1")]),
    "what IEEE makes of a row of -inf": (ATTENTION, "tiny", [(r'float\("nan"\), (\w+)', r"\1, \1")]),
    "the mask of a product's depth": (MATMUL, "tiny", [(r"\(k\[:, None\] < K\) & ", ""), (r" & \(k\[None, :\] < K\)", "")]),
    "the identity of a product": (MONOIDS, "tiny", [(r"x, 1\.0\)", "x, 0.0)")]),
    "the identity of a maximum": (MONOIDS, "tiny", [(r'other=float\("-inf"\)', "other=0.0"), (r'(load_row\(.*)float\("-inf"\)', r"\g<1>0.0")]),
    "the mask of a minimum": (MONOIDS, "tiny", [(r'x, float\("inf"\)\)', "x, 0.0)")]),
    "rounding to the nearest": (QUANTISE, "shipped", [(r"round_even\((div_near\(x, s\[:, None\]\))\)", r"tl.floor(\1)")]),
    "a scale of the scores": (ATTENTION, "shipped", [(r"1\.0 / tl\.sqrt\(tl\.cast\(D, tl\.float32\)\)", "1.0")]),
    "the division by the normaliser": (SOFTMAX, "shipped", [(r"    y = (\w+) / [^\n]*", r"    y = \1")]),
    "a stride": (MATMUL, "shipped", [(r"\* a_stride_K", "* 1")]),
    "the coordinate of a gather": (GATHER, "shipped", [(r"id_2\.to\(INDEX\)\[:, None\] \*", "t[:, None] * 0 *")]),
    "the count of a mean": (NORM, "shipped", [(r"tl\.cast\(N, tl\.float32\)", "tl.cast(N + 1, tl.float32)")]),
    "what a scan carries": (SCAN, "tiny", [(r"= s_carried\[:, None\] \+ ", "= ")]),
    "the step of what a scan carries": (SCAN, "tiny", [(r"s_carried = s_carried \+", "s_carried =")]),
    "the way of a scan": (SCAN, "tiny", [(r", reverse=True", "")]),
    "the order of chunks": (SCAN, "tiny", [(r"range\(\(tl\.cdiv\(N, BLOCK_N\) - 1\) \* BLOCK_N, -1, -BLOCK_N\)", "range(0, N, BLOCK_N)")]),
    "the edge of what came before": (SCAN, "shipped", [(r"\(j - 1\)\[None, :\] >= 0", "(j - 1)[None, :] >= -1")]),
    "padding that a scan from the end meets": (SCAN, "tiny", [(r'tl\.where\(j\[None, :\] < N, x, float\("-inf"\)\)', "x")]),
    "the decay of what is carried": (DECAY, "tiny", [(r"decayed\((s_carried\[None, :\]), s_decay, s\)", r"s + \1")]),
    "the lowest of equals": (TIES, "tiny", [(r"~\((\w+) <= (\w+)\)", r"(\1 >= \2)")]),
    "the place of a NaN": (PLACE, "shipped", [(r"is_greatest\(x, (v\[:, None\])\)", r"(x == \1)")]),
    "a place before any": (PLACE, "tiny", [(r" \| \(i_at == N\)", "")]),
    "a place beside another extreme": (PLACE, "shipped", [(r"is_greatest\(x, (v\[:, None\])\)", r"(x >= 0.5 * \1)")]),
    "a length": (DECODE, "tiny", [(r"(<= |minimum\(T, )len\w*", r"\g<1>T")]),
}  # fmt: skip


@lru_cache
def passes(text: str, sizes: str, limit: int) -> bool:
    found = ask(text, 4, sizes=sizes, limit=limit, seed=1, dtypes=1)
    return not any(v["faults"] for v in found["verdicts"])


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str):
    text, sizes, edits = MUTANTS[name]
    limit = 4000 if "parts" in name or "moves" in name else 900  # a stream in parts or steps is a long one
    assert passes(text, sizes, limit)
    wrong = ask(text, 24, sizes=sizes, limit=limit, seed=1, edits=edits, faults=1, dtypes=1)
    assert "broken" not in wrong, wrong["broken"]
    faults = [f for v in wrong["verdicts"] for f in v["faults"]]
    assert faults
    assert any("differ" in f or "NaN" in f or "element" in f for f in faults), faults
