"""Evaluates a checked op in float64, statement by statement, with error radii.

``evaluate`` takes inputs and dims and gives, for each output, what it must hold and
how far a kernel may be from that. It follows the kernels of a boundary in order:
inside a kernel a value is unrounded, and what another kernel reads was rounded to its
storage type. Loads that a ``where`` does not take are never looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opspec.ir.dtypes import F32, DType, DTypeParam, Storage
from opspec.ir.program import Boundary, Define, Kernel, Op, Tensor
from opspec.ir.values import (
    Read,
    Reduce,
    Scan,
    walk,
)
from opspec.reference import boxes
from opspec.reference.bounded import Bounded, known
from opspec.reference.boxes import Axis, Box, Field, enclose
from opspec.reference.casts import stored, written
from opspec.reference.combine import scan
from opspec.reference.decay import decayed
from opspec.reference.extents import extent, over
from opspec.reference.precise import precise_names
from opspec.reference.reductions import EmptyDomain, Reductions
from opspec.reference.rounding import Array, round_float
from opspec.reference.tensors import decode, storage_of
from opspec.reference.values import Number

if TYPE_CHECKING:
    import torch

__all__ = ["EmptyDomain", "Result", "bound_dtypes", "evaluate"]


@dataclass(frozen=True, slots=True)
class Result:
    """``value`` float64 (int64 for integers and bool) and the radius ``error`` around it.

    ``error`` inf: the op does not say (an element that no statement wrote, or a value
    beyond the range of f32).
    """

    value: Array
    error: Array

    @property
    def decided(self) -> float:
        """The share of elements about which the op says something; 1 for an empty tensor."""
        return float(np.isfinite(self.error).mean()) if self.value.size else 1.0


def evaluate(
    op: Op,
    inputs: Mapping[str, torch.Tensor | Array],
    scalars: Mapping[str, Number],
    dims: Mapping[str, int],
    boundary: str = "",
    dtypes: Mapping[str, DType] | None = None,
) -> dict[str, Result]:
    """What every ``out`` and ``inout`` tensor of the op must hold.

    ``inputs``: tensors by name (``in`` and ``inout``), in the extents that the spec
    declares; numpy arrays are taken as plain values. ``scalars`` without an entry take
    their default. ``dtypes`` fixes dtype parameters; those missing are taken from the
    torch dtype of an input. Raises ``EmptyDomain`` for an undeclared empty max or min,
    ``ValueError`` for inputs that don't fit the op.
    """
    chosen = bound_dtypes(op, inputs, dtypes or {})
    group = next((b for b in op.boundaries if b.name == boundary), None)
    if group is None:
        raise ValueError(f"no boundary `{boundary}` of `{op.name}`")
    machine = _Evaluation(op, group, dict(dims), scalars, chosen)
    machine.load(inputs)
    for kernel in group.kernels:
        machine.run(kernel)
    return machine.results()


def bound_dtypes(
    op: Op, inputs: Mapping[str, torch.Tensor | Array], given: Mapping[str, DType]
) -> dict[str, DType]:
    """The concrete type of each dtype parameter of the op."""
    chosen = dict(given)
    for tensor in op.tensors:
        if isinstance(tensor.dtype, DTypeParam) and tensor.name in inputs:
            found = storage_of(inputs[tensor.name])
            if found is not None:
                chosen.setdefault(tensor.dtype.name, found)
    for parameter in op.dtype_params:
        chosen.setdefault(parameter.name, parameter.choices[0])
    return chosen


class _Evaluation(Reductions):
    """The state of one run: tensors as they stand, statements as they are known here."""

    def __init__(
        self,
        op: Op,
        group: Boundary,
        dims: dict[str, int],
        scalars: Mapping[str, Number],
        dtypes: Mapping[str, DType],
    ) -> None:
        super().__init__(
            dims | {name: extent(value, dims) for name, value in op.derived},
            {s.name: _scalar(s.dtype, scalars.get(s.name, s.default), s.name) for s in op.scalars},
            dtypes,
        )
        self.op, self.group = op, group
        self.precise = precise_names(op)
        self.outcome: dict[str, tuple[Array, Array]] = {}

    # inputs and outputs ---------------------------------------------------
    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(extent(e, self.dims) for e in tensor.extents)

    def load(self, inputs: Mapping[str, torch.Tensor | Array]) -> None:
        for tensor in self.op.tensors:
            shape = self.shape(tensor)
            dtype = self.dtype(tensor.dtype)
            if tensor.role == "out":
                kind = np.float64 if dtype.kind == "float" else np.int64
                blank = np.full(shape, np.nan if dtype.kind == "float" else 0, dtype=kind)
                self.outcome[tensor.name] = (blank, np.full(shape, np.inf))
                self.tensors[tensor.name] = Field(Bounded(blank, np.full(shape, np.inf)), (0,) * len(shape))
                continue
            if tensor.name not in inputs:
                raise ValueError(f"no input `{tensor.name}`")
            data = decode(inputs[tensor.name], dtype, shape)
            if data.shape != shape:
                raise ValueError(f"`{tensor.name}` has shape {data.shape}, the spec says {shape}")
            self.tensors[tensor.name] = Field(known(data), (0,) * len(shape))
            if tensor.role == "inout":
                self.outcome[tensor.name] = (data.copy(), np.zeros(shape))

    def results(self) -> dict[str, Result]:
        return {name: Result(value, error) for name, (value, error) in self.outcome.items()}

    # kernels and statements -------------------------------------------------
    def run(self, kernel: Kernel) -> None:
        for define in kernel.body:
            field = self.field(define)
            self.defines[define.name] = field
            if define.output is not None:
                self.write(define, field)
        self.leave(kernel)

    def leave(self, kernel: Kernel) -> None:
        """End a kernel: what others read of it is what its storage type holds."""
        elsewhere = {
            v.name
            for k in self.group.kernels
            if k is not kernel
            for d in k.body
            for v in walk(d.value)
            if isinstance(v, Read)
        }
        for define in kernel.body:
            output = self.op.tensor(define.output.tensor) if define.output else None
            if output is not None:
                field = self.tensors[output.name]
                dtype = self.dtype(output.dtype)
                self.tensors[output.name] = Field(stored(field.data, dtype), field.origin)
            if define.name not in elsewhere:
                continue
            field = self.defines[define.name]
            plain = F32 if not field.data.integral else None
            storage: Storage | None = output.dtype if output is not None else define.storage or plain
            if storage is not None:
                data = stored(field.data, self.dtype(storage))
                self.defines[define.name] = Field(data, field.origin, field.mask)

    def field(self, define: Define) -> Field:
        """All values of a statement; points outside its domain are NaN."""
        box = enclose(define.ranges, define.constraints, self.dims, self.lookup)
        data = self.part(define, box.axes)
        if box.mask is not None:
            inside = np.broadcast_to(box.mask, box.shape)
            outside = np.nan if not data.integral else 0
            value = np.where(inside, data.value, np.asarray(outside, dtype=data.value.dtype))
            data = Bounded(value, np.where(inside, data.error, 0.0), data.terms)
            return Field(data, box.origin, inside)
        return Field(data, box.origin)

    def part(self, define: Define, axes: tuple[Axis, ...]) -> Bounded:
        """The statement over a box, in halves along its longest axis where the box is large."""
        box = enclose(define.ranges, define.constraints, self.dims, self.lookup, fixed=axes)
        value = define.value
        whole = box
        if isinstance(value, Reduce):
            whole = enclose(value.ranges, value.constraints, self.dims, self.lookup, axes)
        strict = define.name in self.precise
        if isinstance(value, Reduce) and whole.points > boxes.LIMIT and self.fits(value, box, whole):
            product = self.product(value, self.factors(value, whole, strict), box, whole)
            if product is not None:
                return _spread(product, box.shape)
        fixed = value.index if isinstance(value, Scan) else None
        longest = max((a for a in axes if a.name != fixed), key=lambda a: a.size, default=None)
        if whole.points > boxes.LIMIT and longest is not None and longest.size > 1:
            place = axes.index(longest)
            middle = (longest.start + longest.stop) // 2
            halves = [
                self.part(define, (*axes[:place], half, *axes[place + 1 :]))
                for half in (
                    Axis(longest.name, longest.start, middle),
                    Axis(longest.name, middle, longest.stop),
                )
            ]
            return _joined(halves[0], halves[1], place)
        return _spread(self.root(define, box, whole, strict), box.shape)

    def root(self, define: Define, box: Box, whole: Box, strict: bool) -> Bounded:
        match define.value:
            case Reduce() as value:
                return self.reduce(define, value, box, whole, strict)
            case Scan() as value:
                body = self.value(value.body, box.indices(), strict)
                axis = define.indices.index(value.index)
                if value.decay is not None:
                    factor = self.value(value.decay, box.indices(), strict)
                    return decayed(body, factor, box.mask, box.shape, axis, reverse=value.reverse)
                return scan(value.monoid, body, box.mask, box.shape, axis, reverse=value.reverse)
            case value:
                return self.value(value, box.indices(), strict)

    def write(self, define: Define, field: Field) -> None:
        """Scatter a statement into its output, rounded for the result and not for this kernel."""
        assert define.output is not None
        tensor = self.op.tensor(define.output.tensor)
        if tensor is None:
            raise ValueError(f"`{define.name}` writes to an unknown tensor")
        shape = self.shape(tensor)
        box = enclose(define.ranges, define.constraints, self.dims, self.lookup)
        indices = box.indices()
        at = [np.broadcast_to(over(i, self.dims, indices, self.lookup), box.shape) for i in define.output.at]
        inside = np.ones(box.shape, dtype=bool) if field.mask is None else field.mask
        places = tuple(a[inside] for a in at)
        for place, n in zip(places, shape, strict=True):
            if place.size and (place.min() < 0 or place.max() >= n):
                raise ValueError(f"`{define.name}` writes outside `{tensor.name}`")
        old = self.tensors[tensor.name].data
        state = [old.value.copy(), np.broadcast_to(old.error, shape).copy()]
        final = written(field.data, self.dtype(tensor.dtype))
        for target, source in (
            (state[0], field.data.value),
            (state[1], field.data.error),
            (self.outcome[tensor.name][0], final.value),
            (self.outcome[tensor.name][1], final.error),
        ):
            target[places] = np.broadcast_to(source, box.shape)[inside] if places else source
        self.tensors[tensor.name] = Field(Bounded(state[0], state[1]), (0,) * len(shape))


def _scalar(dtype: DType, number: Number | None, name: str) -> Array:
    if number is None:
        raise ValueError(f"no value for the scalar `{name}`")
    if dtype.kind == "float":
        return round_float(dtype.name, np.asarray(float(number)))
    return np.asarray(int(number), dtype=np.int64)


def _spread(x: Bounded, shape: tuple[int, ...]) -> Bounded:
    terms = None if x.terms is None else np.broadcast_to(x.terms, shape)
    error = x.error if x.error.ndim == 0 and not x.error.any() else np.broadcast_to(x.error, shape)
    return Bounded(np.broadcast_to(x.value, shape), error, terms)


def _joined(a: Bounded, b: Bounded, axis: int) -> Bounded:
    def both(x: Array, y: Array) -> Array:
        if x.ndim == 0 and y.ndim == 0:
            return x
        return np.concatenate(
            [np.broadcast_to(x, a.value.shape), np.broadcast_to(y, b.value.shape)], axis=axis
        )

    terms = None if a.terms is None and b.terms is None else both(a.magnitude, b.magnitude)
    return Bounded(both(a.value, b.value), both(a.error, b.error), terms)
