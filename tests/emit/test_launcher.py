"""Generated functions in PyTorch's hands; see ``launcher_cases``."""

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
