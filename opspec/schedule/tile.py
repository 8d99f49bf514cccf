"""The tile program: what one program of a launch does, free of any block language's spelling.

Values are the same pointwise trees as in the IR; a ``Read`` names a block variable.
Accesses keep tensor, coordinates and conditions apart, so that a printer may turn them
into pointers and masks, or into a descriptor. Nothing here says Triton.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as L
from typing import assert_never

from opspec.ir.dtypes import BOOL, I64, DType, Storage, choices
from opspec.ir.integers import Int, index
from opspec.ir.program import Op, Tensor
from opspec.ir.values import Compare, Extent, Monoid, Read, Value, integers, walk

Role = L["grid", "tile", "stream"]
Precision = L["ieee", "tf32"]
Hint = L["evict_first", "evict_last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisPlan:
    """How one axis of the block is walked.

    ``dims``: its block dimensions: none for a scalar, its own name, or steps, lanes and neighbours of a stream.
    ``rows``: whether each place of its block stands for several neighbours, which a thread takes one by one;
    ``walked``: a few at once, and of a window those that the next ones share with them stay at hand.
    """

    name: str
    extent: Int
    role: Role
    dims: tuple[str, ...]
    rows: bool = False
    walked: bool = False

    @property
    def blocked(self) -> bool:
        """Whether it has a block dimension."""
        return bool(self.dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Var:
    """A block variable: ``axes`` are its block dimensions in order; scalars have none."""

    name: str
    axes: tuple[str, ...]
    dtype: DType

    @property
    def read(self) -> Read:
        """The variable as a value."""
        return Read(name=self.name, indices=tuple(index(a) for a in self.axes), dtype=self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """``var = tensor[at]`` where all ``masks`` hold, ``other`` elsewhere; ``raw`` keeps the storage type.

    ``packed``: it keeps it too, and is converted wherever it is read. ``again``: the variable that was loaded so and
    that this one is taken from, and the how manieth time that is. ``hint``: what L2 does with it.
    """

    var: Var
    tensor: str
    at: tuple[Int, ...]
    masks: tuple[Value, ...]
    other: Value | None
    raw: bool
    reread: bool = False
    packed: bool = False
    again: tuple[str, int] | None = None
    hint: Hint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Let:
    """``var = value``."""

    var: Var
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse:
    """``var`` = ``value`` combined over the block dimensions ``over`` (masked lanes give the identity).

    ``counted`` = at how many of them all ``points`` hold, beside a sum and in its shape.
    """

    var: Var
    monoid: Monoid
    value: Value
    axes: tuple[str, ...]
    over: tuple[str, ...]
    masks: tuple[Value, ...] = ()
    counted: Var | None = None
    points: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """``var`` = the identity of ``monoid``; of an arg-reduction ``nowhere``, which is no index."""

    var: Var
    monoid: Monoid
    nowhere: Int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Combine:
    """``var`` = ``var`` ⊕ ``value`` (masked lanes give the identity)."""

    var: Var
    monoid: Monoid
    value: Value
    masks: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Locate:
    """``var`` = the least ``at`` over the dimensions ``over`` where ``value`` is ``extreme`` (NaN is
    NaN), ``nowhere`` if it is so at none; ``monoid``: that of the extreme, max or min."""

    var: Var
    monoid: Monoid
    value: Value
    extreme: Value
    at: Value
    nowhere: Int
    axes: tuple[str, ...]
    over: tuple[str, ...]
    masks: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """``var`` = ``value`` combined along the dimension ``along`` up to each point.

    ``along`` None: a loop goes along the axis one point at a time. ``carry``: what came before this
    step of a stream, moved on here. Masked points give the identity. ``exclusive``, ``reverse`` and
    ``decay`` as in a prefix of the graph; ``axis`` is the one that it goes along.
    """

    var: Var
    monoid: Monoid
    value: Value
    axes: tuple[str, ...]
    axis: str
    along: str | None
    reverse: bool = False
    exclusive: bool = False
    decay: Value | None = None
    carry: Var | None = None
    masks: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """An operand of a block product. ``cast`` is the type it enters in; ``axes`` its dimensions in order.

    ``apart``: those of its masks that the other operand has no dimensions for. Where one fails this operand
    is 0, and the other may hold infinity or NaN, which must not count.
    """

    value: Value
    axes: tuple[str, ...]
    cast: Storage | None
    masks: tuple[Value, ...] = ()
    apart: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply:
    """``var`` = ``a @ b`` or ``var + a @ b`` on the matrix unit; f32 accumulation."""

    var: Var
    a: Operand
    b: Operand
    accumulate: bool
    precision: Precision


def on_unit(product: Multiply) -> bool:
    """Whether a matrix unit multiplies: operands of fewer than 32 bits, or f32 that may be rounded to tf32."""
    casts = [o.cast for o in (product.a, product.b)]
    return product.precision == "tf32" or all(
        c is not None and any(d.bits < 32 for d in choices(c)) for c in casts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """``tensor[at] = value`` over the block dimensions ``axes`` where all ``masks`` hold."""

    tensor: str
    at: tuple[Int, ...]
    value: Value
    axes: tuple[str, ...]
    masks: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A variable that a loop carries, and how two of its values combine.

    Plain: by ``monoid``. With a ``state``, another carried variable, each is first brought to the joint
    state by ``factor``, a function of the values that ``OLD`` and ``NEW`` stand for. A sum about two means
    names the carried ``sums`` and the ``count`` that make them, and is first brought to the joint ones.
    """

    var: Var
    monoid: Monoid
    state: str | None = None
    factor: Value | None = None
    sums: tuple[str, str] | None = None
    count: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """The part of a stream, ``start`` (None: the loop's) to ``stop``, whose whole tiles meet the masks ``implied``.

    ``end``: of a part of a stream that is cut where tiles end, the extent that says whether there is an edge.
    """

    start: Value | None
    stop: Value
    implied: tuple[Value, ...]
    end: Int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What a chunk reads, loaded while the one before it is computed: ``loads``, before the loop those of the first
    chunk, and under which names a chunk has what they kept ``now``, in their order."""

    loads: Unroll
    now: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A sequential walk over a stream axis in chunks, from ``start`` to ``stop``; the last chunk first
    where it is ``reverse``.

    With ``segments``, a tensor of offsets, ``start`` and ``stop`` are the first and the last of some places,
    and the walk takes the segments in which they lie.
    """

    axis: str
    start: Value
    stop: Value
    body: tuple[Statement, ...]
    sweep: int
    sweeps: int
    inner: Inner | None = None
    carried: tuple[Carried, ...] = ()
    reverse: bool = False
    segments: str | None = None
    ahead: Ahead | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unroll:
    """``body`` once for each ``index`` below ``count``, all of them written out when a kernel compiles.

    ``place``: an axis, and where each step puts it. ``kept``: variables of which every step's value stays at hand,
    each with the name of these values; ``raw``: those that are loaded, in the type in which they are stored.
    """

    index: str
    count: Int
    body: tuple[Statement, ...]
    place: tuple[str, Int] | None = None
    kept: tuple[tuple[str, str], ...] = ()
    raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """``var`` = the value number ``at`` of those that were ``kept``; as ``stored`` in that tensor, if it was not loaded
    to be computed with at once."""

    var: Var
    kept: str
    at: Int
    stored: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line of the spec, or a reason, to stand above what it became."""

    text: str


Statement = (
    Fetch
    | Let
    | Collapse
    | Begin
    | Combine
    | Locate
    | Scan
    | Multiply
    | Write
    | Loop
    | Unroll
    | Take
    | Remark
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileProgram:
    """One structural variant of a kernel block. ``sizes``: integers from the host beside the op's dims."""

    op: Op
    kernel: str
    variant: str
    axes: tuple[AxisPlan, ...]
    order: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    body: tuple[Statement, ...]
    vars: tuple[Var, ...]
    data: tuple[tuple[tuple[str, tuple[Int, ...]], str], ...]
    notes: tuple[str, ...]
    sizes: tuple[str, ...] = ()

    def axis(self, name: str) -> AxisPlan:
        """The plan of an axis."""
        return next(a for a in self.axes if a.name == name)


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, those inside loops too."""
    for s in body:
        yield s
        if isinstance(s, Loop) and s.ahead is not None:
            yield from statements((s.ahead.loads,))
        if isinstance(s, Loop | Unroll):
            yield from statements(s.body)


def assigned(s: Statement) -> tuple[Var, ...]:
    """The variables to which a statement gives a value."""
    match s:
        case Collapse(var=var, counted=Var() as counted):
            return var, counted
        case Fetch(var=var) | Let(var=var) | Collapse(var=var) | Begin(var=var) | Combine(var=var):
            return (var,)
        case Locate(var=var) | Scan(var=var) | Multiply(var=var) | Take(var=var):
            return (var,)
        case Write() | Loop() | Unroll() | Remark():
            return ()
        case _:
            assert_never(s)


def inside(axis: str, extent: Int) -> Value:
    """The mask of an axis against its end."""
    at, end = Extent(value=index(axis), dtype=I64), Extent(value=extent, dtype=I64)
    return Compare(op="lt", a=at, b=end, dtype=BOOL)


def integers_of(s: Statement) -> Iterator[Int]:
    """The integer expressions of a statement: addresses, and those inside its values."""
    if isinstance(s, Fetch | Write):
        yield from s.at
    if isinstance(s, Take):
        yield s.at
    for value in values_of(s):
        for part in walk(value):
            if not isinstance(part, Read):
                yield from integers(part)


def values_of(s: Statement) -> Iterator[Value]:
    """The values that a statement uses; of a loop those of its bounds."""
    match s:
        case Fetch(masks=masks, other=other):
            yield from masks
            if other is not None:
                yield other
        case Let(value=value):
            yield value
        case Collapse(value=value, masks=masks, points=points):
            yield from (value, *masks, *points)
        case Combine(value=value, masks=masks) | Write(value=value, masks=masks):
            yield value
            yield from masks
        case Locate(value=value, extreme=extreme, at=at, masks=masks):
            yield from (value, extreme, at, *masks)
        case Scan(value=value, decay=decay, masks=masks):
            yield value
            if decay is not None:
                yield decay
            yield from masks
        case Multiply(a=a, b=b):
            for operand in (a, b):
                yield operand.value
                yield from operand.masks
        case Loop(start=start, stop=stop):
            yield start
            yield stop
        case Begin() | Unroll() | Take() | Remark():
            return
        case _:
            assert_never(s)
