"""Our counts beside those of `torch.utils.flop_counter`: ``python -m tools.flop_counter``.

Each shipped op is written once in plain PyTorch and run on meta tensors, which hold no data, at the shape of its
workload. The counter knows products and convolutions by the shapes of their operands. Where it is right, it must
agree with ``flops.tensor`` to the last operation; where it is not, the row says why. The counter is told nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opspec.analysis.query import query
from opspec.frontend import load

SPECS = Path(__file__).resolve().parents[1] / "specs"
Dims = dict[str, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """An op at a workload in plain PyTorch. ``why``: empty where the counter must agree, else why it does not."""

    spec: str
    op: str
    workload: str
    call: Callable[[Any, Dims], Any]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """What the counter says, and what is counted here."""

    entry: Entry
    counter: int
    tensor: int
    flops: int


def _z(t: Any, *shape: int) -> Any:
    return t.empty(shape, device="meta", dtype=t.bfloat16)


def _attention(t: Any, b: int, heads: int, shared: int, rows: int, keys: int, dim: int, **more: Any) -> Any:
    q, k, v = _z(t, b, heads, rows, dim), _z(t, b, shared, keys, dim), _z(t, b, shared, keys, dim)
    return t.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=heads != shared, **more)


def _latent(t: Any, d: Dims) -> Any:
    wide = d["H"] * d["D"]
    x, w = _z(t, d["B"] * d["L"], wide), _z(t, wide, wide)
    q, k, v = ((x @ w).view(d["B"], d["L"], d["H"], d["D"]).transpose(1, 2) for _ in range(3))
    o = t.nn.functional.scaled_dot_product_attention(q, k, v)
    return o.transpose(1, 2).reshape(d["B"] * d["L"], wide) @ w


def _conv(t: Any, d: Dims) -> Any:
    x = t.nn.functional.pad(_z(t, d["B"], d["C"], d["T"]), (d["K"] - 1, 0))
    return t.nn.functional.silu(t.nn.functional.conv1d(x, _z(t, d["C"], 1, d["K"]), groups=d["C"]))


def _lora(t: Any, d: Dims) -> Any:
    x = _z(t, d["M"], d["K"])
    return x @ _z(t, d["K"], d["N"]) + (x @ _z(t, d["K"], d["R"])) @ _z(t, d["R"], d["N"])


def _experts(t: Any, d: Dims) -> Any:
    rows = d["N"] // d["E"]
    return [_z(t, rows, d["K"]) @ _z(t, d["K"], d["F"]) for _ in range(d["E"])]


def _rms(t: Any, d: Dims) -> Any:
    return t.nn.functional.rms_norm(_z(t, d["M"], d["N"]), (d["N"],), _z(t, d["N"]))


def _loss(t: Any, d: Dims) -> Any:
    label = t.empty((d["M"],), device="meta", dtype=t.int64)
    return t.nn.functional.cross_entropy(_z(t, d["M"], d["V"]), label)


def _mla(t: Any, d: Dims) -> Any:
    q, c = _z(t, d["B"], d["H"], d["R"] + d["P"]), _z(t, d["B"], d["T"], d["R"] + d["P"])
    return t.softmax(q @ c.transpose(1, 2), -1) @ _z(t, d["B"], d["T"], d["R"])


_NONE = "elementwise work and reductions are not counted at all"
_FULL = "counts the whole square: the mask is only applied to it"
ENTRIES = (
    Entry("gemm/matmul.op", "matmul", "cube_8k", lambda t, d: _z(t, d["M"], d["K"]) @ _z(t, d["K"], d["N"])),
    Entry("gemm/matmul.op", "matmul", "odd_4k", lambda t, d: _z(t, d["M"], d["K"]) @ _z(t, d["K"], d["N"])),
    Entry(
        "gemm/batched_matmul.op", "batched_matmul", "cubes_1k",
        lambda t, d: _z(t, d["B"], d["M"], d["K"]) @ _z(t, d["B"], d["K"], d["N"]),
    ),
    Entry(
        "gemm/linear_gelu.op", "linear_gelu", "mlp_8k",
        lambda t, d: t.nn.functional.gelu(t.nn.functional.linear(_z(t, d["M"], d["K"]), _z(t, d["N"], d["K"]), _z(t, d["N"]))),
    ),
    Entry("gemm/lora.op", "lora", "adapter_16", _lora),
    Entry("nn/grouped_gemm.op", "grouped_gemm", "moe_32k", _experts),
    Entry("conv/causal_conv1d.op", "causal_conv1d", "tokens_16k", _conv),
    Entry(
        "attention/prefill.op", "attention", "prefill_4k",
        lambda t, d: _attention(t, d["B"], d["Hq"], d["Hkv"], d["L"], d["T"], d["D"]),
    ),
    Entry(
        "attention/prefill.op", "attention", "prefill_4k_gqa",
        lambda t, d: _attention(t, d["B"], d["Hq"], d["Hkv"], d["L"], d["T"], d["D"]),
    ),
    Entry(
        "attention/decode.op", "decode_attention", "decode_8k",
        lambda t, d: _attention(t, d["B"], d["H"], d["H"], 1, d["T"], d["D"]),
    ),
    Entry("attention/decode.op", "mla_decode", "mla_8k", _mla),
    Entry("world_model/latent_block.op", "latent_block", "raw", _latent),
    Entry(
        "attention/prefill.op", "attention_causal", "causal_4k",
        lambda t, d: _attention(t, d["B"], d["Hq"], d["Hkv"], d["L"], d["T"], d["D"], is_causal=True), _FULL,
    ),
    Entry(
        "attention/prefill.op", "attention_window", "window_8k",
        lambda t, d: _attention(
            t, d["B"], d["H"], d["H"], d["L"], d["T"], d["D"], attn_mask=t.empty((d["L"], d["T"]), device="meta", dtype=t.bool)
        ), _FULL,
    ),
    Entry(
        "attention/decode.op", "paged_decode", "paged_ragged",
        lambda t, d: _attention(t, d["B"], d["Hkv"] * d["G"], d["Hkv"], 1, d["T"], d["D"]),
        "rows are padded to the longest one",
    ),
    Entry(
        "gemm/bilinear.op", "bilinear", "features_256",
        lambda t, d: t.nn.functional.bilinear(_z(t, d["M"], d["I"]), _z(t, d["M"], d["J"]), _z(t, d["O"], d["I"], d["J"])),
        "the counter has no rule for the operator underneath",
    ),
    Entry("reduce/softmax.op", "softmax", "rows_4k", lambda t, d: t.softmax(_z(t, d["M"], d["N"]), -1), _NONE),
    Entry("norm/rmsnorm.op", "rmsnorm", "tokens_16k", _rms, _NONE),
    Entry("loss/cross_entropy.op", "cross_entropy", "vocabulary_128k", _loss, _NONE),
)  # fmt: skip


def count(entry: Entry, dims: Dims | None = None) -> Row:
    """Run one entry on meta tensors under the counter, and ask for our counts; ``dims`` instead of the workload's."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    module = load(SPECS / entry.spec)
    op, workload = module.op(entry.op), next(w for w in module.workloads if w.name == entry.workload)
    assert op is not None
    with FlopCounterMode(display=False) as counter:
        entry.call(torch, dims or dict(workload.cases[0][1]))
    at: dict[str, Any] = {"settings": dims} if dims else {"workload": workload}
    tensor, flops = (query(module, op, text, **at).value for text in ("flops.tensor", "flops"))
    assert tensor is not None
    assert flops is not None
    return Row(entry, int(counter.get_total_flops()), round(tensor), round(flops))


def main() -> int:
    """Print the table; 1 if the counter does not agree where it should."""
    rows = [count(e) for e in ENTRIES]
    shown = [
        (
            f"{r.entry.op} @ {r.entry.workload}",
            _giga(r.counter),
            _giga(r.tensor),
            _giga(r.flops),
            r.entry.why or ("agrees" if r.counter == r.tensor else "DOES NOT AGREE"),
        )
        for r in rows
    ]
    head = ("op @ workload", "counter", "flops.tensor", "flops", "in GFLOP")
    wide = [max(len(line[k]) for line in (head, *shown)) for k in range(4)]
    for name, *numbers, why in (head, *shown):
        cells = "  ".join(f"{n:>{w}}" for n, w in zip(numbers, wide[1:], strict=True))
        print(f"{name:<{wide[0]}}  {cells}  {why}".rstrip())
    return int(any(r.counter != r.tensor for r in rows if not r.entry.why))


def _giga(value: int) -> str:
    return f"{value / 1e9:,.3f}"


if __name__ == "__main__":
    sys.exit(main())
