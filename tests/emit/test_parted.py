"""Launches for parts of totals: how many a call makes, and what their programs take."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from checking import compiled, compiler

from opspec.emit.package import build_package
from opspec.frontend import load_text
from opspec.schedule.resources import Limits

BEHIND = """op f[N, G, C, S](x: bf16[N, S, C], w: f32[G]) -> y: bf16[N, S, C] {
  require G >= 1
  require C % G == 0
  let K = C // G
  kernel k {
    v[n, g, k, s] = x[n, s, g * K + k]  for g < G, k < K
    y[n, s, g * K + k] = layernorm[k, s](v[n, g, k, s], 1e-5) * w[g]  for g < G, k < K
  }
}
workload w for f { N = 8, G = 32, C = 320, S = 4096 }
"""
BEFORE = BEHIND.replace("[N, S, C]", "[N, C, S]").replace("n, s, g * K + k", "n, g * K + k, s")


def text_of(spec: str) -> str:
    return build_package(load_text(spec), "spec.op", Limits(shared_memory=232448)).files["kernel.py"]


def launches(spec: str, **dims: int) -> int:
    return compiler().ask({"text": spec, "binaries": [dims]})["binaries"]


@pytest.mark.parametrize(("points", "count"), [(1, 1), (16, 1), (500, 1), (600, 3), (4096, 3)])
def test_a_shape_that_a_program_holds_takes_one_launch(points: int, count: int):
    assert launches(BEHIND, S=points) == count


def test_columns_of_a_part_take_one_warp():
    text = text_of(BEHIND)
    own = text.partition("def _configure_f_k_parts(")[2].partition("\ndef ")[0]
    assert '"num_warps": 1,' in own
    assert "BLOCK_C = 64" in own
    # the text says how many rows it has, so that nothing else is ever chosen
    assert "_f_k_parts_streamed" not in text


def test_a_map_takes_columns_that_fit():
    own = text_of(BEHIND).partition("def _configure_f_k(")[2].partition("\ndef ")[0]
    assert "BLOCK_C = 64" in own  # of 320, 512 would leave 192 idle
    own = (
        text_of(BEHIND.replace("C = 320", "C = 512"))
        .partition("def _configure_f_k(")[2]
        .partition("\ndef ")[0]
    )
    assert "BLOCK_C = launch.bucket(C, 512, 1024)" in own


def test_kept_rows_are_loaded_once_and_stay_in_16_bits():
    text = text_of(BEFORE)
    kernel = text.partition("def _f_k_kept(")[2].partition("\n@triton")[0]
    assert len(re.findall(r"tl\.load\(", kernel)) == 2  # x once, and w
    assert kernel.count("= widened(x_rows[k])") == 2
    (row,) = compiled(BEFORE, {"N": 8, "G": 32, "C": 320, "S": 4096})["compiled"]
    assert row["registers"] <= 64  # two programs a multiprocessor
    pinned = version("triton").startswith("3.6.")
    assert row["spills"] <= (256 if pinned else 448)  # where a mask cuts them
