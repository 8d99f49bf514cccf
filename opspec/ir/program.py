"""Statements, kernels, ops and modules: the whole of a checked spec.

Everything is frozen. Names: a tensor, scalar, dim or statement has one name in its
op, and they never clash. Generated names (temporaries from inlining) contain a
``.`` and so can't clash with a user's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from typing import Literal as L

from opspec.ir.composition import Evidence, Ledger, MachineBlock, Pipeline, Variant
from opspec.ir.dtypes import DType, DTypeParam, Storage
from opspec.ir.integers import Int
from opspec.ir.values import Range, Value
from opspec.source import Source, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor parameter or result: ``x: X[M, N]``, role ``in``, ``out`` or ``inout``."""

    name: str
    dtype: Storage
    extents: tuple[Int, ...]
    role: L["in", "out", "inout"]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarParam:
    """A scalar parameter: ``eps: f32 = 1e-6``."""

    name: str
    dtype: DType
    default: float | int | bool | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where a statement writes: ``tensor[at]``. ``at`` are bare indices, or affine
    (``y[m, c + C]``: several statements share the tensor), or gathered under ``assume distinct``."""

    tensor: str
    at: tuple[Int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Define:
    """One value per point of ``ranges`` where all ``constraints`` are ``>= 0``.

    ``origin`` is the name of the statement in the source that it belongs to: its own
    name for a written statement, and for a temporary (``kind`` "temp", made by inlining
    and by naming each reduction) the statement whose text it comes from.
    ``storage`` is how it rounds when it leaves its kernel (None: an output's own dtype,
    or f32 for a value that crosses without annotation).
    """

    name: str
    origin: str
    kind: L["value", "temp"]
    ranges: tuple[Range, ...]
    constraints: tuple[Int, ...] = ()
    value: Value
    storage: Storage | None = None
    output: Output | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def indices(self) -> tuple[str, ...]:
        """Names of its indices, in the order in which a ``Read`` fills them."""
        return tuple(r.index for r in self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A fusion boundary: what is defined and used only here never touches device memory.

    ``schedule``: overrides written in the kernel's ``schedule`` block, as (key, value) texts. ``whole``: of the
    first of several launches that a block was taken apart into, the block itself.
    """

    name: str
    body: tuple[Define, ...]
    schedule: tuple[tuple[str, str], ...] = ()
    whole: Kernel | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """One grouping of the op's statements into kernels. The op's own has name ``""``.

    ``analysis``: marked as costs only, no kernel is built for it.
    """

    name: str
    kernels: tuple[Kernel, ...]
    analysis: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Require:
    """A condition on dims checked at launch: ``left op right``; ``text`` as written."""

    op: L["lt", "le", "gt", "ge", "eq", "ne"]
    left: Int
    right: Int
    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assume:
    """A promise about data that the host does not check.

    ``distinct``: the elements of ``tensor`` are pairwise different.
    ``bound``: ``slack >= 0`` for every element (``assume len[b] <= T``: slack ``T - len[b]``).
    """

    kind: L["distinct", "bound"]
    tensor: str
    slack: Int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An operator. ``dims`` in order of declaration; ``derived`` the ``let`` dims."""

    name: str
    doc: str
    dims: tuple[str, ...]
    derived: tuple[tuple[str, Int], ...]
    dtype_params: tuple[DTypeParam, ...]
    tensors: tuple[Tensor, ...]
    scalars: tuple[ScalarParam, ...]
    parameters: tuple[str, ...]
    requires: tuple[Require, ...]
    assumes: tuple[Assume, ...]
    boundaries: tuple[Boundary, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def defines(self) -> tuple[Define, ...]:
        """All statements of the op in order, the same for every boundary."""
        return tuple(d for k in self.boundaries[0].kernels for d in k.body)

    def tensor(self, name: str) -> Tensor | None:
        """The tensor of that name, or None."""
        return next((t for t in self.tensors if t.name == name), None)

    @property
    def results(self) -> tuple[Tensor, ...]:
        """The tensors that the generated function returns, in order."""
        return tuple(t for t in self.tensors if t.role == "out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named shape, or a distribution: ``cases`` of (weight, dim → extent).

    ``dtypes`` fixes dtype parameters (``X = bf16``) where the workload says so.
    ``lengths`` gives what is known of data that bounds loops (``len ~ [512, 2048]``).
    """

    name: str
    op: str
    cases: tuple[tuple[float, tuple[tuple[str, int], ...]], ...]
    dtypes: tuple[tuple[str, DType], ...] = ()
    lengths: tuple[Lengths, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    def moments(self, dims: tuple[tuple[str, int], ...]) -> dict[str, Fraction]:
        """``sum(len)``, ``sum(len^2)`` and so on, at one case's dims."""
        return {k: v for lengths in self.lengths for k, v in lengths.moments(dict(dims)).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """What a workload says of a tensor of lengths with ``extents``.

    ``values``: (weight, length) of a distribution, or of each element where ``each``.
    ``exact``: powers of it are known, too; a mean alone gives the first moment only.
    """

    tensor: str
    extents: tuple[Int, ...]
    values: tuple[tuple[Fraction, Fraction], ...]
    exact: bool = True
    each: bool = False

    def elements(self, dims: dict[str, int]) -> int:
        """How many lengths there are."""
        total = 1
        for extent in self.extents:
            total *= extent.evaluate(dims)
        return total

    def moments(self, dims: dict[str, int]) -> dict[str, Fraction]:
        """Sums of powers over all elements: exact for values, expected ones for a distribution."""
        weight = sum((w for w, _ in self.values), Fraction(0))
        scale = self.elements(dims) / weight
        powers = (1, 2, 3, 4) if self.exact else (1,)
        return {
            f"sum({self.tensor})" if p == 1 else f"sum({self.tensor}^{p})": scale
            * sum((w * v**p for w, v in self.values), Fraction(0))
            for p in powers
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One line of an ``expect`` block, still text; ``span`` covers exactly the line."""

    workload: str
    text: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A checked spec file. ``files`` are all sources that it was made from, itself first
    (imports after it, recorded traffic, the prelude last); a hash over them keys every generated artefact.
    ``linked``: imported ops that only stages and evidence speak of, with their workloads; nothing is
    built for them."""

    doc: str
    ops: tuple[Op, ...]
    workloads: tuple[Workload, ...]
    expectations: tuple[Expectation, ...]
    files: tuple[Source, ...] = field(compare=False)
    pipelines: tuple[Pipeline, ...] = ()
    variants: tuple[Variant, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    machines: tuple[MachineBlock, ...] = ()
    ledgers: tuple[Ledger, ...] = ()
    linked: tuple[tuple[Op, tuple[Workload, ...]], ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over every source that the module was made from."""
        found = sha256()
        for source in self.files:
            found.update(source.text.encode("utf-8", "surrogatepass"))
            found.update(b"\0")
        return found.hexdigest()

    def op(self, name: str) -> Op | None:
        """The op of that name, or None."""
        return next((o for o in self.ops if o.name == name), None)

    def workloads_of(self, op: str) -> tuple[Workload, ...]:
        """The workloads that name this op, in order."""
        return tuple(w for w in self.workloads if w.op == op)

    def runnable(self, op: str, workload: str) -> tuple[Op, Workload] | None:
        """An own or linked op with the workload of that name, or None."""
        own = self.op(op)
        known = ((own, self.workloads_of(op)), *self.linked) if own is not None else self.linked
        pairs = ((o, w) for o, ws in known for w in ws)
        return next(((o, w) for o, w in pairs if o.name == op and w.name == workload), None)

    def variants_of(self, pipeline: str) -> tuple[Variant, ...]:
        """The variants of a pipeline, in order."""
        return tuple(v for v in self.variants if v.pipeline == pipeline)
