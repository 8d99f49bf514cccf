"""Peers that PyTorch has as one operation, where a driver's formula takes several: ``--peer tools/peers_aten.py:NAME``.

By family:

- reduce: `softmax`, `log_softmax`, `logsumexp`
- norm: `rmsnorm`, `layernorm`, `layernorm_stats`, `group_norm_silu_nchw`
- map: `swiglu`, `gelu_bias`, `gelu_tanh_bias`, `embedding`
- loss: `cross_entropy`, `label_smoothing`, `kl_div`
- conv: `causal_conv1d`
- scan: `argmax_rows`, `top_one`, `cumulative_sum`
- nn: `grouped_gemm`, `linear_cross_entropy`

Each is called like the op of its name; its docstring says what differs. What goes to cuBLAS, cuDNN or a library of
attention is in ``tools/peers.py``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from opspec.runtime import bench

__distribution__ = "torch"
CHUNK = 4096  # rows whose logits are in memory at a time


def softmax(x: Tensor) -> Tensor:
    """As the op: x [M, N]."""
    return torch.softmax(x, -1)


def log_softmax(x: Tensor) -> Tensor:
    """As the op: x [M, N]."""
    return torch.log_softmax(x, -1)


def logsumexp(x: Tensor) -> Tensor:
    """Rounds to the type of x, and is several launches: x [M, N]."""
    return torch.logsumexp(x, -1)


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As the op: x [M, N], weight [N]."""
    return F.rms_norm(x, weight.shape, weight, eps)


def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Stores mean and 1 / deviation of each row too: x [M, N], weight and bias [N]."""
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def layernorm_stats(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """As the op: x [M, N], weight and bias [N]."""
    y, mean, rstd = torch.native_layer_norm(x, weight.shape, weight, bias, eps)
    return y, mean[:, 0].float(), rstd[:, 0].float()


def group_norm_silu_nchw(x: Tensor, weight: Tensor, bias: Tensor, eps: float, G: int) -> Tensor:
    """SiLU is a second launch: x [N, C, S], weight and bias [C]."""
    return F.silu(F.group_norm(x, G, weight, bias, eps), inplace=True)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Rounds the SiLU and stores it: gate and up [M, N]."""
    return F.silu(gate) * up


def gelu_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Rounds the sum and stores it: x [M, N], bias [N]."""
    return F.gelu(x + bias)


def gelu_tanh_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Rounds the sum and stores it: x [M, N], bias [N]."""
    return F.gelu(x + bias, approximate="tanh")


def embedding(token: Tensor, table: Tensor, scale: float) -> Tensor:
    """A scale other than 1 is a second launch: token [M], table [V, D]."""
    y = F.embedding(token, table)
    return y if scale == 1.0 else y * scale


def cross_entropy(x: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """Stores the log-softmax of all logits in their type, and rounds the loss; the lse is put together from it, by a
    gather of M numbers: x [M, V], label [M]."""
    loss = F.cross_entropy(x, label, ignore_index=ignore, reduction="none")
    return loss, loss + x.gather(1, label[:, None])[:, 0]


def label_smoothing(x: Tensor, label: Tensor, smoothing: float, ignore: int) -> Tensor:
    """Stores the log-softmax of all logits in their type, and rounds the loss: x [M, V], label [M]."""
    return F.cross_entropy(x, label, ignore_index=ignore, reduction="none", label_smoothing=smoothing)


def kl_div(p: Tensor, q: Tensor) -> Tensor:
    """Stores the log-softmax of both and every term in their type: p and q [M, V]."""
    a, b = torch.log_softmax(p, -1), torch.log_softmax(q, -1)
    return F.kl_div(b, a, reduction="none", log_target=True).sum(-1)


def channels_of_taps(x: Tensor, w: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Time last in memory, and the taps of a channel beside one another, as its depthwise convolution asks for."""
    return x.transpose(1, 2).contiguous(), w.T.contiguous()[:, None], bias


@bench.prepared(channels_of_taps)
def causal_conv1d(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """Takes time last in memory; SiLU is a second launch: x [B, C, T], w [C, 1, K], bias [C]."""
    channels, _, taps = w.shape
    y = F.conv1d(x, w, bias, padding=taps - 1, groups=channels)[..., : x.shape[-1]]
    return F.silu(y).transpose(1, 2)


def argmax_rows(x: Tensor) -> Tensor:
    """As the op: x [M, N]."""
    return torch.argmax(x, -1)


def top_one(x: Tensor) -> tuple[Tensor, Tensor]:
    """As the op: x [M, N]."""
    value, at = torch.max(x, -1)
    return value, at


def cumulative_sum(x: Tensor) -> Tensor:
    """As the op: x [M, N]."""
    return torch.cumsum(x, -1)


def grouped_gemm(x: Tensor, w: Tensor, offs: Tensor) -> Tensor:
    """A CUTLASS product that reads where experts end on the device: x [N, K] sorted by expert, w [E, K, F],
    offs [E + 1]."""
    return torch._grouped_mm(x, w, offs=offs[1:])  # noqa: SLF001 - the only way in


def linear_cross_entropy(x: Tensor, w: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """Logits of 4096 rows at a time go through memory in the type of x: x [M, K], w [V, K], label [M]."""
    losses, lses = [], []
    for begin in range(0, x.shape[0], CHUNK):
        part = slice(begin, begin + CHUNK)
        loss, lse = cross_entropy(torch.mm(x[part], w.T), label[part], ignore)
        losses.append(loss)
        lses.append(lse)
    return torch.cat(losses), torch.cat(lses)
