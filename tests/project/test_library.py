"""The shipped specs: each says what it is, at which sizes, and within which budget; the page lists them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from opspec.frontend import load
from tools import library

WORKLOADS = {
    # what is measured under these names: op -> sizes of one of its workloads
    "norm/rmsnorm": ("rmsnorm", {"M": 2048, "N": 8192}),
    "norm/layernorm": ("layernorm", {"M": 16384, "N": 4096}),
    "norm/rmsnorm_fp8": ("rmsnorm_fp8", {"M": 16384, "N": 4096}),
    "map/swiglu": ("swiglu", {"M": 16384, "N": 14336}),
    "map/gelu_bias": ("gelu_bias", {"M": 16384, "N": 11008}),
    "gemm/matmul": ("matmul", {"M": 4096, "N": 4096, "K": 14336}),
    "gemm/matmul_fp8": ("matmul_fp8", {"M": 8192, "N": 8192, "K": 8192}),
    "gemm/batched_matmul": ("batched_matmul", {"B": 64, "M": 1024, "N": 1024, "K": 1024}),
    "gemm/linear_gelu": ("linear_gelu", {"M": 8192, "N": 11008, "K": 4096}),
    "gemm/w8a16": ("w8a16", {"M": 16, "N": 14336, "K": 4096}),
    "attention/prefill": ("attention", {"B": 4, "Hq": 32, "Hkv": 8, "L": 4096, "T": 4096, "D": 128}),
    "attention/decode": ("decode_attention", {"B": 8, "H": 32, "T": 8192, "D": 128}),
    "world_model/latent_block": ("latent_block", {"B": 16, "L": 768, "H": 16, "D": 64}),
}


def test_the_page_is_what_the_specs_say():
    assert library.page() == library.PAGE.read_text(encoding="utf-8"), "run `python -m tools.library`"


@pytest.mark.parametrize("path", library.specs(), ids=lambda p: p.stem)
def test_a_spec_says_what_it_is_and_keeps_a_budget(path: Path):
    module = load(path)
    assert module.doc
    assert module.ops
    kept = {e.workload for e in module.expectations}
    for op in module.ops:
        workloads = module.workloads_of(op.name)
        assert workloads, f"{op.name} has no workload"
        assert {w.name for w in workloads} & kept, f"{op.name} has no budget"


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_is_measured_has_a_workload(name: str):
    op, sizes = WORKLOADS[name]
    module = load(library.ROOT / "specs" / f"{name}.op")
    found = [dict(dims) for w in module.workloads_of(op) for _, dims in w.cases]
    assert any(sizes.items() <= dims.items() for dims in found)
