"""The edge to torch: storage dtypes decoded to float64 and int64 arrays, and back.

An i4 tensor is a torch uint8 or int8 tensor with two elements a byte along the last
axis, the low nibble first; its last extent is half that of the spec, rounded up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opspec.ir.dtypes import BF16, BOOL, DTYPES, F8E4M3, F8E5M2, F16, F32, I4, I8, I32, I64, DType
from opspec.reference.rounding import Array

if TYPE_CHECKING:
    import torch

TORCH_NAMES: dict[str, str] = {
    F32.name: "float32",
    BF16.name: "bfloat16",
    F16.name: "float16",
    F8E4M3.name: "float8_e4m3fn",
    F8E5M2.name: "float8_e5m2",
    I4.name: "uint8",
    I8.name: "int8",
    I32.name: "int32",
    I64.name: "int64",
    BOOL.name: "bool",
}


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype that carries a storage type; uint8 for packed i4."""
    import torch

    found = getattr(torch, TORCH_NAMES[dtype.name])
    assert isinstance(found, torch.dtype)
    return found


def storage_of(tensor: torch.Tensor | Array) -> DType | None:
    """The storage type of a torch tensor; None for other arrays and for packed bytes."""
    if isinstance(tensor, np.ndarray):
        return None
    name = str(tensor.dtype).removeprefix("torch.")
    found = [key for key, torch_name in TORCH_NAMES.items() if torch_name == name and key != I4.name]
    return DTYPES[found[0]] if found else None


def decode(tensor: torch.Tensor | Array, dtype: DType, shape: tuple[int, ...] | None = None) -> Array:
    """The elements as float64, or int64 for integers and bool. ``shape`` unpacks i4.

    A numpy array is taken as the values themselves (an i4 one as unpacked).
    """
    if isinstance(tensor, np.ndarray | np.generic):
        return np.asarray(tensor).astype(np.float64 if dtype.kind == "float" else np.int64)
    tensor = tensor.detach().cpu()
    if dtype.kind == "float":
        import torch

        return np.asarray(tensor.to(torch.float64).numpy(), dtype=np.float64)
    if dtype == I4:
        return unpack(tensor.numpy(), shape or (*tensor.shape[:-1], 2 * tensor.shape[-1]))
    return np.asarray(tensor.numpy()).astype(np.int64)


def unpack(packed: Array, shape: tuple[int, ...]) -> Array:
    """Two signed nibbles a byte, low first, to int64 of ``shape``."""
    octets = packed.astype(np.int64) & 0xFF
    nibbles = np.stack([octets & 15, octets >> 4], axis=-1)
    nibbles = nibbles.reshape(*packed.shape[:-1], 2 * packed.shape[-1])
    return np.where(nibbles > 7, nibbles - 16, nibbles)[..., : shape[-1]]


def pack(values: Array) -> Array:
    """Signed nibbles to bytes, low nibble first; an odd end is padded with 0."""
    nibbles = values.astype(np.int64) & 15
    if nibbles.shape[-1] % 2:
        nibbles = np.concatenate([nibbles, np.zeros_like(nibbles[..., :1])], axis=-1)
    return (nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)).astype(np.uint8)


def encode(values: Array, dtype: DType) -> torch.Tensor:
    """A torch CPU tensor of the storage type; values must already be representable or round to nearest."""
    import torch

    if dtype == I4:
        return torch.from_numpy(pack(values))
    return torch.from_numpy(np.array(values)).to(torch_dtype(dtype))
