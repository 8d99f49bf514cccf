"""The kernels behind the roofs: right under the interpreter, and compiled to machine code without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

RUN = """
import torch
from opspec.runtime.bench import streams as s
a, b, t = torch.randn(4096), torch.randn(4096), torch.zeros(4096)
s.empty_kernel[(1,)]()
s.copy_kernel[(4,)](a, t, BLOCK=1024); assert torch.equal(a, t)
s.mix_kernel[(4,)](a, b, t, BLOCK=1024); assert torch.equal(a + b, t)
s.write_kernel[(4,)](t, 3, BLOCK=1024); assert torch.equal(t[:1024], torch.arange(1024.0) + 3); assert (t > 0).all()
sums = torch.zeros(4)
s.read_kernel[(4,)](a, sums, BLOCK=1024); assert torch.allclose(sums, a.view(4, 1024).sum(1), atol=1e-3)
v = torch.rand(2048); w = v.clone()
s.exp_kernel[(2,)](v, REPEATS=3, BLOCK=1024); assert torch.allclose(v, torch.exp2(-torch.exp2(-torch.exp2(-w))))
print("right")
"""
COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from opspec.runtime.bench import streams as s
kernels = {
    s.empty_kernel: ({}, {}),
    s.read_kernel: ({"source": "*bf16", "sums": "*fp32"}, {"BLOCK": 4096}),
    s.write_kernel: ({"target": "*bf16", "value": "i32"}, {"BLOCK": 1024}),
    s.copy_kernel: ({"source": "*bf16", "target": "*bf16"}, {"BLOCK": 1024}),
    s.mix_kernel: ({"first": "*bf16", "second": "*bf16", "target": "*bf16"}, {"BLOCK": 1024}),
    s.exp_kernel: ({"values": "*fp32"}, {"REPEATS": 256, "BLOCK": 2048}),
}
for kernel, (types, constants) in kernels.items():
    signature = {**types, **{name: "constexpr" for name in constants}}
    attributes = {(kernel.arg_names.index(n),): [["tt.divisibility", 16]] for n, t in types.items() if t[0] == "*"}
    source = ASTSource(kernel, signature, constants, attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    ptx = compiled.asm["ptx"]
    print(kernel.__name__, "ld.global.v4" in ptx, "st.global.v4" in ptx, "ex2.approx" in ptx, ".local " in ptx)
"""


def run(code, **environment):
    env = {**{k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}, **environment}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_streams_do_what_they_say():
    assert run(RUN, TRITON_INTERPRET="1") == ["right"]


@pytest.mark.skipif(sys.platform != "linux", reason="Triton compiles on Linux")
def test_streams_compile_to_whole_vectors_without_spilling(tmp_path):
    rows = {line.split()[0]: line.split()[1:] for line in run(COMPILE, TRITON_CACHE_DIR=str(tmp_path))}
    assert rows["read_kernel"][0] == "True"
    assert rows["write_kernel"][1] == "True"
    assert rows["copy_kernel"][:2] == ["True", "True"]
    assert rows["mix_kernel"][:2] == ["True", "True"]
    assert rows["exp_kernel"][2] == "True"
    assert all(row[3] == "False" for row in rows.values())
    assert "empty_kernel" in rows
