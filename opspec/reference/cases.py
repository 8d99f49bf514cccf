"""Inputs that a kernel must survive: shapes, contents and layouts, each said in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opspec.ir.dtypes import DType, DTypeParam
from opspec.ir.program import Op, Tensor, Workload
from opspec.reference.contents import FLOATS, LAYOUTS, floats, integers, laid_out
from opspec.reference.gathers import Use, interval, uses
from opspec.reference.shapes import Shape, shapes

if TYPE_CHECKING:
    import torch

LIMIT = 1 << 14
"""Elements of the largest tensor of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call of an op. ``inputs``: CPU tensors by name; ``words``: what is special about it."""

    dims: Mapping[str, int]
    dtypes: Mapping[str, DType]
    inputs: Mapping[str, torch.Tensor]
    scalars: Mapping[str, float | int | bool]
    words: str


def cases(
    op: Op,
    dtypes: Mapping[str, DType],
    n: int,
    seed: int,
    *,
    workloads: Sequence[Workload] = (),
    limit: int = LIMIT,
) -> Iterator[Case]:
    """``n`` cases, the same for the same seed.

    ``dtypes`` fixes dtype parameters (their first choice otherwise); ``workloads`` lend
    the ratios of their extents; no tensor exceeds ``limit`` elements. Raises
    ``ValueError`` if the requirements leave no small shape.
    """
    chosen = {p.name: dtypes.get(p.name, p.choices[0]) for p in op.dtype_params}
    found = uses(op)
    rng = np.random.default_rng(seed)

    def admits(dims: Mapping[str, int]) -> bool:
        return all(_possible(op, name, use, dims) for name, use in found.items())

    source = shapes(op, rng, limit, workloads, admits)
    for k in range(n):
        yield _case(op, chosen, next(source), found, k, np.random.default_rng([seed, k]))


def _possible(op: Op, name: str, use: Use, dims: Mapping[str, int]) -> bool:
    """Whether the shape leaves integers for the tensor to hold, enough if they must differ."""
    tensor = op.tensor(name)
    assert tensor is not None
    full = _full(op, dims)
    count = int(np.prod([e.evaluate(full) for e in tensor.extents], dtype=np.int64))
    bounds = interval(use, name, full)
    if bounds is None or count == 0:
        return True
    return bounds[1] - bounds[0] + 1 >= (count if use.distinct else 1)


def _full(op: Op, dims: Mapping[str, int]) -> dict[str, int]:
    return dict(dims) | {name: value.evaluate(dims) for name, value in op.derived}


def _case(
    op: Op,
    dtypes: Mapping[str, DType],
    shape: Shape,
    found: Mapping[str, Use],
    k: int,
    rng: np.random.Generator,
) -> Case:
    dims = _full(op, shape.dims)
    scalars = {s.name: _scalar(s.default, s.dtype, rng) for s in op.scalars}
    read = [t for t in op.tensors if t.role != "out"]
    kinds = list(FLOATS)
    real = [t for t in read if _dtype(t, dtypes).kind == "float"]
    marked = real[(k // len(kinds)) % len(real)].name if real else ""
    every = k % 3 == 0
    inputs: dict[str, torch.Tensor] = {}
    told: list[str] = []
    for place, tensor in enumerate(read):
        dtype = _dtype(tensor, dtypes)
        extents = tuple(e.evaluate(dims) for e in tensor.extents)
        if dtype.kind == "float":
            words = kinds[k % len(kinds)] if every or tensor.name == marked else "normal"
            values = floats(words, rng, extents, dtype)
        else:
            values, words = integers(rng, tensor.name, extents, dtype, found.get(tensor.name), dims, scalars)
        layout = LAYOUTS[(k + place) % len(LAYOUTS)]
        use = found.get(tensor.name)
        fixed = tensor.role == "inout" or (use is not None and (use.distinct or use.rising is not None))
        inputs[tensor.name], real_layout = laid_out(values, dtype, layout, rng, writable=fixed)
        told.append(f"{tensor.name}: {words}, {real_layout}")
    sizes = ", ".join(f"{d}={n}" for d, n in shape.dims.items())
    return Case(
        dims=dict(shape.dims),
        dtypes=dict(dtypes),
        inputs=inputs,
        scalars=scalars,
        words=f"{sizes} ({shape.words}); " + "; ".join(told),
    )


def _dtype(tensor: Tensor, dtypes: Mapping[str, DType]) -> DType:
    return dtypes[tensor.dtype.name] if isinstance(tensor.dtype, DTypeParam) else tensor.dtype


def _scalar(default: float | bool | None, dtype: DType, rng: np.random.Generator) -> float | int | bool:
    if default is not None:
        return default
    match dtype.kind:
        case "float":
            return float(np.float32(rng.uniform(0.5, 2.0)))
        case "int":
            return int(rng.integers(1, 8))
        case "bool":
            return bool(rng.integers(0, 2))
