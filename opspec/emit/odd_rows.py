"""Which streams along memory may begin before their row, where a wide load can."""

from __future__ import annotations

from typing import Protocol

from opspec.emit.expressions import TL, Expressions, literal, wrap
from opspec.emit.signature import stride
from opspec.ir.dtypes import BOOL, I4, compute_dtype
from opspec.ir.integers import ZERO, Int
from opspec.ir.program import Tensor
from opspec.ir.values import Compare, Extent, Literal, Value, free_indices, walk
from opspec.schedule.exact import holds, number
from opspec.schedule.tile import (
    Begin,
    Collapse,
    Combine,
    Fetch,
    Let,
    Locate,
    Loop,
    Remark,
    TileProgram,
    inside,
    statements,
)


class Printing(Protocol):
    """What these need of a kernel's printer."""

    program: TileProgram
    x: Expressions
    names: dict[str, str]
    blocks: dict[str, str]
    odd_row: Fetch | None

    def put(self, text: str) -> None:
        """Add a line."""

    def fresh(self, base: str) -> str:
        """An unused name."""

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""

    def address(self, name: str, at: tuple[Int, ...], axes: tuple[str, ...]) -> str:
        """The pointer to a tensor's elements."""

    def all_of(self, masks: tuple[Value, ...], axes: tuple[str, ...]) -> tuple[str, int]:
        """A conjunction as it is written."""


DIMS = 3  # of a stream in steps and lanes


def odd_row(program: TileProgram) -> Fetch | None:
    """The only load of a program's only stream, where nothing else of it depends on where the stream begins.

    Places before the row give what those behind it give: the load's default, and the same masks cut both off.
    """
    loops = [s for s in statements(program.body) if isinstance(s, Loop)]
    if len(loops) != 1 or loops[0] not in program.body:
        return None
    (loop,) = loops
    axis = program.axis(loop.axis)
    plain = isinstance(loop.start, Extent) and loop.start.value == ZERO and loop.segments is None
    plain = plain and isinstance(loop.stop, Extent) and loop.stop.value == axis.extent
    if not plain or len(axis.dims) != DIMS or loop.reverse or loop.inner is not None:
        return None
    if not all(isinstance(s, Fetch | Let | Begin | Collapse | Combine | Locate | Remark) for s in loop.body):
        return None
    end = inside(axis.name, axis.extent)
    if any(m != end and axis.name in free_indices(m) for s in loop.body for m in _masks(s)):
        return None
    if any(part == end for s in loop.body for v in _made(s) for part in walk(v)):
        return None  # a value that is chosen by where the row ends doesn't know where it begins
    loads = [
        s
        for s in loop.body
        if isinstance(s, Fetch)
        and (set(axis.dims) & set(s.var.axes) or any(axis.name in i.free_indices() for i in s.at))
    ]
    if len(loads) != 1 or not _wide(program, loads[0], axis.name, end):
        return None
    return loads[0]


def _wide(program: TileProgram, s: Fetch, axis: str, end: Value) -> bool:
    """Whether a load is one of neighbours along a row, with a default of its own type outside of it."""
    tensor = next(t for t in program.tensors if t.name == s.tensor)
    default = None if s.other is None else number(s.other)
    grid = {a.name for a in program.axes if a.role == "grid"}
    if not grid or not grid <= {n for i in s.at for n in i.free_indices()}:
        return False
    along = s.at[-1].index == axis and not any(axis in i.free_indices() for i in s.at[:-1])
    known = default is not None and holds(tensor.dtype, default) and tensor.dtype not in (I4, BOOL)
    return along and known and s.var.axes == program.axis(axis).dims and s.masks == (end,) and not s.raw


def _made(s: object) -> tuple[Value, ...]:
    return (s.value,) if isinstance(s, Let | Collapse | Combine | Locate) else ()


def _masks(s: object) -> tuple[Value, ...]:
    return s.masks if isinstance(s, Fetch | Collapse | Combine | Locate) else ()


def first_of_row(p: Printing, s: Fetch) -> str:
    """Where a walk over such a row begins; the row gets a name."""
    row = p.fresh(f"{s.var.name}_row")
    p.names[f"{s.var.name}.row"] = row
    p.put(f"{row} = {p.address(s.tensor, s.at[:-1], ())}")
    p.put("# one of odd length is loaded from where a wide load can begin")
    return f"-{p.x.call('before_row', row, 'ODD')[0]}"


def fetch_row(p: Printing, s: Fetch) -> None:
    """A load of a chunk of such a row."""
    tensor, axis = p.tensor(s.tensor), s.at[-1].index or ""
    default = None if s.other is None else number(s.other)
    assert default is not None
    other = literal(Literal(value=default, dtype=s.var.dtype))[0]
    lanes, steps, near = (p.blocks[d] for d in p.x.dims[axis])
    end = p.x.integer(p.program.axis(axis).extent, ())[0]
    row, along = p.names[f"{s.var.name}.row"], stride(tensor, len(s.at) - 1)
    args = [row, along, f"{p.names[axis]}_start", end, other, lanes, steps, near, "ODD"]
    text = p.x.call("load_row", *args)[0]
    if (widened := compute_dtype(tensor.dtype)) != tensor.dtype:
        text += f".to({TL[widened.name]})"
    p.put(f"{s.var.name} = {text}")


def mask_row(p: Printing, masks: tuple[Value, ...], axes: tuple[str, ...]) -> str:
    """A conjunction with where a chunk is inside of its row."""
    assert p.odd_row is not None
    (end,) = p.odd_row.masks
    assert isinstance(end, Compare)
    args = [p.x.value(v, axes)[0] for v in (end.a, end.b)]
    texts = [p.x.call("in_row", *args, "ODD")[0]]
    if rest := tuple(m for m in masks if m != end):
        texts.append(wrap(p.all_of(rest, axes), 4))
    return " & ".join(texts)
