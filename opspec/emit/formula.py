"""The spec as plain torch: what a driver checks against in float64 and times as a peer.

One line per statement, in the order of the spec, over dense tensors. It is written as a user
of torch would write it: products of native operands go to ``einsum``, so that the vendor's
library runs them; everything else is computed in f32, or in float64 where the inputs are.
It shares nothing with the kernels' emitter.
"""

from __future__ import annotations

import re

from opspec.emit.formula_reductions import eight_bits, narrow_lines, stored_dtype
from opspec.emit.formula_results import Results
from opspec.emit.host import host_int, linear, stored_extents, strip_parens
from opspec.emit.names import escape
from opspec.emit.segment_formula import join_segments, split_segments
from opspec.emit.torch_access import NoFormula
from opspec.emit.torch_casts import TORCH, unpacked
from opspec.ir.dtypes import F32, I4, DTypeParam, compute_dtype
from opspec.ir.facts import facts_of
from opspec.ir.integers import Dim
from opspec.ir.program import Define, Op, ScalarParam, Tensor
from opspec.ir.values import Reduce, Scan


def formula(op: Op) -> tuple[str, ...]:
    """Lines of the body of ``reference``; raises ``NoFormula``."""
    split = split_segments(op)
    if split is not None:
        return join_segments(split, _Formula(split.op).lines())
    return _Formula(op).lines()


OWN = frozenset({"real", "half", "half16", "torch", "device"})


def parameters(op: Op) -> list[str]:
    """Names that ``reference`` takes in order: the inputs, in Python's spelling."""
    outs, later = {t.name for t in op.results}, {s.name for s in keyword_scalars(op)}
    return [_own(p) for p in op.parameters if p not in outs | later]


def _own(name: str) -> str:
    """The name of something that comes by position, which gives way to the formula's own names."""
    return f"{name}_" if name in OWN else escape(name)


def keywords(op: Op) -> list[str]:
    """Names that ``reference`` takes by name alone, as the generated function does: see ``free_dims``."""
    return [*(escape(s.name) for s in keyword_scalars(op)), *(escape(d) for d in free_dims(op))]


def keyword_scalars(op: Op) -> list[ScalarParam]:
    """Scalars without a default that stand behind one with a default."""
    named = [s for p in op.parameters for s in op.scalars if s.name == p]
    first = next((k for k, s in enumerate(named) if s.default is not None), len(named))
    return [s for s in named[first:] if s.default is None]


def free_dims(op: Op) -> list[str]:
    """Dims that no shape of an input tells."""
    told = {dim for dim, *_ in told_dims(op)}
    return [d for d in op.dims if d not in told]


def told_dims(op: Op) -> list[tuple[str, Tensor, int, int, int]]:
    """Dims that the shapes of inputs tell: tensor, axis, and the factor and offset of the dim there."""
    inputs = [t for p in op.parameters for t in op.tensors if t.name == p and t.role != "out"]
    found: dict[str, tuple[str, Tensor, int, int, int]] = {}
    axes = [(t, k, e) for t in inputs for k, e in enumerate(stored_extents(t))]
    for tensor, k, extent in axes:
        if isinstance(extent.atom, Dim):
            found.setdefault(extent.atom.name, (extent.atom.name, tensor, k, 1, 0))
    for tensor, k, extent in axes:
        solved = linear(extent)
        if solved is not None and solved[0] not in found:
            found[solved[0]] = (solved[0], tensor, k, solved[1], solved[2])
    return list(found.values())


class _Formula(Results):
    def __init__(self, op: Op) -> None:
        self.op = op
        self.facts = facts_of(op)
        named = {s.name for s in keyword_scalars(op)}
        self.names = {n: escape(n) for n in (*op.dims, *named)}
        placed = (*(t.name for t in op.tensors), *(s.name for s in op.scalars))
        self.names |= {n: _own(n) for n in placed if n not in named}
        self.taken = {*self.names.values(), *OWN}
        self.taken |= {f"{self.names[t.name]}_dtype" for t in op.tensors}
        self.body: list[str] = []
        self.var: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.defines = {d.name: d for d in op.defines}
        self.guards = 0
        self.masked: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        self.kernel = {d.name: k.name for k in op.boundaries[0].kernels for d in k.body}
        self.raw = self.raw_inputs()

    def lines(self) -> tuple[str, ...]:
        self._dims()
        for tensor in self.op.tensors:
            if tensor.role != "out":
                self._input(tensor)
        partial: dict[str, list[Define]] = {}
        for define in self.op.defines:
            self.current = define
            self._define(define)
            if define.output is not None:
                partial.setdefault(define.output.tensor, []).append(define)
        order = [t for t in self.op.tensors if t.role in ("out", "inout") and t.name in partial]
        order.sort(key=lambda t: t.role == "inout")
        results = [self.result(t, partial[t.name]) for t in order]
        self.body.append(f"return {', '.join(results)}")
        return _used_only(self.body)

    # frame ---------------------------------------------------------------------
    def _dims(self) -> None:
        for dim, tensor, k, factor, offset in told_dims(self.op):
            size = f"{self.names[tensor.name]}.shape[{k}]"
            if offset:
                size += f" {'-' if offset > 0 else '+'} {abs(offset)}"
            if factor > 1:
                size = f"({size}) // {factor}" if offset else f"{size} // {factor}"
            self.body.append(f"{self.names[dim]} = {size}")
        inputs = [t for t in self.op.tensors if t.role != "out"]
        if not inputs:
            raise NoFormula("an op without tensor inputs")
        self.body.append(f"device = {self.names[inputs[0].name]}.device")
        floats = [t for t in inputs if compute_dtype(t.dtype) is F32]
        if floats:
            name = self.names[floats[0].name]
            self.body.append(f"real = torch.float64 if {name}.dtype == torch.float64 else torch.float32")
        else:
            self.body.append("real = torch.float32")
        self.body += narrow_lines()

    def _input(self, tensor: Tensor) -> None:
        """Bring an input into the type that it is computed with."""
        name, kind = self.names[tensor.name], compute_dtype(tensor.dtype)
        if tensor.dtype == I4:
            self.body += unpacked(name, host_int(tensor.extents[-1], self.names))
        elif tensor.name in self.raw:
            if eight_bits(tensor.dtype):  # torch multiplies no such tensors; bf16 holds what is in them
                self.body.append(f"{name} = {name}.to(half)")
        elif kind is F32:
            self.body.append(f"{name} = {name}.to(real)")
        elif kind != tensor.dtype or kind.kind == "bool":
            self.body.append(f"{name} = {name}.to({TORCH[kind.name]})")

    # statements ------------------------------------------------------------------
    def _define(self, define: Define) -> None:
        name = self.fresh(define.name)
        value = define.value
        axes, self.narrow = define.indices, False
        if isinstance(value, Reduce):
            text, axes = self.reduction(value)
        elif isinstance(value, Scan):
            text = self.scan(value, name)
        else:
            present = self.spread(value)
            axes = tuple(i for i in axes if i in present)
            text = self.tensor(value, axes)
        self.body.append(f"{name} = {strip_parens(text)}")
        if self.narrow:
            self.body.append(f"{name} = {name}.to(real)")
        self.var[define.name] = (name, axes)
        stored = self._stored_as(define)
        if stored is not None:
            # another kernel reads it back as it was stored
            kept = self.fresh(f"{define.name}.stored")
            self.body.append(f"{kept} = {name}.to({stored}).to(real)")
            self.kept[define.name] = kept

    def _stored_as(self, define: Define) -> str | None:
        """The torch dtype that a value is rounded to where it crosses to another kernel; None if it isn't."""
        dtype = stored_dtype(self.op, define)
        if dtype is None or dtype == F32 or compute_dtype(dtype) is not F32:
            return None
        return self.dtype_of(dtype) if isinstance(dtype, DTypeParam) else TORCH[dtype.name]

    def fresh(self, base: str) -> str:
        parts = [p for p in base.split(".") if not p.isdigit()]
        name = escape("_".join(parts[-2:]))
        k, unique = 2, name
        while unique in self.taken:
            unique, k = f"{name}_{k}", k + 1
        self.taken.add(unique)
        return unique


def _used_only(lines: list[str]) -> tuple[str, ...]:
    """The lines without assignments of names that nothing below them uses."""
    kept: list[str] = []
    words: set[str] = set()
    for line in reversed(lines):
        name = re.match(r"(\w+) = ", line)
        if name is not None and name[1] not in words:
            continue
        words |= set(re.findall(r"\w+", line))
        kept.append(line)
    return tuple(reversed(kept))


def dtype_lines(op: Op, lines: tuple[str, ...]) -> tuple[str, ...]:
    """The formula with the dtype of each generic input kept before it is widened."""
    joined = "\n".join(lines)
    labels = [escape(t.name) for t in op.tensors if re.search(rf"\b{escape(t.name)}_dtype\b", joined)]
    return (*(f"{name}_dtype = {name}.dtype" for name in labels), *lines)


__all__ = ["NoFormula", "dtype_lines", "formula", "free_dims", "keywords", "parameters"]
