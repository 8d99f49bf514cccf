"""Generated functions in PyTorch's hands; see ``launcher_cases``. And how many binaries they need."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from checking import compiler, interpreter

HERE = Path(__file__).parent
SOURCE = (HERE / "launcher_cases.py").read_text(encoding="utf-8")
NAMES = re.findall(r"^@case\ndef (\w+)", SOURCE, re.MULTILINE)
GPU = re.findall(
    r"^@case\ndef (\w+)", (HERE / "launcher_gpu_cases.py").read_text(encoding="utf-8"), re.MULTILINE
)
LENGTHS = [1, 3, 8, 16, 32, 48]
MANY = [*LENGTHS, 64, 100, 500, 512, 4096, 4100, 20000, 65536, 100001]
MAP = "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = 2 * x[m, n] } }\n"
VECTOR = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[n] = 2 * x[n] } }\n"
ROWS = "op f[M, N](x: f32[M, N], w: f32[M]) -> y: f32[M, N] { kernel k { y[m, n] = softmax[n](x[m, n]) * w[m] } }\n"

DECODE = """op f[B, T, D](q: bf16[B, D], k: bf16[B, T, D]) -> y: f32[B, D] {
  kernel k { p[b, t] = softmax[t](sum[d](q[b, d] * k[b, t, d])); y[b, d] = sum[t](p[b, t] * k[b, t, d]) }
}
workload w for f { B = 8, T = 8192, D = 128 }
"""


PREFILL = """op f[B, H, L, T, D](
  q: bf16[B, H, L, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]
) -> o: bf16[B, H, L, D], lse: f32[B, H, L] {
  kernel k {
    s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h, j, d]) / sqrt(D)
    lse[b, h, i] = logsumexp[j](s[b, h, i, j])
    p[b, h, i, j] = softmax[j](s[b, h, i, j])
    o[b, h, i, d] = sum[j] using bf16 (p[b, h, i, j] * v[b, h, j, d])
  }
}
workload w for f { B = 8, H = 16, L = 4096, T = 4096, D = 128 }
"""
PRODUCT = """op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] {
  kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) }
}
"""


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_may(name: str):
    answer = interpreter().ask({"exact": name, "module": "launcher_cases"})
    assert answer == {"right": True}, answer.get("broken")


@pytest.mark.gpu
@pytest.mark.parametrize("name", GPU)
def test_pytorch_may_on_a_gpu(name: str):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    answer = compiler().ask({"exact": name, "module": "launcher_gpu_cases"})
    assert answer == {"right": True}, answer.get("broken")


@pytest.mark.parametrize(
    "text, axis, most",
    [
        (VECTOR, "N", 3),
        (MAP, "M", 3),
        (ROWS, "M", 3),
        (DECODE, "T", 3),
        (DECODE, "B", 3),
        (PREFILL, "T", 3),
        (PREFILL, "L", 6),
        (PREFILL, "B", 4),
        (PRODUCT, "M", 7),
        (PRODUCT, "K", 3),
    ],
    ids=[
        "vector",
        "rows of a map",
        "rows of a reduction",
        "keys",
        "batch",
        "keys of a prefill",
        "queries of a prefill: four tiles and two of parts",
        "batch of a prefill",
        "rows of a product: seven tiles",
        "depth of a product",
    ],
)
def test_a_varying_length_needs_few_binaries(text: str, axis: str, most: int):
    fixed = {"B": 8, "H": 16, "L": 2048, "T": 512, "D": 128, "M": 4096, "N": 256, "K": 1024}
    fixed |= {"N": 4096} if text == PRODUCT else {}
    answer = compiler().ask({"text": text, "binaries": [fixed | {axis: n} for n in MANY]})
    assert "broken" not in answer, answer.get("broken")
    assert answer["binaries"] <= most


def test_a_row_along_memory_needs_few_binaries_for_small_lengths():
    answer = compiler().ask({"text": ROWS, "binaries": [{"M": 8, "N": n} for n in LENGTHS]})
    assert answer["binaries"] <= 3


def test_the_count_of_binaries_sees_constants():
    shapes = [{"M": 8, "N": n} for n in (64, 128, 256, 512)]
    assert compiler().ask({"text": ROWS, "binaries": shapes})["binaries"] == 4
