"""Peers from Liger-Kernel (``pip install liger-kernel``), kernels for training: ``--peer tools/peers_liger.py:NAME``.

Forward passes only, as the library runs them where no gradient is asked for; in Triton, `*_cute` in the CuTe DSL
(``pip install "liger-kernel[cutedsl]"``). By family:

- reduce: `softmax`
- norm: `rmsnorm`, `layernorm`, `layernorm_stats`, `add_rmsnorm`, `group_norm_silu_nchw`
- map: `rope`, `swiglu`, `swiglu_packed`, `swiglu_cute`, `embedding`
- loss: `cross_entropy`, `label_smoothing`, `kl_div`
- nn: `linear_cross_entropy`, `linear_cross_entropy_cute`

Each is called like the op of its name; its docstring says what differs. The library is imported in the call, so that
one that is not installed is a row that says so.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opspec.runtime import bench

__distribution__ = "liger-kernel"


def softmax(x: Tensor) -> Tensor:
    """A whole row in registers, up to 65536 elements: x [M, N]."""
    from liger_kernel.ops.softmax import _softmax_forward

    return _softmax_forward(x)[0]


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Rounds the normed row to its type before the weight, as Llama does, and stores 1 / rms: x [M, N], weight [N]."""
    from liger_kernel.ops.rms_norm import rms_norm_forward

    return rms_norm_forward(x, weight, eps, 0.0, "llama", None)[0]


def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Stores mean and 1 / deviation of each row too: x [M, N], weight and bias [N]."""
    from liger_kernel.ops.layer_norm import layer_norm_forward

    return layer_norm_forward(x, weight, bias, eps)[0]


def layernorm_stats(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """With the statistics as results: x [M, N], weight and bias [N]."""
    from liger_kernel.ops.layer_norm import layer_norm_forward

    y, _, mean, rstd, *_ = layer_norm_forward(x, weight, bias, eps)
    return y, mean, rstd


def add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Norms the sum after it is rounded, and rounds before the weight: x and residual [M, N], weight [N]."""
    from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_forward

    y, h, *_ = fused_add_rms_norm_forward(x, residual, weight, eps, 0.0, "llama")
    return h, y


def group_norm_silu_nchw(x: Tensor, weight: Tensor, bias: Tensor, eps: float, G: int) -> Tensor:
    """The norm is the library's, SiLU a second launch of PyTorch's: x [N, C, S], weight and bias [C]."""
    from liger_kernel.ops.group_norm import group_norm_forward

    return F.silu(group_norm_forward(x, x.shape[1], G, weight, bias, eps)[0], inplace=True)


def tokens_first(x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """X copied with tokens before heads, [B, T, H, D] in memory, and an empty head of keys."""
    B, _, T, D = x.shape
    moved = x.transpose(1, 2).contiguous().transpose(1, 2)
    return moved, x.new_zeros(B, T, 1, D).transpose(1, 2), cos[None], sin[None]


@bench.prepared(tokens_first)
def rope(x: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates in place, and one head of keys besides, with tokens before heads in memory: x [B, H, T, D]."""
    from liger_kernel.ops.rope import rope_forward

    return rope_forward(x, k, cos, sin, rotary_dim=x.shape[-1])[0]


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Rounds the SiLU to its type before the product: gate and up [M, N]."""
    from liger_kernel.ops.swiglu import swiglu_forward

    return swiglu_forward(gate, up)[2]


def swiglu_packed(x: Tensor) -> Tensor:
    """Both halves of a row from one tensor: x [M, 2 N]."""
    from liger_kernel.ops.swiglu import swiglu_fused_gate_up_forward

    return swiglu_fused_gate_up_forward(x)[1]


def swiglu_cute(gate: Tensor, up: Tensor) -> Tensor:
    """The library's kernel in the CuTe DSL: gate and up [M, N]."""
    from liger_kernel.ops.cutedsl.ops.swiglu import swiglu_forward

    return swiglu_forward(gate, up)[2]


def embedding(token: Tensor, table: Tensor, scale: float) -> Tensor:
    """Rows alone; a scale other than 1 is a second launch: token [M], table [V, D]."""
    from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

    y = LigerEmbeddingFunction.apply(table, token)
    return y if scale == 1.0 else y * scale


def losses(x: Tensor, label: Tensor, smoothing: float, ignore: int) -> Tensor:
    """Losses of rows in the type of the logits. It asks the device for counts and waits, and writes zeros over the
    logits of ignored rows, of which the inputs of a driver have none."""
    from liger_kernel.ops.cross_entropy import cross_entropy_forward

    return cross_entropy_forward(x, label, None, ignore, 0.0, smoothing, "none", None, False)[0]


def cross_entropy(x: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """The host waits for the device inside; the lse is put together from the loss, by a gather of M numbers:
    x [M, V], label [M]."""
    loss = losses(x, label, 0.0, ignore)
    return loss, loss + x.gather(1, label[:, None])[:, 0]


def label_smoothing(x: Tensor, label: Tensor, smoothing: float, ignore: int) -> Tensor:
    """The host waits for the device inside: x [M, V], label [M]."""
    return losses(x, label, smoothing, ignore)


def kl_div(p: Tensor, q: Tensor) -> Tensor:
    """Takes log-probabilities, which PyTorch makes of both logits first and stores in f32: p and q [M, V].

    The library adds the rows up; here its kernel alone is launched, which leaves one number a row.
    """
    import triton
    from liger_kernel.ops import kl_div as library

    rows, columns = p.shape
    a, b = (torch.log_softmax(z, -1, dtype=torch.float32) for z in (p, q))
    kl = torch.empty(rows, dtype=torch.float32, device=p.device)
    block = min(library.MAX_FUSED_SIZE, triton.next_power_of_2(columns))
    library._kldiv_kernel_forward[(rows,)](  # noqa: SLF001 - the function around it sums over rows
        b, b.stride(0), a, a.stride(0), kl, 1, columns, eps=1e-10, BLOCK_SIZE=block, log_target=True,
        reduction=library._REDUCTION_MODE_SUM.value, num_warps=library.get_num_warps(block),  # noqa: SLF001
    )  # fmt: skip
    return kl


def linear_cross_entropy(x: Tensor, w: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """Logits of a few rows at a time go through memory; the lse is put together from the loss and the logit of the
    label, a product of M rows: x [M, K], w [V, K], label [M]."""
    from liger_kernel.ops.fused_linear_cross_entropy import fused_linear_cross_entropy_forward

    with torch.no_grad():
        loss = fused_linear_cross_entropy_forward(x, w, label, ignore_index=ignore, reduction="none")[0]
        picked = torch.linalg.vecdot(x, w[label]).float()
    return loss, loss + picked


def linear_cross_entropy_cute(x: Tensor, w: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """The library's kernel in the CuTe DSL, for Hopper and bf16, with no logits in memory. The host waits for a check of
    the labels inside: x [M, K], w [V, K], label [M]."""
    from liger_kernel.ops.cutedsl.ops.fused_scaled_cross_entropy_sm90 import (
        fused_scaled_cross_entropy_forward,
    )

    loss, _, lse, *_ = fused_scaled_cross_entropy_forward(x, w, label, ignore_index=ignore)
    return loss, lse
