"""A streamed row whose domain is empty by data is empty; one that is all -inf is what IEEE makes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = '''
import sys, tempfile
from pathlib import Path
from opspec.driver.verify import load_module, prepare
prepare("cpu")
import torch
from opspec.driver.targets import limits
from opspec.emit.configure import SMALL
from opspec.emit.package import build_package
from opspec.frontend import load_text
text = """op masked[M, N](x: f32[M, N], v: f32[N], keep: bool[M, N]) -> o: f32[M], lse: f32[M] {
  kernel k {
    t[m, n] = x[m, n]  for keep[m, n]
    o[m] = sum[n](softmax[n](t[m, n]) * v[n])
    lse[m] = logsumexp[n](t[m, n])
  }
}
"""
files = build_package(load_text(text), "masked.op", limits(), SMALL).files
path = Path(tempfile.mkdtemp()) / "kernel.py"
path.write_text(files["kernel.py"])
kernels = load_module(path)
x = torch.zeros(3, 40)
x[2] = float("-inf")
keep = torch.ones(3, 40, dtype=torch.bool)
keep[1] = False
o, lse = kernels.masked(x, torch.ones(40), keep)
print(o.tolist(), [round(v, 4) for v in lse.tolist()])
'''


def test_empty_rows_and_rows_of_minus_infinity_in_a_stream():
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # row 0: the mean of ones, ln 40; row 1: nothing, so 0 and -inf; row 2: NaN, as exp(-inf - -inf) is
    assert done.stdout.strip() == "[1.0, 0.0, nan] [3.6889, -inf, nan]"
