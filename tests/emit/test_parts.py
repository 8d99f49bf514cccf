"""Products with one column: which of them each warp takes a part of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load

HEAD = "op f[M, N, K](x: {x}[M, K], w: {w}[N, K], v: {x}[M, K], s: f32[N]){out} {{\n  kernel k {{\n    {body}\n  }}\n}}\n"
SUM = "y[m, n] = sum[k](x[m, k] * w[n, k]) * s[n]"
Y = " -> y: f32[M, N]"


def printed(folder: Path, body: str = SUM, *, x: str = "bf16", w: str = "i8", out: str = Y) -> str:
    path = folder / "spec.op"
    path.write_text(HEAD.format(x=x, w=w, out=out, body=body), encoding="utf-8")
    return build_package(load(path), "spec.op", limits()).files["kernel.py"]


@pytest.mark.parametrize(
    ("w", "tile"), [("i8", "ONE_COLUMN"), ("f8e4m3", "ONE_COLUMN"), ("i4", "ONE_COLUMN_PACKED")]
)
@pytest.mark.parametrize("x", ["bf16", "f16"])
def test_rows_that_are_widened_in_registers_may_go_in_parts(x: str, w: str, tile: str, tmp_path: Path):
    text = printed(tmp_path, x=x, w=w)
    assert "parts = launch.PARTS if described and M == 1 else 1" in text
    assert re.search(rf"BLOCK_N, BLOCK_M, BLOCK_K, num_warps, num_stages = launch\.{tile}\n", text)
    assert 'options["BLOCK_K"] *= parts' in text
    assert "zeros_parts(BLOCK_N, BLOCK_M, PARTS)" in text
    assert "dot_parts(" in text
    assert "sum_parts(y_sum, PARTS)" in text


def test_those_that_are_not_stay_whole(tmp_path: Path):
    assert "PARTS" not in printed(tmp_path, w="bf16")


def test_a_second_product_of_the_program_keeps_them_whole(tmp_path: Path):
    body = f"{SUM}\n    t[m, n] = sum[k](v[m, k] * w[n, k])"
    assert "PARTS" not in printed(tmp_path, body, out=f"{Y}, t: f32[M, N]")


def test_the_places_of_what_lies_beside_words_are_in_their_order(tmp_path: Path):
    text = printed(tmp_path, w="i4")
    assert "unpacked_words(w_desc.load([n_first, k_start // 8]), tl.bfloat16, PARTS)" in text
    assert "mixed(x_desc.load([m_first, k_start]).T, 0, PARTS)" in text
