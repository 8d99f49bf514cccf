"""Peers from flash-linear-attention (``pip install fla-core``), Triton kernels: ``--peer tools/peers_fla.py:NAME``.

By family:

- reduce: `softmax`, `logsumexp`
- norm: `rmsnorm`, `layernorm`, `layernorm_stats`, `add_rmsnorm`
- map: `rope`, `swiglu`
- loss: `cross_entropy`, `label_smoothing`
- conv: `causal_conv1d`
- scan: `cumulative_sum`, `decayed_scan`, `decayed_scan_recurrent`
- nn: `linear_attention`

Each is called like the op of its name; its docstring says what differs. The library is imported in the call, so that
one that is not installed is a row that says so. Its kernels tune themselves in the first call.
"""

from __future__ import annotations

from torch import Tensor

from opspec.runtime import bench

__distribution__ = "fla-core"


def softmax(x: Tensor) -> Tensor:
    """A whole row in registers: x [M, N]."""
    from fla.ops.utils.softmax import softmax_fwd

    return softmax_fwd(x, dtype=x.dtype)


def logsumexp(x: Tensor) -> Tensor:
    """Blocks of up to 65536 elements, joined by a second launch: x [M, N]."""
    from fla.ops.utils.logsumexp import logsumexp_fwd

    return logsumexp_fwd(x)


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Stores 1 / rms of each row too: x [M, N], weight [N]."""
    from fla.modules.norm.layernorm import layer_norm_fwd

    return layer_norm_fwd(x, weight, None, eps, is_rms_norm=True)[0]


def layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Stores mean and 1 / deviation of each row too: x [M, N], weight and bias [N]."""
    return layernorm_stats(x, weight, bias, eps)[0]


def layernorm_stats(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """As the op: x [M, N], weight and bias [N]."""
    from fla.modules.norm.layernorm import layer_norm_fwd

    y, mean, rstd, _ = layer_norm_fwd(x, weight, bias, eps)
    return y, mean, rstd


def add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Stores 1 / rms of each row too: x and residual [M, N], weight [N]."""
    from fla.modules.norm.layernorm import layer_norm_fwd

    y, _, _, h = layer_norm_fwd(x, weight, None, eps, residual=residual, is_rms_norm=True)
    return h, y


def narrow_angles(x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cosines and sines in the type of x, as the library asks for."""
    return x, cos.to(x.dtype), sin.to(x.dtype)


@bench.prepared(narrow_angles)
def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Takes angles in the type of x and fills its result with zeros first; each head is a sequence of its own:
    x [B, H, T, D], cos and sin [T, D // 2]."""
    from fla.modules.rotary.ops import rotary_embedding_fwdbwd

    B, H, T, D = x.shape
    return rotary_embedding_fwdbwd(x.view(B * H, T, 1, D), cos, sin).view(B, H, T, D)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """As the op: gate and up [M, N]."""
    from fla.modules.activations import swiglu_fwd

    return swiglu_fwd(gate, up)


def cross_entropy(x: Tensor, label: Tensor, ignore: int) -> tuple[Tensor, Tensor]:
    """Blocks of up to 65536 classes, joined by a second launch: x [M, V], label [M]."""
    from fla.modules.fused_cross_entropy.ops import cross_entropy_fwd

    loss, _, lse, *_ = cross_entropy_fwd(x, label, ignore_index=ignore)
    return loss, lse


def label_smoothing(x: Tensor, label: Tensor, smoothing: float, ignore: int) -> Tensor:
    """Blocks of up to 65536 classes, joined by a second launch: x [M, V], label [M]."""
    from fla.modules.fused_cross_entropy.ops import cross_entropy_fwd

    return cross_entropy_fwd(x, label, label_smoothing=smoothing, ignore_index=ignore)[0]


def taps_last(x: Tensor, w: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The taps of a channel beside one another."""
    return x, w.T.contiguous(), bias


@bench.prepared(taps_last)
def causal_conv1d(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """Takes the taps of a channel beside one another: x [B, T, C], w [C, K], bias [C]."""
    from fla.modules.causal_conv1d.ops import causal_conv1d_fwd

    return causal_conv1d_fwd(x=x, weight=w, bias=bias, residual=None, activation="silu")[0]


def cumulative_sum(x: Tensor) -> Tensor:
    """A program a row, which walks it in blocks; each row is a sequence of one head: x [M, N]."""
    from fla.ops.utils.cumsum import chunk_global_cumsum

    M, N = x.shape
    return chunk_global_cumsum(x.view(M, N, 1), output_dtype=x.dtype).view(M, N)


def logarithms(x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """The shares that are kept as logarithms, in their type."""
    return x, keep.float().log().to(keep.dtype)


@bench.prepared(logarithms)
def decayed_scan(x: Tensor, keep: Tensor) -> Tensor:
    """HGRN in chunks: takes the logarithm of what is kept, and writes states and decays in f32 in between:
    x and keep [B, T, C]."""
    from fla.ops.hgrn import chunk_hgrn

    return chunk_hgrn(x, keep)[0]


@bench.prepared(logarithms)
def decayed_scan_recurrent(x: Tensor, keep: Tensor) -> Tensor:
    """HGRN step by step, one read and one write: takes the logarithm of what is kept: x and keep [B, T, C]."""
    from fla.ops.hgrn import fused_recurrent_hgrn

    return fused_recurrent_hgrn(x, keep)[0]


def linear_attention(q: Tensor, k: Tensor, v: Tensor, C: int) -> Tensor:  # noqa: ARG001 - the library's is 64
    """In chunks of 64 tokens whatever C is; each head is a sequence of its own: q and k [B, H, T, D], v [B, H, T, E]."""
    from fla.ops.linear_attn import chunk_linear_attn

    B, H, T, E = v.shape
    q, k, v = (z.view(B * H, T, 1, z.shape[-1]) for z in (q, k, v))
    return chunk_linear_attn(q, k, v, scale=1.0, normalize=False)[0].view(B, H, T, E)
