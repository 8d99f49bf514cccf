"""What a generated function is given: checked with clear errors that name the op's own tensors and dims, and what it gives back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
import triton.language as tl

DTYPES = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i8": torch.int8,
    "i4": torch.uint8,  # two a byte along the last axis, the low nibble first
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
}
NAMES = {v: k for k, v in DTYPES.items()}
LAST_32 = 2**31 - 1


class LaunchError(ValueError):
    """An argument that the op can't take; the message names it, what it is and what it should be."""


class Result(NamedTuple):
    """What an op returns: its name in the spec, its shape and its dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype


def rank(name: str, tensor: torch.Tensor, expected: int) -> torch.Size:
    """The shape of ``tensor``, which must have ``expected`` axes."""
    if tensor.dim() != expected:
        raise LaunchError(f"`{name}` has {tensor.dim()} axes {tuple(tensor.shape)}, expected {expected}")
    return tensor.shape


def dtype_of(name: str, tensor: torch.Tensor, allowed: Sequence[str]) -> torch.dtype:
    """The dtype of ``tensor``, which must be one of ``allowed`` (names as in the spec)."""
    if NAMES.get(tensor.dtype) not in allowed:
        raise LaunchError(f"`{name}` is {tensor.dtype}, expected {' or '.join(allowed)}")
    return tensor.dtype


def check(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    """Require shape, dtype and device of a tensor."""
    if tuple(tensor.shape) != shape:
        raise LaunchError(f"`{name}` has shape {tuple(tensor.shape)}, expected {shape}")
    if tensor.dtype != dtype and not (dtype == torch.uint8 and tensor.dtype == torch.int8):
        raise LaunchError(f"`{name}` is {tensor.dtype}, expected {dtype}")
    if tensor.device != device:
        raise LaunchError(f"`{name}` is on {tensor.device}, expected {device}")


def require(holds: bool, condition: str, **dims: int) -> None:
    """Require a condition on dims; the error shows their values."""
    if not holds:
        values = ", ".join(f"{k} = {v}" for k, v in dims.items())
        raise LaunchError(f"the op requires {condition}, but {values}")


def solve(name: str, axis: int, extent: int, factor: int, offset: int) -> int:
    """The dim ``d`` with ``factor * d + offset == extent`` for one axis of a tensor."""
    if (extent - offset) % factor or extent < offset:
        raise LaunchError(f"axis {axis} of `{name}` is {extent}, which is not {factor} * d + {offset}")
    return (extent - offset) // factor


def receive(
    results: Sequence[Result], given: Sequence[torch.Tensor] | None, device: torch.device
) -> tuple[torch.Tensor, ...]:
    """The tensors that receive the results: the caller's, checked, or new contiguous ones."""
    if given is None:
        return tuple(torch.empty(r.shape, dtype=r.dtype, device=device) for r in results)
    if len(given) != len(results):
        raise LaunchError(f"`out` has {len(given)} tensors, expected {len(results)}")
    for result, tensor in zip(results, given, strict=True):
        check(result.name, tensor, result.shape, result.dtype, device)
        if any(s == 0 and e > 1 for s, e in zip(tensor.stride(), tensor.shape, strict=True)):
            raise LaunchError(f"`{result.name}` has stride 0 along an axis, so its elements share memory")
    return tuple(given)


def index_type(*tensors: torch.Tensor) -> Any:
    """``tl.int32`` where every element offset fits 31 bits, else ``tl.int64``."""
    for tensor in tensors:
        if tensor.numel() <= LAST_32 and tensor.is_contiguous():
            continue
        last = sum((e - 1) * abs(s) for e, s in zip(tensor.shape, tensor.stride(), strict=True) if e > 1)
        if last > LAST_32:
            return tl.int64
    return tl.int32


@contextmanager
def _device(index: int) -> Iterator[None]:
    previous = torch.cuda.current_device()
    torch.cuda.set_device(index)
    try:
        yield
    finally:
        torch.cuda.set_device(previous)


def on(device: torch.device) -> AbstractContextManager[None]:
    """Make ``device`` current for a launch; free where it already is."""
    if device.type != "cuda" or device.index is None or device.index == torch.cuda.current_device():
        return nullcontext()
    return _device(device.index)


def moment(lengths: torch.Tensor, power: int) -> int:
    """The sum of a power of lengths. Looks at data, so it is for counting and never for a launch."""
    if lengths.device.type == "meta" or type(lengths) not in (torch.Tensor, torch.nn.Parameter):
        raise LaunchError("the operations depend on lengths, and these tensors hold no data")
    return int((lengths.to(torch.int64) ** power).sum())


def uncounted(symbol: str) -> int:
    """Refuse to count operations that depend on more than sums of powers of lengths."""
    raise LaunchError(f"the operations depend on {symbol}, which is not counted from tensors")


def size_of(dtype: str) -> float:
    """Bytes per element of a storage type, by its name in the spec (``i4`` is half a byte)."""
    return 0.5 if dtype == "i4" else DTYPES[dtype].itemsize
