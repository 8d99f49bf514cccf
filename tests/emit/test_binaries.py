"""How many binaries calls of many shapes need: the table of ``docs/pytorch.md``, and ops of one statement."""

from __future__ import annotations

import re
from typing import Any

import pytest
from checking import ROOT, compiler

from opspec.frontend import load

PAGE = ROOT / "docs" / "pytorch.md"
ROW = re.compile(r"^\| `(\w+)` of `([\w/]+)` \| `(\w+)` \| (\d+) \| (\d+) \|", re.MULTILINE)
TABLE = ROW.findall(PAGE.read_text(encoding="utf-8"))

# what the page calls these lengths: 1, powers of two, other multiples of 16, others
LENGTHS = [
    1, 3, 8, 16, 17, 32, 48, 64, 100, 127, 128, 200, 255, 256, 500, 512, 777, 1000, 1024, 1500, 1536, 2000, 2048, 3000,
    4095, 4096, 4100, 8192, 10000, 11008, 12001, 16384, 20000, 32768, 40001, 50257, 65536,
]  # fmt: skip
FEW = [1, 3, 8, 16, 32, 48]
MANY = [*FEW, 64, 100, 500, 512, 4096, 4100, 20000, 65536, 100001]

VECTOR = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[n] = 2 * x[n] } }\n"
MAP = "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = 2 * x[m, n] } }\n"
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


def asked(request: dict[str, Any]) -> int:
    answer = compiler().ask(request)
    assert "broken" not in answer, answer.get("broken")
    return int(answer["binaries"])


def test_the_page_has_its_table():
    assert len(TABLE) > 20
    assert {(op, dim) for op, _, dim, _, _ in TABLE} >= {
        ("matmul", "M"), ("matmul", "N"), ("matmul", "K"), ("softmax", "N"), ("rmsnorm", "M"), ("attention", "L"),
        ("decode_attention", "T"), ("causal_conv1d", "T"),
    }  # fmt: skip


@pytest.mark.parametrize("op, spec, dim, least, most", TABLE)
def test_a_varying_length_takes_what_the_page_says(op: str, spec: str, dim: str, least: str, most: str):
    lengths = [{dim: n} for n in LENGTHS if n >= int(least)]
    assert asked({"spec": spec, "op": op, "binaries": lengths}) == int(most)


@pytest.mark.parametrize(
    "text, axis, most",
    [
        (VECTOR, "N", 3),
        (MAP, "M", 3),
        (ROWS, "M", 3),
        (DECODE, "T", 3),
        (DECODE, "B", 3),
        (PREFILL, "T", 3),
        (PREFILL, "L", 5),
        (PREFILL, "B", 4),
        (PRODUCT, "M", 5),
        (PRODUCT, "K", 3),
    ],
    ids=[
        "vector",
        "rows of a map",
        "rows of a reduction",
        "keys",
        "batch",
        "keys of a prefill",
        "queries of a prefill: three tiles and parts of them",
        "batch of a prefill",
        "rows of a product: three tiles and parts of them",
        "depth of a product",
    ],
)
def test_a_varying_length_needs_few_binaries(text: str, axis: str, most: int):
    fixed = {"B": 8, "H": 16, "L": 2048, "T": 512, "D": 128, "M": 4096, "N": 256, "K": 4096}
    fixed |= {"N": 4096} if text == PRODUCT else {}
    assert asked({"text": text, "binaries": [fixed | {axis: n} for n in MANY]}) <= most


def test_a_row_along_memory_needs_few_binaries_for_small_lengths():
    assert asked({"text": ROWS, "binaries": [{"M": 8, "N": n} for n in FEW]}) <= 3


def rows_along_memory() -> list[tuple[str, str, str]]:
    """The shipped ops one of whose kernels takes rows of any length: spec, op, and the dim along memory."""
    found = []
    for path in sorted((ROOT / "specs").rglob("*.op")):
        spec = path.relative_to(ROOT / "specs").with_suffix("").as_posix()
        module = load(path)
        text = (ROOT / "generated" / spec / "kernel.py").read_text(encoding="utf-8")
        for op in module.ops:
            along = {d for t in op.tensors if len(t.extents) > 1 for d in t.extents[-1].dims()}
            dim = next((d for d in ("N", "V") if d in along), None)
            if dim is not None and re.search(
                rf"^def _{op.name}_(?!_)\w+\([^)]*\bFIRST: ", text, re.MULTILINE
            ):
                found.append((spec, op.name, dim))
    return found


def tile_of(length: int) -> int:
    return max(64, 1 << (length - 1).bit_length())


SEVERAL = {"softmax", "log_softmax", "scaled_softmax", "cumulative_sum"}


def stated_tiles(spec: str, op: str, dim: str) -> set[int]:
    """The tiles of lengths that workloads state, beyond what a program holds whole for streams of several sweeps."""
    module = load(ROOT / "specs" / f"{spec}.op")
    tiles = {tile_of(dict(w.cases[0][1])[dim]) for w in module.workloads_of(op) if len(w.cases) == 1}
    return {t for t in tiles if t <= 16384 or op in SEVERAL}


ROW_OPS = rows_along_memory()
WIDE = {"argmax_rows", "top_one", "logsumexp", "cross_entropy", "label_smoothing", "linear_cross_entropy"}
FILLED = {"softmax", "scaled_softmax"}


def test_the_shipped_row_kernels_are_among_those_counted():
    assert {op for _, op, _ in ROW_OPS} >= {
        "softmax", "log_softmax", "logsumexp", "scaled_softmax", "rmsnorm", "layernorm", "layernorm_stats",
        "add_rmsnorm", "rmsnorm_fp8", "int8_per_token", "cross_entropy", "kl_div", "argmax_rows", "top_one",
        "cumulative_sum",
    }  # fmt: skip


@pytest.mark.parametrize("spec, op, dim", ROW_OPS, ids=[op for _, op, _ in ROW_OPS])
def test_rows_of_any_length_take_three_binaries(spec: str, op: str, dim: str):
    beside = {"scaled_softmax": 1}.get(op, 0)  # a map behind it, of which rows of length 1 are a third
    own = stated_tiles(spec, op, dim)
    others = [n for n in LENGTHS if n % 16 or tile_of(n) not in own]
    wide = op in WIDE  # odd rows beyond tiles are not with those of tiles
    filled = op in FILLED  # the longest tile is for rows that fill it
    for lengths, most in (
        (LENGTHS, 3 + len(own) + wide + filled),
        (others, 3 + wide),  # none of a tile that a workload states
        ([n for n in LENGTHS if n % 16], 1 + wide),
    ):
        found = asked({"spec": spec, "op": op, "binaries": [{dim: n} for n in lengths]})
        assert found <= most + (3 if most > 1 else 2) * beside


def test_a_row_whose_length_a_workload_varies_needs_no_more():
    text = ROWS + "workload chat for f { M = 8192, N ~ {512: 0.3, 700: 0.2, 2048: 0.5} }\n"
    assert asked({"text": text, "binaries": [{"N": n} for n in LENGTHS]}) == 3


def test_the_count_of_binaries_sees_constants():
    shapes = [{"C": c} for c in (64, 128, 256, 512)]
    assert asked({"spec": "conv/causal_conv1d", "op": "causal_conv1d", "binaries": shapes}) == 4


def test_variants_with_descriptors_get_what_each_takes():
    """A low rank that is held whole, and a high one that streams: kernels with and without an index type."""
    text = (ROOT / "specs" / "gemm" / "lora.op").read_text(encoding="utf-8")
    assert asked({"text": text, "binaries": [{"R": r} for r in (16, 64, 512, 1024)]}) > 4
