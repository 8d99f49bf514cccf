"""The float64 reference on the device: whole, or where it doesn't fit, in slices that are independent."""

from __future__ import annotations

from typing import Any

import torch

from opspec.runtime.bench.check import as_tuple
from opspec.runtime.bench.inputs import InputSet, widen
from opspec.runtime.bench.model import Driver


def reference_of(driver: Driver, inputs: InputSet) -> tuple[Any, ...]:
    """What the op should give for a set of inputs; in twice as many parts each time that memory runs out."""
    parts, most = 1, longest(driver, inputs)
    while True:
        found = attempt(driver, inputs, parts, last=2 * parts > most)
        if found is not None:
            return found
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        parts *= 2


def longest(driver: Driver, inputs: InputSet) -> int:
    """The extent of the axis along which slices are independent; 1 without one."""
    pairs = zip(driver.inputs, inputs.arguments, strict=True)
    return max((v.shape[driver.rows[i.name]] for i, v in pairs if i.name in driver.rows), default=1)


def attempt(driver: Driver, inputs: InputSet, parts: int, *, last: bool) -> tuple[Any, ...] | None:
    """The reference in so many parts; None if it doesn't fit. Of the ``last`` attempt the error gets out."""
    try:
        return whole(driver, inputs) if parts == 1 else joined(driver, inputs, parts)
    except torch.OutOfMemoryError:
        if last:
            raise
        return None  # with the error goes what its frames hold


def whole(driver: Driver, inputs: InputSet) -> tuple[Any, ...]:
    """The reference of all inputs at once."""
    return as_tuple(driver.reference(*widen(inputs.arguments), **inputs.named))


def joined(driver: Driver, inputs: InputSet, parts: int) -> tuple[Any, ...]:
    """The references of slices, put together."""
    extent = longest(driver, inputs)
    step = -(-extent // parts)
    found: list[tuple[Any, ...]] = []
    for start in range(0, extent, step):
        length = min(step, extent - start)
        cut = [
            value.narrow(driver.rows[item.name], start, length) if item.name in driver.rows else value
            for item, value in zip(driver.inputs, inputs.arguments, strict=True)
        ]
        found.append(as_tuple(driver.reference(*widen(cut), **inputs.named)))
    return tuple(
        torch.cat(pieces, dim=driver.rows[name])
        for name, pieces in zip(driver.results, zip(*found, strict=True), strict=True)
    )
