"""Casts as torch text, and 4-bit codes, which lie two in a byte."""

from __future__ import annotations

from opspec.emit.torch_access import cut
from opspec.ir.dtypes import F32, I4, I64, DType
from opspec.ir.values import CastMode

TORCH = {
    "f32": "torch.float32", "bf16": "torch.bfloat16", "f16": "torch.float16", "f8e4m3": "torch.float8_e4m3fn",
    "f8e5m2": "torch.float8_e5m2", "i8": "torch.int8", "i32": "torch.int32", "i64": "torch.int64", "bool": "torch.bool",
}  # fmt: skip
GREATEST = {"f8e4m3": 448, "f8e5m2": 57344}


def cast_text(text: str, source: DType, to: DType, mode: CastMode, *, whole: bool) -> str:
    """``text``, a tensor in the compute type ``source`` that binds like a name, rounded to ``to`` once.

    ``whole``: its values are whole numbers already.
    """
    if to.kind == "bool":
        return f"({text} != 0)"
    if to.kind == "float":
        return _float(text, source, to, mode)
    low, high = -(1 << (to.bits - 1)), (1 << (to.bits - 1)) - 1
    kept = TORCH[I64.name if to == I64 else "i32"]
    if source.kind == "float":
        text = f"{text}.to(torch.int64)" if whole else f"torch.round({text}).to(torch.int64)"
    if mode == "sat":
        return f"{text}.clamp({low}, {high}).to({kept})"
    if mode == "wrap":
        if to == I4:
            return f"((({text} & 15) ^ 8) - 8).to({kept})"
        return f"{text}.to({TORCH[to.name]}).to({kept})"
    return f"{text}.to({kept})"


def _float(text: str, source: DType, to: DType, mode: CastMode) -> str:
    if to == F32:
        return text if source.kind == "float" else f"{text}.to(real)"
    if mode == "sat":
        most = GREATEST[to.name]
        text = f"{text}.clamp(-{most}, {most})"
    return f"{text}.to({TORCH[to.name]}).to(real)"


def unpacked(name: str, count: str) -> list[str]:
    """Lines that make signed codes of packed bytes, low nibble first; ``count`` of them along the last axis."""
    return [
        f"{name} = torch.stack([{name} & 15, ({name} >> 4) & 15], dim=-1).flatten(-2)[..., {cut('', count)}]",
        f"{name} = ({name}.to(torch.int32) ^ 8) - 8",
    ]


def packed(name: str, count: str) -> list[str]:
    """Lines that put codes two in a byte; an odd end is filled with 0."""
    return [
        f"{name} = torch.nn.functional.pad({name}, (0, {count} % 2)) & 15",
        f"{name} = ({name}[..., ::2] | {name}[..., 1::2] << 4).to(torch.uint8)",
    ]
