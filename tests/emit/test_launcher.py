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
    [(VECTOR, "N", 3), (MAP, "M", 3), (ROWS, "M", 3)],
    ids=["vector", "rows of a map", "rows of a reduction"],
)
def test_a_varying_length_needs_few_binaries(text: str, axis: str, most: int):
    answer = compiler().ask({"text": text, "binaries": [{"N": 256} | {axis: n} for n in MANY]})
    assert "broken" not in answer, answer.get("broken")
    assert answer["binaries"] <= most


def test_a_row_along_memory_needs_few_binaries_for_small_lengths():
    answer = compiler().ask({"text": ROWS, "binaries": [{"M": 8, "N": n} for n in LENGTHS]})
    assert answer["binaries"] <= 3


def test_the_count_of_binaries_sees_constants():
    shapes = [{"M": 8, "N": n} for n in (64, 128, 256, 512)]
    assert compiler().ask({"text": ROWS, "binaries": shapes})["binaries"] == 4
