"""The repaired interpreter agrees with torch; each process patches its own Triton."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("interpreter_script.py")


def run(how: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "0" if how == "device" else "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), how], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_repaired_kernels_agree_with_torch():
    lines = run("repaired").splitlines()
    assert lines[0].startswith("repaired: ")
    assert lines[1] == "again: "  # what is repaired shows no fault
    assert lines[2:] == []


def test_the_checks_find_what_the_probes_report():
    """Unrepaired, the same checks fail exactly where a fault was reported."""
    faults = run("repaired").splitlines()[0]
    wrong = run("unrepaired")
    for words, check in (
        ("f32 to bf16", "wrong: bf16 cast"),
        ("casts to fp8", "wrong: fp8e4nv cast"),
        ("tl.dot", "wrong: torch.bfloat16 dot"),
        ("tl.dot", "wrong: dot through descriptors"),
        ("arithmetic", "wrong: bf16 arithmetic"),
        ("scalar arguments", "wrong: scalar argument"),
        ("tl.maximum", "wrong: NaN in max and min"),
    ):
        assert (words in faults) == (check in wrong)


@pytest.mark.gpu
def test_what_is_called_right_is_what_a_gpu_does():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    assert run("device") == ""


def test_it_imports_nothing_of_the_compiler():
    code = (
        "import sys, opspec.runtime.interpreter; print(*(m for m in sys.modules if m.startswith('opspec.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert all(name.startswith("opspec.runtime") for name in done.stdout.split())
