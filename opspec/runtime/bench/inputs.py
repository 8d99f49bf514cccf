"""Fresh random inputs: several sets with their own content, so that no run repeats the one before.

Runs on any torch device, so that it is tested on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import torch

from opspec.runtime.bench.model import Case, Driver, ScalarInput, TensorInput, lengths_of

TORCH_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i64": torch.int64,
    "i32": torch.int32,
    "i8": torch.int8,
    "i4": torch.uint8,
    "bool": torch.bool,
}


@dataclass(slots=True)
class InputSet:
    """The arguments of one call, in order and by name, and pristine copies of those that it changes in place."""

    arguments: list[Any]
    pristine: dict[int, Any]
    named: dict[str, Any] = field(default_factory=dict)

    def call(self, function: Callable[..., Any]) -> Any:
        """What ``function`` gives for them."""
        return function(*self.arguments, **self.named)

    def restore(self) -> None:
        """Put back what an earlier call changed."""
        for place, original in self.pristine.items():
            self.arguments[place].copy_(original)


def make_set(driver: Driver, case: Case, *, seed: int, device: str) -> InputSet:
    """One set of inputs for ``case``, drawn with ``seed``."""
    generator = torch.Generator(device=device).manual_seed(seed)
    arguments: list[Any] = []
    pristine: dict[int, Any] = {}
    for place, item in enumerate(driver.inputs):
        match item:
            case ScalarInput(value=value):
                arguments.append(value)
            case TensorInput():
                arguments.append(draw(item, case, generator, device))
                if item.inout:
                    pristine[place] = arguments[place].clone()
            case _:
                assert_never(item)
    return InputSet(arguments, pristine, dict(driver.keywords(case.dims)) if driver.keywords else {})


def draw(item: TensorInput, case: Case, generator: Any, device: str) -> Any:
    """One tensor of its declared distribution."""
    dtype = case.dtype(item.dtype)
    shape = storage_shape(dtype, item.extents(case.dims))
    target = TORCH_DTYPES[dtype]
    below = item.below(case.dims) if item.below is not None else None
    options: dict[str, Any] = {"generator": generator, "device": device}
    match item.kind:
        case "normal" | "uniform" | "positive":
            if not target.is_floating_point:
                return draw_codes(dtype, shape, options)
            wide = target if target.itemsize >= 2 else torch.float32
            sample = torch.rand if item.kind == "uniform" else torch.randn
            x = sample(shape, dtype=wide, **options)
            if item.kind == "positive":
                x = x.abs_().add_(0.1)
            scale = item.scale(case.dims) if callable(item.scale) else item.scale
            if scale != 1.0:
                x = x.mul_(scale)
            return x.to(target)
        case "codes":
            return draw_codes(dtype, shape, options)
        case "bool":
            return torch.randint(0, 2, shape, dtype=torch.uint8, **options).to(target)
        case "index":
            return torch.randint(0, limit(item, below), shape, dtype=target, **options)
        case "lengths":
            values = torch.tensor(lengths_of(item, case), dtype=target, device=device)
            stated = case.lengths.get(item.name)
            if stated is None or not stated.listed:
                values = values[torch.randperm(values.numel(), **options)]
            return values.reshape(shape)
        case "offsets":
            inner = torch.randint(
                0, limit(item, below) + 1, (max(shape[-1] - 2, 0),), dtype=target, **options
            )
            ends = torch.tensor([0, limit(item, below)], dtype=target, device=device)
            return torch.cat([ends[:1], inner.sort().values, ends[1:]])[: shape[-1]].contiguous()
        case "distinct":
            count = math.prod(shape)
            if count > limit(item, below):
                raise ValueError(f"`{item.name}` cannot hold {count} distinct values below {below}")
            return torch.randperm(limit(item, below), **options)[:count].to(target).reshape(shape)
        case _:
            assert_never(item.kind)


def limit(item: TensorInput, below: int | None) -> int:
    """The declared bound of an integer input."""
    if below is None:
        raise ValueError(f"input `{item.name}` of kind {item.kind} needs `below`")
    return below


def draw_codes(dtype: str, shape: tuple[int, ...], options: dict[str, Any]) -> Any:
    """Every bit pattern of an integer or packed type, equally likely; finite patterns of an 8-bit float."""
    match dtype:
        case "i4":
            return torch.randint(0, 256, shape, dtype=torch.uint8, **options)
        case "i8":
            return torch.randint(-128, 128, shape, dtype=torch.int8, **options)
        case "f8e4m3" | "f8e5m2":
            finite = 0x7F if dtype == "f8e4m3" else 0x7C
            magnitude = torch.randint(0, finite, shape, dtype=torch.uint8, **options)
            sign = torch.randint(0, 2, shape, dtype=torch.uint8, **options) * 128
            return (magnitude + sign).view(TORCH_DTYPES[dtype])
        case _:
            return torch.randint(-1000, 1001, shape, dtype=torch.int64, **options).to(TORCH_DTYPES[dtype])


def storage_shape(dtype: str, extents: Sequence[int]) -> tuple[int, ...]:
    """The shape in memory: two packed 4-bit codes share a byte along the last axis."""
    shape = tuple(extents)
    return (*shape[:-1], -(-shape[-1] // 2)) if dtype == "i4" and shape else shape


def widen(arguments: Sequence[Any]) -> list[Any]:
    """The arguments as the float64 reference takes them: floats widened, the rest as is."""
    return [
        value.to(torch.float64)
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point
        else value
        for value in arguments
    ]


def nibbles(packed: Any) -> Any:
    """Signed 4-bit codes as int32, low nibble first: [..., n] bytes to [..., 2 n]."""
    codes = torch.stack([packed & 15, (packed >> 4) & 15], dim=-1).flatten(-2).to(torch.int32)
    return (codes ^ 8) - 8


def count_sets(set_bytes: int, free_bytes: int, *, wanted: int = 3) -> int:
    """How many sets to rotate over: as wanted while they fit in a quarter of the free memory, at least one."""
    if set_bytes <= 0:
        return wanted
    return max(1, min(wanted, free_bytes // 4 // set_bytes))


def describe(driver: Driver, case: Case, arguments: Sequence[Any]) -> list[dict[str, Any]]:
    """Name, type, shape, strides and distribution of each tensor argument."""
    return [
        {
            "name": item.name,
            "dtype": case.dtype(item.dtype),
            "shape": list(value.shape),
            "strides": list(value.stride()),
            "kind": item.kind,
            "scale": item.scale(case.dims) if callable(item.scale) else item.scale,
            "inout": item.inout,
        }
        for item, value in zip(driver.inputs, arguments, strict=True)
        if isinstance(item, TensorInput)
    ]


def total_bytes(arguments: Sequence[Any]) -> int:
    """Bytes of all tensors among the arguments."""
    return sum(a.numel() * a.element_size() for a in arguments if isinstance(a, torch.Tensor))
