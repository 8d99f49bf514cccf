"""Which tiles a launch of block products is offered, as its text says."""

from __future__ import annotations

import pytest

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load_text

PRODUCT = """op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] {{
  kernel k {{ c[m, n] = sum[k](a[m, k] * b[k, n]) }}
}}
workload w for f {{ M = 8192, N = {columns}, K = 4096 }}
"""
ADAPTED = """op f[M, N, K, R](x: bf16[M, K], w: bf16[K, N], t: bf16[M, R], b: bf16[R, N]) -> y: bf16[M, N] {
  kernel k { y[m, n] = sum[k](x[m, k] * w[k, n]) + 2 * sum[r](t[m, r] * b[r, n]) }
}
workload w for f { M = 8192, N = 4096, K = 4096, R = 16 }
"""
ROUTED = """op f[N, E, K, F](x: bf16[N, K], w: bf16[E, K, F], offs: i32[E + 1]) -> y: bf16[N, F] {
  kernel k { y[n, f] = sum[k](x[n, k] * w[e, k, f])  for n in offs[e]..offs[e + 1] }
}
workload w for f { N = 4096, E = 16, K = 1024, F = 1024 }
"""
FORM = """op f[M, O, I, J](x: bf16[M, I], w: bf16[O, I, J], z: bf16[M, J]) -> y: f32[M, O] {
  kernel k {
    t[m, o, j] = sum[i](x[m, i] * w[o, i, j])
    y[m, o] = sum[j](t[m, o, j] * z[m, j])
  }
}
workload w for f { M = 4096, O = 256, I = 256, J = 256 }
"""


def kernels(text: str) -> str:
    return build_package(load_text(text), "spec.op", limits()).files["kernel.py"]


@pytest.mark.parametrize(("columns", "offered"), [(16, True), (32, True), (64, False), (4096, False)])
def test_few_columns_take_tiles_of_many_rows(columns: int, offered: bool):
    text = kernels(PRODUCT.format(columns=columns))
    assert ("(64, 16, 128, 4, 4)," in text) is offered


def test_a_sum_that_begins_at_a_tile_takes_tiles_of_a_plain_product():
    text = kernels(ADAPTED)
    assert "if BLOCK_R <= 32 and" in text
    assert "launch.pick_tile(tiles, M, N)" in text
    assert "flatten=True" not in text  # its products would wait for one another there


def test_tiles_of_segments_are_counted_on_the_device():
    text = kernels(ROUTED)
    assert "e_ends = segment_tiles(offs_ptr, offs_stride_0, E, BLOCK_N, SEGMENTS)" in text
    assert "n = (n_first + tl.arange(0, BLOCK_N)).to(INDEX)" in text  # y may lie beyond 31 bits
    assert "if described and E <= 1024:" in text
    assert "launch.less_padded(tiles, F), triton.cdiv(N, max(E, 1)), F, E" in text


def test_rows_are_kept_on_a_walk_and_masks_only_where_a_tile_has_an_edge():
    text = kernels(FORM)
    assert "for o in tl.range(pid % walks, O, walks, flatten=True):" in text
    assert text.index("z = tl.load(z_at") < text.index("for o in tl.range")
    assert "tl.where(j[None, :] < J, t * z, 0.0) if EDGE_J else t * z" in text
    assert '"EDGE_J": int(J % options["BLOCK_J"] != 0)' in text
    assert 'launch.walks(triton.cdiv(M, options["BLOCK_M"]), O, options["num_warps"])' in text


def test_halves_of_a_tile_walk_fewer_rows_before_the_next_column():
    assert '"GROUP": 4 if num_warps == 4 else 8' in kernels(ROUTED)
    assert '"GROUP": 8' in kernels(ADAPTED)
