"""Implementations of others to measure beside a generated operator: ``bench.py --peer tools/peers.py:NAME``.

Each is called like the op, what vendors ship through PyTorch. By family:

- attention: `cudnn_decode`, `cudnn_decode_gqa`, `cudnn_attention`, `cudnn_attention_lse`, `cudnn_causal`, `flash_causal`,
  `flash_window`
- gemm: `cublas_matmul`, `cublas_matmul_nt`, `cublas_matmul_tn`, `cublas_matmul_tt`, `cublas_batched_matmul`, `cublas_lora`,
  `cublas_gated_mlp`, `cublaslt_gelu`, `scaled_mm`, `scaled_mm_f32`, `scaled_mm_block`, `int8pack_mm`, `int4pack_mm`
- nn: `cublas_experts`; world model: `cudnn_latent_block`

What PyTorch has as one operation of its own is in ``tools/peers_aten.py``; libraries to install have files of theirs:
``tools/peers_liger.py``, ``tools/peers_quack.py``, ``tools/peers_fla.py``.
"""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

from opspec.runtime import bench

__distribution__ = "torch"


def cudnn_decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """One query of each head over its cache: q [B, H, D], k and v [B, H, T, D]."""
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q[:, :, None], k, v)[:, :, 0]


def cudnn_decode_gqa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """G queries over a shared cache: q [B, H, G, D], k and v [B, H, T, D]."""
    B, H, G, D = q.shape
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q.reshape(B, H * G, 1, D), k, v, enable_gqa=True).view(
            B, H, G, D
        )


def cudnn_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Every query sees every key: q [B, Hq, L, D], k and v [B, Hkv, T, D]."""
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


@torch.compile  # type: ignore[untyped-decorator]
def projected(x: torch.Tensor, *weights: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Products of x [B, L, C] and each of the weights [C, H, D]: [B, H, L, D]."""
    return tuple((x @ w.flatten(1)).unflatten(-1, w.shape[1:]).transpose(1, 2) for w in weights)


@torch.compile  # type: ignore[untyped-decorator]
def joined(o: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The product of o [B, H, L, D] and a weight [H, D, C]: [B, L, C]."""
    return o.transpose(1, 2).flatten(2) @ weight.flatten(0, 1)


def cudnn_latent_block(
    x: torch.Tensor, wq: torch.Tensor, wk: torch.Tensor, wv: torch.Tensor, wo: torch.Tensor
) -> torch.Tensor:
    """Compiled projections around cuDNN's attention: x [B, L, C], wq, wk, wv [C, H, D], wo [H, D, C]."""
    q, k, v = projected(x, wq, wk, wv)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return joined(F.scaled_dot_product_attention(q, k, v), wo)


def cudnn_attention_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Every query sees every key, and its lse: q [B, Hq, L, D], k and v [B, Hkv, T, D]."""
    return cudnn_with_lse(q, k, v, causal=False)


def cudnn_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Causal attention and its lse, L = T: q [B, Hq, L, D], k and v [B, Hkv, T, D]."""
    return cudnn_with_lse(q, k, v, causal=True)


def cudnn_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result and its lse [B, Hq, L]; the call below is what the public one makes."""
    out = torch.ops.aten._scaled_dot_product_cudnn_attention(  # noqa: SLF001 - gives the lse
        q, k, v, None, True, 0.0, causal
    )
    return out[0], out[1].view(q.shape[:3])


def flash_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Causal attention and its lse, L = T."""
    g = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(g, 1) for x in (k, v)) if g > 1 else (k, v)
    out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)  # noqa: SLF001 - gives the lse
    return out[0], out[1]


def flash_window(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, W: int) -> torch.Tensor:
    """Each query sees the W latest keys; called with tokens before heads, which strides say: q [B, H, L, D]."""
    out = torch.ops.aten._flash_attention_forward(  # noqa: SLF001 - takes a window
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, None, q.shape[2], k.shape[2], 0.0, True, False,
        window_size_left=W - 1, window_size_right=0,
    )  # fmt: skip
    return out[0].transpose(1, 2)


def cublas_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As the op: a [M, K], b [K, N]."""
    return torch.mm(a, b)


def cublas_matmul_nt(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As the op: a [M, K], b [N, K]."""
    return torch.mm(a, b.T)


def cublas_matmul_tn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As the op: a [K, M], b [K, N]."""
    return torch.mm(a.T, b)


def cublas_matmul_tt(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As the op: a [K, M], b [N, K]."""
    return torch.mm(a.T, b.T)


def cublas_batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As the op: a [B, M, K], b [B, K, N]."""
    return torch.bmm(a, b)


def cublas_lora(
    x: torch.Tensor, w: torch.Tensor, a: torch.Tensor, b: torch.Tensor, alpha: float
) -> torch.Tensor:
    """Three products, the last of which adds to the first as rounded: x [M, K], w [K, N], a [K, R], b [R, N]."""
    return torch.mm(x, w).addmm_(torch.mm(x, a), b, alpha=alpha)


def cublas_gated_mlp(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Two products and two launches for the gate, each rounded: x [M, K], w and v [K, N]."""
    return F.silu(torch.mm(x, w), inplace=True).mul_(torch.mm(x, v))


def cublaslt_gelu(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gelu_tanh(x wᵀ + bias) in one call: x [M, K], w [N, K], bias [N]."""
    return torch._addmm_activation(bias, x, w.T, use_gelu=True)  # noqa: SLF001 - the only way in


def scaled_mm(a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor) -> torch.Tensor:
    """Row-scaled product in f8 with fast accumulation: a [M, K], b [N, K]."""
    return torch._scaled_mm(  # noqa: SLF001 - the only way in
        a, b.T, a_scale[:, None], b_scale[None, :], out_dtype=torch.bfloat16, use_fast_accum=True
    )


def scaled_mm_f32(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor
) -> torch.Tensor:
    """Row-scaled product in f8 whose sums leave the matrix unit for f32 on the way: a [M, K], b [N, K]."""
    return torch._scaled_mm(  # noqa: SLF001 - the only way in
        a, b.T, a_scale[:, None], b_scale[None, :], out_dtype=torch.bfloat16, use_fast_accum=False
    )


def scales_of_columns(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor, S: int
) -> tuple[torch.Tensor, ...]:
    """The scales of `a` with rows beside one another, as cuBLASLt asks for."""
    if S != 128:
        raise ValueError(f"blocks of {S}; cuBLASLt has 128")
    return a, a_scale.T.contiguous().T, b.T, b_scale.T


@bench.prepared(scales_of_columns)
def scaled_mm_block(
    a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor
) -> torch.Tensor:
    """Scales per 128 elements of a row of `a`, [M, K / 128] with unit stride along M, and per block of `b` [K, N]."""
    return torch._scaled_mm(a, b, a_scale, b_scale, out_dtype=torch.bfloat16)  # noqa: SLF001 - the only way in


def scales_in_type(
    x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The scales in the type of x, as the operation asks for."""
    return x, w, scale.to(x.dtype)


@bench.prepared(scales_in_type)
def int8pack_mm(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Takes scales in the type of x: x [M, K], w [N, K], scale [N]."""
    return torch._weight_int8pack_mm(x, w, scale)  # noqa: SLF001 - the only way in


def packed_codes(
    x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, S: int
) -> tuple[torch.Tensor, torch.Tensor, int, torch.Tensor]:
    """Codes packed for the matrix unit, and scales beside the values of their zero points, as a load of a model has
    it done once: (code - zero) scale is taken as code * scale - zero scale, the last rounded to bf16."""
    codes = (w & 15) << 4 | (w >> 4) & 15  # the first of two in the high half
    packed = torch._convert_weight_to_int4pack(codes ^ 0x88, 8)  # noqa: SLF001 - codes from 0 to 15, about 8
    pairs = torch.stack([scale, -(zero.float() * scale.float()).to(scale.dtype)], -1)
    return x, packed, S, pairs.transpose(0, 1).contiguous()


@bench.prepared(packed_codes)
def int4pack_mm(x: torch.Tensor, w: torch.Tensor, group: int, pairs: torch.Tensor) -> torch.Tensor:
    """Takes packed weights, and values of zero points: x [M, K], w as packed, pairs [K / group, N, 2]."""
    return torch._weight_int4pack_mm(x, w, group, pairs)  # noqa: SLF001 - the only way in


def cublas_experts(x: torch.Tensor, w: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """One product an expert: x [N, K] sorted by expert, w [E, K, F], offs [E + 1], which the host reads once."""
    key = offs.data_ptr()
    if key not in _ENDS:
        _ENDS[key] = offs.tolist()
    ends = _ENDS[key]
    y = x.new_empty(x.shape[0], w.shape[2])
    for e, (begin, end) in enumerate(itertools.pairwise(ends)):
        torch.mm(x[begin:end], w[e], out=y[begin:end])
    return y


_ENDS: dict[int, list[int]] = {}
