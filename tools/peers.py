"""Implementations of others to measure beside a generated operator: ``bench.py --peer tools/peers.py:NAME``.

Each is called like the op: cuDNN and flash attention through PyTorch, cuBLASLt's fused GELU, its f8 product with
and without fast accumulation, and one cuBLAS product an expert.
"""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel


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


def flash_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Causal attention and its lse, L = T."""
    g = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(g, 1) for x in (k, v)) if g > 1 else (k, v)
    out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)  # noqa: SLF001 - gives the lse
    return out[0], out[1]


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
