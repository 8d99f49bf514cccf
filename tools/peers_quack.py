"""Peers from QuACK (``pip install quack-kernels``), CuTe kernels for Hopper and later: ``--peer tools/peers_quack.py:NAME``.

By family:

- reduce: `softmax`
- norm: `rmsnorm`, `layernorm`, `layernorm_stats`, `add_rmsnorm`
- map: `rope`
- loss: `cross_entropy`
- gemm: `matmul`, `matmul_nt`, `matmul_tn`, `matmul_tt`, `batched_matmul`, `linear_gelu`, `gated_mlp`, `w4a16`,
  `w8a16`, and `matmul_tuned`, `linear_gelu_tuned`, `gated_mlp_tuned`, which try the library's tiles first, for minutes
- nn: `grouped_gemm`, `linear_cross_entropy`, `linear_cross_entropy_chunked`

Each is called like the op of its name; its docstring says what differs. The library is imported in the call, so that
one that is not installed is a row that says so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from opspec.runtime import bench

__distribution__ = "quack-kernels"
CHUNK = 4096  # rows whose logits are in memory at a time: the library's default


def softmax(x: Tensor) -> Tensor:
    """Long rows are spread over a cluster: x [M, N]."""
    from quack.softmax import softmax_fwd

    return softmax_fwd(x)


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As the op: x [M, N], weight [N]."""
    from quack.rmsnorm import rmsnorm_fwd

    return rmsnorm_fwd(x, weight, eps=eps)[0]


def add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """As the op: x and residual [M, N], weight [N]."""
    from quack.rmsnorm import rmsnorm_fwd

    y, h, _ = rmsnorm_fwd(x, weight, residual=residual, eps=eps)
    return h, y


def wide_weights(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor, float]:
    """Weight and bias in f32, as the library asks for."""
    return x, weight.float(), bias.float(), eps


@bench.prepared(wide_weights)
def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Takes weight and bias in f32: x [M, N], weight and bias [N]."""
    from quack.rmsnorm import layernorm_fwd

    return layernorm_fwd(x, weight, bias, eps)


@bench.prepared(wide_weights)
def layernorm_stats(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Takes weight and bias in f32: x [M, N], weight and bias [N]."""
    from quack.rmsnorm import layernorm_fwd

    y, rstd, mean = layernorm_fwd(x, weight, bias, eps, return_rstd=True, return_mean=True)
    return y, mean, rstd


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Called with tokens before heads, which strides say: x [B, H, T, D], cos and sin [T, D // 2]."""
    from quack.rotary import apply_rotary

    return apply_rotary(x.transpose(1, 2), cos, sin).transpose(1, 2)


def cross_entropy(x: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """As the op: x [M, V], label [M]."""
    from quack.cross_entropy import cross_entropy_fwd

    loss, lse = cross_entropy_fwd(x, label, ignore_index=ignore, return_lse=True)
    return loss, lse


def product(a: Tensor, b: Tensor, *, tuned: bool = False) -> Tensor:
    """The library's product of a [M, K] and b [K, N], both with a batch or without, each as its strides say."""
    from quack.gemm_interface import gemm

    return gemm(a, b, tuned=tuned)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """With the tile that the library takes untuned: a [M, K], b [K, N]."""
    return product(a, b)


def matmul_tuned(a: Tensor, b: Tensor) -> Tensor:
    """The first call tries all tiles of the library: a [M, K], b [K, N]."""
    return product(a, b, tuned=True)


def matmul_nt(a: Tensor, b: Tensor) -> Tensor:
    """With the tile that the library takes untuned: a [M, K], b [N, K]."""
    return product(a, b.T)


def matmul_tn(a: Tensor, b: Tensor) -> Tensor:
    """With the tile that the library takes untuned: a [K, M], b [K, N]."""
    return product(a.T, b)


def matmul_tt(a: Tensor, b: Tensor) -> Tensor:
    """With the tile that the library takes untuned: a [K, M], b [N, K]."""
    return product(a.T, b.T)


def batched_matmul(a: Tensor, b: Tensor) -> Tensor:
    """With the tile that the library takes untuned: a [B, M, K], b [B, K, N]."""
    return product(a, b)


def activated(x: Tensor, w: Tensor, bias: Tensor | None, activation: str, *, tuned: bool = False) -> Tensor:
    """The library's product with an activation in its epilogue: x [M, K], w [K, N], bias [N]."""
    from quack.gemm_interface import gemm_act

    made = gemm_act(x, w, bias=bias, activation=activation, store_preact=False, tuned=tuned)
    return made[1]


def linear_gelu(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """With an approximate tanh of the device: x [M, K], w [N, K], bias [N]."""
    return activated(x, w.T, bias, "gelu_tanh_approx")


def linear_gelu_tuned(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """The first call tries all tiles of the library: x [M, K], w [N, K], bias [N]."""
    return activated(x, w.T, bias, "gelu_tanh_approx", tuned=True)


def interleaved(x: Tensor, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Columns of both weights in turn in one matrix, as the library's gated epilogue asks for."""
    return x, torch.stack([w.T, v.T], dim=1).flatten(0, 1).T  # [K, 2 N], unit stride along K


@bench.prepared(interleaved)
def gated_mlp(x: Tensor, both: Tensor) -> Tensor:
    """One product of twice the width whose epilogue meets gate and value side by side: x [M, K], both [K, 2 N]."""
    return activated(x, both, None, "swiglu")


@bench.prepared(interleaved)
def gated_mlp_tuned(x: Tensor, both: Tensor) -> Tensor:
    """The first call tries all tiles of the library: x [M, K], both [K, 2 N]."""
    return activated(x, both, None, "swiglu", tuned=True)


def fragments_of_codes(
    x: Tensor, w: Tensor, scale: Tensor, zero: Tensor, S: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Codes in the order in which the matrix unit's registers hold them, scales and zero points in strips."""
    from quack.gemm_w4 import prepare_w4_weight

    if S != 128:
        raise ValueError(f"groups of {S}; the library has 128 with zero points")
    blob, strip = prepare_w4_weight(w ^ 0x88, (scale, zero.short() + 8), "int4awq")  # codes from 0 to 15
    return x, blob, strip


@bench.prepared(fragments_of_codes)
def w4a16(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
    """Takes packed weights, whose zero points it meant to be from 0 to 15: of ours, those of 121 and more are one off
    where they are odd: x [M, K], w and scale as packed."""
    from quack.gemm_w4 import gemm_w4a16

    return gemm_w4a16(x, w, scale, wformat="int4awq")


def fragments_of_bytes(x: Tensor, w: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights in the order in which the matrix unit's registers hold them."""
    from quack.gemm_w4 import prepare_w4_weight

    return x, prepare_w4_weight(w, None, "int8")[0], scale[None]


@bench.prepared(fragments_of_bytes)
def w8a16(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
    """Takes packed weights; the scale is an epilogue written here, which is what the library leaves to its caller:
    x [M, K], w as packed, scale [1, N]."""
    from quack.operand_transform.host import pick_w4_cfg

    M, N, K = x.shape[0], scale.shape[1], x.shape[1]
    tile_M, tile_N, split_k = pick_w4_cfg(M, N, K // 64, device=x.device)
    y = x.new_empty(M, N)
    sizes = {"tile_M": tile_M, "tile_N": tile_N, "tile_K": 64, "cluster_M": 1, "cluster_N": 1}
    scaled_columns().gemm(x, w, y, epi_args={"scale": scale}, transform_a="int8", split_k=split_k, **sizes)
    return y


def by_columns(acc: Any, scale: Any) -> dict[str, Any]:
    """A tile of sums, each column times its scale."""
    return {"D": acc * scale}


@cache
def scaled_columns() -> Any:
    """That as an epilogue of the library."""
    from quack.epilogue.frontend import gemm_epilogue
    from quack.epilogue.ops import RowVecLoad

    return gemm_epilogue(ops={"scale": RowVecLoad("scale")})(by_columns)


def grouped_gemm(x: Tensor, w: Tensor, offs: Tensor) -> Tensor:
    """As the op: x [N, K] sorted by expert, w [E, K, F], offs [E + 1]."""
    from quack.gemm_interface import gemm

    return gemm(x, w, cu_seqlens_m=offs, tuned=False)


def linear_cross_entropy(x: Tensor, w: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """No logits in memory: the epilogue of the product leaves a part of the lse for each tile, which are joined:
    x [M, K], w [V, K], label [M]."""
    from quack.epilogue.library import lse_target_epi

    found = lse_target_epi(x, w.T, store_d=False, target=label, tuned=False)
    return torch.where(label != ignore, found["lse"] - found["target_logit"], 0.0), found["lse"]


def linear_cross_entropy_chunked(x: Tensor, w: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """Logits of 4096 rows at a time go through memory, from cuBLAS to the library's loss, as its chunked layer has it:
    x [M, K], w [V, K], label [M]."""
    from quack.cross_entropy import cross_entropy_fwd_out

    rows = x.shape[0]
    loss, lse = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
    logits = x.new_empty(min(CHUNK, rows), w.shape[0])
    for begin in range(0, rows, CHUNK):
        part = slice(begin, min(begin + CHUNK, rows))
        z = torch.mm(x[part], w.T, out=logits[: part.stop - begin])
        cross_entropy_fwd_out(z, label[part], None, loss[part], lse[part], None, None, ignore)
    return loss, lse
