"""A transformer block whose norms, rotary embedding, activation and loss are generated from specs.

    python examples/transformer_block.py             # on the GPU, compiled whole

Products and attention are torch's own. The block is called eagerly, compiled whole (``fullgraph=True``), and
once more with every generated function replaced by its formula in plain torch; all three must agree.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.nn.functional import cross_entropy, linear, scaled_dot_product_attention, silu

GENERATED = Path(__file__).resolve().parents[1] / "generated"


def generated(package: str) -> ModuleType:
    """The kernels of a package, by its folder under ``generated/``."""
    path = GENERATED / package / "kernel.py"
    spec = importlib.util.spec_from_file_location(f"generated_{package.replace('/', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def generated_ops() -> SimpleNamespace:
    """The generated functions that the block uses."""
    return SimpleNamespace(
        rmsnorm=generated("norm/rmsnorm").rmsnorm,
        add_rmsnorm=generated("norm/add_rmsnorm").add_rmsnorm,
        rope=generated("map/rope").rope,
        swiglu=generated("map/swiglu").swiglu,
        cross_entropy=generated("loss/cross_entropy").cross_entropy,
    )


def plain_ops() -> SimpleNamespace:
    """The same in plain torch, computed in f32 and rounded where the generated ones round."""

    def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
        wide = x.float()
        return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)

    def add_rmsnorm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> Any:
        h = x.float() + residual.float()
        y = h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps) * weight.float()
        return h.to(x.dtype), y.to(x.dtype)

    def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)

    def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return (silu(gate.float()) * up.float()).to(gate.dtype)

    def loss_and_lse(x: torch.Tensor, label: torch.Tensor, ignore: int = -100) -> Any:
        wide = x.float()
        return cross_entropy(wide, label, ignore_index=ignore, reduction="none"), wide.logsumexp(-1)

    return SimpleNamespace(
        rmsnorm=rmsnorm, add_rmsnorm=add_rmsnorm, rope=rope, swiglu=swiglu, cross_entropy=loss_and_lse
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of the block: batch, length, heads, width of a head, width of the hidden layer, vocabulary."""

    batch: int = 2
    length: int = 512
    heads: int = 16
    head: int = 128
    hidden: int = 5632
    vocabulary: int = 32000


def weights(sizes: Sizes, dtype: torch.dtype, device: str) -> dict[str, torch.Tensor]:
    """Random weights, tokens' embeddings, labels and angles."""
    torch.manual_seed(0)
    width, rows = sizes.heads * sizes.head, sizes.batch * sizes.length

    def random(*shape: int) -> torch.Tensor:
        return (torch.randn(shape) / shape[-1] ** 0.5).to(dtype).to(device)

    steps = torch.arange(sizes.head // 2) / (sizes.head // 2)
    angle = torch.arange(sizes.length)[:, None] * 10000.0**-steps
    return {
        "x": torch.randn(rows, width).to(dtype).to(device),
        "label": torch.randint(0, sizes.vocabulary, (rows,)).to(device),
        "cos": angle.cos().to(device),
        "sin": angle.sin().to(device),
        "norm": torch.ones(width, dtype=dtype, device=device),
        "qkv": random(3 * width, width),
        "out": random(width, width),
        "gate": random(sizes.hidden, width),
        "up": random(sizes.hidden, width),
        "down": random(width, sizes.hidden),
        "head": random(sizes.vocabulary, width),
    }


def block(ops: SimpleNamespace, sizes: Sizes, w: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The mean loss of the tokens behind one block."""
    rows, width = w["x"].shape

    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.view(sizes.batch, sizes.length, sizes.heads, sizes.head).transpose(1, 2)

    q, k, v = linear(ops.rmsnorm(w["x"], w["norm"]), w["qkv"]).split(width, -1)
    q, k = (ops.rope(heads(t), w["cos"], w["sin"]) for t in (q, k))
    attended = scaled_dot_product_attention(q, k, heads(v), is_causal=True)
    attended = linear(attended.transpose(1, 2).reshape(rows, width), w["out"])
    h, normed = ops.add_rmsnorm(attended, w["x"], w["norm"])
    active = ops.swiglu(linear(normed, w["gate"]), linear(normed, w["up"]))
    _, normed = ops.add_rmsnorm(linear(active, w["down"]), h, w["norm"])
    loss, _ = ops.cross_entropy(linear(normed, w["head"]), w["label"])
    return loss.mean()


def losses(
    sizes: Sizes, dtype: torch.dtype, device: str, backend: str, ops: SimpleNamespace | None = None
) -> dict[str, float]:
    """The loss of each way to run the block."""
    own = ops or generated_ops()
    w = weights(sizes, dtype, device)
    whole = torch.compile(lambda w: block(own, sizes, w), fullgraph=True, backend=backend)
    with torch.no_grad():
        return {
            "generated": float(block(own, sizes, w)),
            "generated, compiled whole": float(whole(w)),
            "plain torch": float(block(plain_ops(), sizes, w)),
        }


def main() -> int:
    """Print the losses; 1 if they differ."""
    if not torch.cuda.is_available():
        print("this needs a CUDA device; on the CPU a test runs it with small sizes in Triton's interpreter")
        return 2
    found = losses(Sizes(), torch.bfloat16, "cuda", "inductor")
    for name, loss in found.items():
        print(f"{name:28} loss {loss:.5f}")
    return 0 if max(found.values()) - min(found.values()) < 2e-2 else 1


if __name__ == "__main__":
    raise SystemExit(main())
