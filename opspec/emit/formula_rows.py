"""An axis along which an op falls into independent slices, so that its formula can be taken part by part.

A formula keeps whole intermediate values, in float64 for a check: the scores of an attention over 8192 tokens are
34 GB. Where every result has an axis that each statement only walks along, a slice of the inputs gives the slice
of the results, and a device that can't hold the whole can hold a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from opspec.frontend.segments import segment_of
from opspec.ir.dtypes import I4
from opspec.ir.integers import Datum, Dim, Index, Int, children
from opspec.ir.program import Define, Op, Workload
from opspec.ir.values import Extent, Read, Reduce, Scan, integers, walk


class Tied(Exception):
    """Slices along this axis depend on one another."""


def row_axes(op: Op, workloads: tuple[Workload, ...]) -> dict[str, int]:
    """Each tensor's place of the longest such axis; empty where there is none."""
    if any(segment_of(d) for d in op.defines) or not op.defines:
        return {}
    cases = [dict(dims) for w in workloads for _, dims in w.cases]
    found: list[tuple[int, dict[str, int]]] = []
    for dim in op.dims:
        extent = Int.of(Dim(dim))
        try:
            places = _Slices(op, extent).places()
        except Tied:
            continue
        found.append((max((c[dim] for c in cases), default=1), places))
    return max(found, key=lambda f: f[0])[1] if found else {}


@dataclass(slots=True)
class _Slices:
    """Follows an axis from the results to the inputs. ``index``: by statement, its index along it or None."""

    op: Op
    extent: Int
    index: dict[str, str | None] = field(default_factory=dict)
    place: dict[str, int] = field(default_factory=dict)

    def places(self) -> dict[str, int]:
        """The place of the axis in each tensor that has it."""
        dim = self.extent.dims()
        for define in self.op.defines:
            if define.output is not None:
                self._result(define)
        for define in reversed(self.op.defines):
            self.index.setdefault(define.name, None)
            self._follow(define)
        for define in self.op.defines:
            self._alone(define)
        for tensor in self.op.tensors:
            if tensor.dtype == I4 and self.place.get(tensor.name) == len(tensor.extents) - 1:
                raise Tied  # two elements share a byte
            rest = [e for k, e in enumerate(tensor.extents) if k != self.place.get(tensor.name)]
            if any(e.dims() & dim for e in rest):
                raise Tied
        return self.place

    def _result(self, define: Define) -> None:
        assert define.output is not None
        tensor = self.op.tensor(define.output.tensor)
        assert tensor is not None
        for k, (at, extent) in enumerate(zip(define.output.at, tensor.extents, strict=True)):
            if extent == self.extent and at.index is not None:
                self._set(tensor.name, k)
                self.index[define.name] = at.index
                return
        raise Tied

    def _set(self, tensor: str, k: int) -> None:
        if self.place.setdefault(tensor, k) != k:
            raise Tied

    def _follow(self, define: Define) -> None:
        """Where a statement's axis lies in what it reads."""
        own = self.index[define.name]
        for name, at in _reads(define):
            inner = next((d for d in self.op.defines if d.name == name), None)
            k = next((k for k, i in enumerate(at) if own is not None and i.index == own), None)
            if inner is None:
                if k is not None:
                    self._set(name, k)
                continue
            lane = None if k is None else inner.indices[k]
            if self.index.setdefault(name, lane) != lane:
                raise Tied

    def _alone(self, define: Define) -> None:
        """Nothing of a statement may depend on the axis but by walking along it."""
        own, value = self.index[define.name], define.value
        dims = self.extent.dims()
        if isinstance(value, Scan) and value.index == own:
            raise Tied
        ranges = [r for r in define.ranges if r.index != own]
        ranges += value.ranges if isinstance(value, Reduce) else ()
        if any((r.upper.dims() | r.lower.dims()) & dims or r.index == own for r in ranges):
            raise Tied
        if own is not None and next(r for r in define.ranges if r.index == own).upper != self.extent:
            raise Tied
        loose = [*define.constraints, *(value.constraints if isinstance(value, Reduce) else ())]
        loose += [n.value for n in walk(value) if isinstance(n, Extent)]
        if define.output is not None:
            loose += [i for i in define.output.at if i.index is None]
        for name, at in _reads(define):
            known = self.place.get(name, -1)
            inner = next((d for d in self.op.defines if d.name == name), None)
            if inner is not None:
                lane = self.index[name]
                known = inner.indices.index(lane) if lane is not None else -1
            if known >= 0 and (own is None or at[known].index != own):
                raise Tied
            loose += [i for k, i in enumerate(at) if k != known]
        if any(_shows(i, own) or i.dims() & dims for i in loose):
            raise Tied


def _reads(define: Define) -> Iterator[tuple[str, tuple[Int, ...]]]:
    """What a statement reads, tensors of integers in index expressions too."""
    written = define.output.at if define.output is not None else ()
    for i in (*define.constraints, *written):
        yield from _data(i)
    for node in walk(define.value):
        if isinstance(node, Read):
            yield node.name, node.indices
        for i in integers(node):
            yield from _data(i)


def _data(value: Int) -> Iterator[tuple[str, tuple[Int, ...]]]:
    for atom in value.atoms():
        if isinstance(atom, Datum):
            yield atom.tensor, atom.indices


def _shows(value: Int, index: str | None) -> bool:
    """Whether an index stands in an expression outside of the places of an integer tensor."""
    for monomial, _ in value.terms:
        for atom, _ in monomial:
            if isinstance(atom, Index) and atom.name == index:
                return True
            if not isinstance(atom, Datum) and any(_shows(c, index) for c in children(atom)):
                return True
    return False
