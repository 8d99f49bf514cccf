"""A printed kernel, and the names of its parameters and blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opspec.emit.describe import Tile
from opspec.emit.names import escape
from opspec.ir.integers import Int
from opspec.ir.program import Op, Tensor
from opspec.schedule.split import Split
from opspec.schedule.tile import (
    AxisPlan,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleText:
    """A function that some warps of a kernel run."""

    name: str
    doc: str
    params: tuple[str, ...]
    constexprs: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpRoles:
    """What warps of a kernel run, and what its tiles need: ``results`` that it stores, ``sums`` of each element beside
    each other, whether statements fold each step's product (``folded``), and ``vectors`` along columns beside it, and how
    many operands a step loads along rows and along columns. Of a chain of two products ``chained``: the rows that stay,
    and what the first and the second multiply, ``live``: blocks of a step that are needed at once, and ``mended``: the kernel that goes over tiles in which what lies
    outside the domain has made NaN, in the marks that both take."""

    functions: tuple[RoleText, ...]
    results: tuple[str, ...]
    sums: int = 1
    folded: bool = False
    vectors: int = 0
    row_tiles: int = 1
    column_tiles: int = 1
    chained: tuple[str, ...] = ()
    live: int = 1
    mended: KernelText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How a kernel meets its neighbours in an op: it ``waits`` for all of the launch before it, though its programs
    may be there earlier, and ``lets`` those of the next come before its own have ended.

    ``kept``: tensors that it writes and the next reads, which stay in L2 rather than others; ``spent``: those that
    the one before wrote, or that launches before it have read too, and nothing reads any more; ``early``: those that no
    launch of the op writes, whose loads need not wait; ``passed``: results that it writes and no launch reads.
    """

    waits: bool = False
    lets: bool = False
    kept: frozenset[str] = frozenset()
    spent: frozenset[str] = frozenset()
    early: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """A printed kernel. ``params`` in order, constexpr ones marked; ``blocks`` axis → constexpr name.

    ``tiles``: tensors that it takes as descriptors; ``described``: the same variant with such tensors.
    ``exact``: blocks that must be as long as their axis for these descriptors, and its extent.
    ``walked``: the axis whose indices a program takes one after another, as far as others leave them.
    ``segments``: the axis whose tiles begin where segments do, and how many segments there are.
    ``counts``: how many taps loops that are written out take, as constants.
    ``warps``: the same variant in Gluon, with warps that have ``roles``.
    ``marks``: the parameter that says of which tiles another launch has to make results anew.
    """

    name: str
    params: tuple[str, ...]
    constexprs: tuple[str, ...]
    lines: tuple[str, ...]
    helpers: tuple[str, ...]
    blocks: dict[str, str]
    grouped: bool
    persistent: bool = False
    tiles: Mapping[str, Tile] = field(default_factory=dict)
    exact: Mapping[str, Int] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    edges: Mapping[str, tuple[Int, str]] = field(default_factory=dict)
    counts: Mapping[str, Int] = field(default_factory=dict)
    segments: tuple[str, Int] | None = None
    walked: str | None = None
    described: KernelText | None = None
    warps: KernelText | None = None
    roles: WarpRoles | None = None
    marks: str = ""
    split: SplitText | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """The kernels of a stream that is walked in parts, and the one that joins these."""

    split: Split
    partial: KernelText
    merge: KernelText

    def kept_edges(self, text: KernelText) -> tuple[str, ...]:
        """Which edges of the whole kernel, ``text``, a part has, too: those of streams that are not cut."""
        return tuple(e for e in text.edges if e.startswith("EDGE_") and e in self.partial.edges)


def identifiers(op: Op) -> dict[str, str]:
    """Python identifiers for every dim, tensor and scalar of an op."""
    return {n: escape(n) for n in (*op.dims, *(t.name for t in op.tensors), *(s.name for s in op.scalars))}


def pointer(tensor: str) -> str:
    """The pointer parameter of a tensor."""
    return f"{tensor.replace('.', '_')}_ptr"


def descriptor(tensor: str) -> str:
    """The descriptor parameter of a tensor."""
    return f"{tensor.replace('.', '_')}_desc"


def stride(tensor: Tensor, position: int) -> str:
    """The stride parameter of one axis of a tensor: by its dim where that is telling, else by position."""
    dims = [_bare(e) for e in tensor.extents]
    letter = dims[position]
    label = letter if letter is not None and dims.count(letter) == 1 else str(position)
    return f"{tensor.name.replace('.', '_')}_stride_{label}"


def _bare(extent: Int) -> str | None:
    dims = extent.dims()
    return next(iter(dims)) if len(dims) == 1 and str(extent) in dims else None


def block_names(axes: tuple[AxisPlan, ...]) -> dict[str, str]:
    """Constexpr names of the block extents: by dim where unique, else by axis."""
    out: dict[str, str] = {}
    blocked = [a for a in axes if a.blocked]
    dims = [_bare(a.extent) for a in blocked]
    for axis, dim in zip(blocked, dims, strict=True):
        out[axis.name] = f"BLOCK_{dim if dim is not None and dims.count(dim) == 1 else axis.name.upper()}"
    if len(set(out.values())) < len(out):
        out = {a: f"BLOCK_{a}" for a in out}
    for axis in blocked:
        if len(axis.dims) == 3:
            out |= zip(axis.dims, (out[axis.name], "STEPS", "WIDE"), strict=True)
        if axis.rows:
            out[f"{axis.name}.step"] = out[axis.name].replace("BLOCK", "ROWS", 1)
        if axis.walked:
            out[f"{axis.name}.once"] = out[axis.name].replace("BLOCK", "ONCE", 1)
    return out


def count_name(axis: AxisPlan, label: str = "TAPS") -> str:
    """The constexpr name of how many taps or rows an axis has."""
    return f"{label}_{_bare(axis.extent) or axis.name.upper()}"
