"""The verdict: what a kernel wrote against what the reference allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opspec.ir.dtypes import DType
from opspec.reference.evaluate import Result
from opspec.reference.rounding import Array
from opspec.reference.tensors import decode

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Why an output is not right. ``worst`` is the place furthest beyond its tolerance.

    ``ratio`` of elements within tolerance; ``max_error`` the largest difference between
    finite elements; ``expected``, ``actual`` and ``tolerance`` stand at ``worst``.
    """

    reason: str
    ratio: float
    max_error: float
    worst: tuple[int, ...]
    expected: float
    actual: float
    tolerance: float

    def __str__(self) -> str:
        place = ", ".join(map(str, self.worst))
        return (
            f"{self.reason}: {self.ratio:.2%} of the elements match; at [{place}] expected "
            f"{self.expected:.9g} ± {self.tolerance:.3g}, found {self.actual:.9g}; "
            f"largest error {self.max_error:.3g}"
        )


def compare(result: Result, actual: torch.Tensor | Array, dtype: DType) -> Mismatch | None:
    """None where every element is allowed. ``actual``: a tensor stored as ``dtype``.

    NaN must meet NaN and infinity the same infinity, except where the radius is inf. The
    output is expected to have been filled with NaN (``poisoned``) before the kernel ran.
    """
    expected = result.value
    found = decode(actual, dtype, expected.shape)
    if found.shape != expected.shape:
        return Mismatch(
            reason=f"shape {found.shape} where the spec says {expected.shape}",
            ratio=0.0,
            max_error=float("nan"),
            worst=(),
            expected=float("nan"),
            actual=float("nan"),
            tolerance=float("nan"),
        )
    if expected.size == 0:
        return None
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    tolerance = np.broadcast_to(result.error, expected.shape)
    with np.errstate(all="ignore"):
        gap = np.abs(found - expected)
        alike = (found == expected) | (np.isnan(found) & np.isnan(expected))
        allowed = alike | np.isinf(tolerance) | (gap <= tolerance)
        if allowed.all():
            return None
        excess = np.where(allowed, -1.0, gap - tolerance)
        excess = np.where(~allowed & ~np.isfinite(excess), np.inf, excess)
        finite = gap[np.isfinite(gap)]
    worst = np.unravel_index(int(excess.argmax()), expected.shape)
    return Mismatch(
        reason=_reason(expected, found, allowed),
        ratio=float(allowed.mean()),
        max_error=float(finite.max()) if finite.size else float("nan"),
        worst=tuple(int(i) for i in worst),
        expected=float(expected[worst]),
        actual=float(found[worst]),
        tolerance=float(tolerance[worst]),
    )


def _reason(expected: Array, found: Array, allowed: Array) -> str:
    nan = np.isnan(found) & ~allowed
    if not found.any():
        return "every element is zero"
    if nan.any():
        count = int(nan.sum())
        return f"{count} element{'s' if count > 1 else ''} NaN or never written"
    if (~np.isfinite(expected) & ~allowed).any():
        return "infinities or NaN lost"
    return "values differ"


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` filled so that an element never written shows: NaN, or the least integer."""
    import torch

    if tensor.is_floating_point():
        if tensor.element_size() == 1:
            tensor.view(torch.uint8).fill_(0x7F)
        else:
            tensor.fill_(float("nan"))
    elif tensor.dtype == torch.bool:
        tensor.fill_(True)
    else:
        tensor.fill_(0xA5 if tensor.dtype == torch.uint8 else torch.iinfo(tensor.dtype).min)
    return tensor
