"""Functions of generated kernels keep what they promise, on a dense grid with denormals and the ends."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("device_script.py")


@cache
def report(device: str) -> dict[str, object]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1" if device == "cpu" else "0"}
    arguments = [] if device == "cpu" else [device]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def found(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return report(request.param)


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("erf", 2), ("tanh", 2), ("one_plus_erf", 5), ("exp", 1), ("inverse", 1), ("div_fast", 2), ("round_even", 0),
        ("div_near", 0),
    ],
)  # fmt: skip
def test_errors_stay_within_what_is_promised(found, name, most):
    assert found[name] <= most


def test_small_quotients_are_near_or_0(found):
    assert found["div_fast is near or 0"]


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_odd_functions_are_odd_and_never_fall(found, name):
    assert found[f"{name} is odd"]
    assert found[f"{name} rises"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("erf", "0 -0 1 -1 nan"),
        ("tanh", "0 -0 1 -1 nan"),
        ("one_plus_erf", "1 1 2 0 nan"),
        ("exp", "1 1 inf 0 nan"),
        ("inverse", "inf -inf 0 -0 nan"),
        ("div_fast", "0 -0 inf -inf nan"),
        ("third", "0 -0 inf -inf nan"),
    ],
)
def test_zeros_infinities_and_nan(found, name, values):
    assert found[f"{name} at the ends"] == values.split()


def test_codes_round_once_saturate_and_take_nan_as_they_say(found):
    i8, f8 = found["codes"]
    assert i8 == [-128, -128, -2, -2, 0, 2, 126, 127, 127, 127, 127, -128, 0, 0, 3, 17]
    assert f8 == [-448, -128, -2.5, -1.5, 0.5, 1.5, 128, 128, 448, 448, 448, -448, -1e6, 0, 3, 16]
