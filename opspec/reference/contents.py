"""What tensors hold and how they lie in memory: the inputs that break kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from opspec.ir.dtypes import BOOL, F8E4M3, F8E5M2, I4, DType
from opspec.reference.gathers import Use, interval
from opspec.reference.rounding import FORMATS, Array, integer_limits, round_float
from opspec.reference.tensors import encode

if TYPE_CHECKING:
    import torch

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

LARGE = 300.0
"""A magnitude whose square overflows f16 and nothing wider."""


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape)


def _large(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(LARGE / 2, 2 * LARGE, shape)


def _shifted(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return 1000.0 + rng.standard_normal(shape)


def _constant_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    if not shape:
        return rng.standard_normal(())
    return np.broadcast_to(rng.standard_normal((*shape[:-1], 1)), shape).copy()


def _sprinkled(values: tuple[float, ...]) -> Draw:
    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        plain = rng.standard_normal(shape)
        return np.where(rng.random(shape) < 0.06, rng.choice(values, shape), plain)

    return draw


def _empty_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    plain = np.where(rng.random(shape) < 0.2, -np.inf, rng.standard_normal(shape))
    if not shape:
        return plain
    return np.where(rng.random((*shape[:-1], 1)) < 0.4, -np.inf, plain)


FLOATS: dict[str, Draw] = {
    "normal": _normal,
    "squares overflow f16": _large,
    "-inf here and there": _sprinkled((-np.inf,)),
    "constant rows": _constant_rows,
    "large mean, small spread": _shifted,
    "NaN, inf and -inf here and there": _sprinkled((np.nan, np.inf, -np.inf)),
    "rows of -inf": _empty_rows,
    "zeros": lambda _, shape: np.zeros(shape),
}


def floats(kind: str, rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Values of a kind, rounded to a float type; 8-bit types keep to their finite range."""
    values = np.asarray(FLOATS[kind](rng, shape))
    if dtype in (F8E4M3, F8E5M2):
        greatest = FORMATS[dtype.name].greatest
        values = np.where(np.isnan(values), values, np.clip(values, -greatest, greatest))
    return round_float(dtype.name, values)


def integers(
    rng: np.random.Generator,
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    use: Use | None,
    dims: Mapping[str, int],
    scalars: Mapping[str, float],
) -> tuple[Array, str]:
    """Integers that the op may be given in this place, and what they are in words."""
    if dtype == BOOL:
        return rng.integers(0, 2, shape), "random"
    bounds = None if use is None else interval(use, name, dims)
    low, high = integer_limits(dtype)
    if use is None or bounds is None:
        low, high = (low, high) if dtype.bits <= 8 else (-9, 9)
        values, words = rng.integers(low, high + 1, shape), "random"
    elif use.rising is not None:
        values, words = _offsets(rng, shape, bounds[1]), "rising offsets"
    elif use.distinct:
        count = int(np.prod(shape, dtype=np.int64))
        picked = rng.permutation(bounds[1] - bounds[0] + 1)[:count]
        values, words = (picked + bounds[0]).reshape(shape), f"distinct in {bounds[0]}..{bounds[1]}"
    else:
        values, words = rng.integers(bounds[0], bounds[1] + 1, shape), f"in {bounds[0]}..{bounds[1]}"
        ends = rng.random(shape)
        values = np.where(ends < 0.1, bounds[0], np.where(ends > 0.9, bounds[1], values))
    if use is not None and use.rising is None and not use.distinct:
        special = [scalars[c] if isinstance(c, str) else c for c in use.compared]
        allowed = [
            int(v)
            for v in special
            if low <= v <= high and (use.guarded or bounds is None or bounds[0] <= v <= bounds[1])
        ]
        if allowed:
            values = np.where(rng.random(shape) < 0.25, rng.choice(allowed, shape), values)
            words += ", some " + " or ".join(map(str, sorted(set(allowed))))
    return values, words


def _offsets(rng: np.random.Generator, shape: tuple[int, ...], total: int) -> Array:
    """From 0 to ``total`` along the last axis, some steps empty."""
    last = shape[-1]
    cuts = np.sort(rng.integers(0, total + 1, (*shape[:-1], max(last - 2, 0))), axis=-1)
    ends = np.zeros((*shape[:-1], 1), dtype=np.int64)
    return np.concatenate([ends, cuts, ends + total], axis=-1)[..., :last]


LAYOUTS = ("contiguous", "transposed", "sliced with an offset", "expanded with stride 0")


def laid_out(
    values: Array, dtype: DType, layout: str, rng: np.random.Generator, *, writable: bool
) -> tuple[torch.Tensor, str]:
    """A CPU tensor of the values in a layout, and the layout that it really has.

    A layout that the rank, the type or (for stride 0) a write forbids becomes contiguous.
    Expanding repeats the first slice along one axis.
    """
    shape = values.shape
    plain = dtype == I4 or not shape or 0 in shape
    if layout == "transposed" and len(shape) > 1 and not plain:
        a, b = rng.permutation(len(shape))[:2]
        axes = list(range(len(shape)))
        axes[a], axes[b] = axes[b], axes[a]
        swapped = encode(np.ascontiguousarray(values.transpose(axes)), dtype)
        return swapped.permute(axes), layout
    if layout == "sliced with an offset" and not plain:
        padded = encode(np.pad(values, [(1, 2)] * len(shape)), dtype)
        return padded[tuple(slice(1, 1 + n) for n in shape)], layout
    if layout == "expanded with stride 0" and not plain and not writable and max(shape) > 1:
        axis = int(rng.choice([k for k, n in enumerate(shape) if n > 1]))
        return encode(np.take(values, [0], axis), dtype).expand(shape), layout
    return encode(values, dtype), "contiguous"
