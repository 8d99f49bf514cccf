"""Scans and the places of extremes as Triton text: what a value of one point alone can't say."""

from __future__ import annotations

from typing import Protocol

from opspec.emit.expressions import ATOM, TL, Expressions, Text, wrap
from opspec.ir.dtypes import F32, DType
from opspec.ir.integers import index
from opspec.ir.values import Extent, Monoid, Read, Scalar, Value, walk
from opspec.schedule.tile import Collapse, Fetch, Locate, Loop, Scan, TileProgram, Var, statements

SCAN: dict[Monoid, str] = {
    "sum": "tl.cumsum", "prod": "tl.cumprod", "max": "scan_max", "min": "scan_min", "any": "scan_any", "all": "scan_all",
}  # fmt: skip
BEFORE: dict[Monoid, str] = {
    "sum": "sum_before", "prod": "prod_before", "max": "max_before", "min": "min_before", "any": "any_before",
    "all": "all_before",
}  # fmt: skip


class Printing(Protocol):
    """What these need of a kernel's printer."""

    x: Expressions
    names: dict[str, str]
    blocks: dict[str, str]
    implied: tuple[Value, ...]
    full: bool
    odd_row: Fetch | None

    def wide(self, value: Value) -> str:
        """How many neighbours one load brings of what a value is made from."""

    def shape(self, axes: tuple[str, ...]) -> str:
        """The shape of a block of these dimensions."""

    def put(self, text: str) -> None:
        """Add a line."""

    def mask(self, masks: tuple[Value, ...], axes: tuple[str, ...]) -> str:
        """A conjunction, under a name where it is long."""

    def masked(self, value: Value, masks: tuple[Value, ...], axes: tuple[str, ...], monoid: Monoid) -> Text:
        """A value, with the identity where a mask fails."""

    def chosen(self, masks: tuple[Value, ...], axes: tuple[str, ...], text: Text, other: str) -> Text:
        """A text where all masks hold, else the other."""

    def join(self, monoid: Monoid, a: Text, b: Text) -> str:
        """Two values combined."""

    def neutral(self, monoid: Monoid, dtype: DType) -> str:
        """The identity as a number."""

    def reduced(self, text: str, monoid: Monoid, axes: tuple[str, ...], over: tuple[str, ...]) -> str:
        """A block reduced over some of its dimensions."""


def print_counted(p: Printing, s: Collapse, counted: Var) -> None:
    """A sum, and beside it the number of its points.

    In one reduction: a number of points of its own has no load that says how threads hold it, and would go
    through shared memory to meet the sum at every step.
    """
    value = p.masked(s.value, s.masks, s.axes, s.monoid)[0]
    bare = not s.points or set(s.points) & set(p.implied)
    one = f"tl.full({p.shape(s.axes)}, 1.0, tl.float32)" if bare else "1.0"
    points = p.chosen(s.points, s.axes, (one, ATOM), "0.0")[0]
    p.x.used.add("sum_both")
    for dim in sorted(s.over, key=s.axes.index, reverse=True):
        p.put(f"{s.var.name}, {counted.name} = sum_both({value}, {points}, axis={s.axes.index(dim)})")
        value, points = s.var.name, counted.name


def print_locate(p: Printing, s: Locate) -> None:
    """The least index at which a value is the extreme: NaN is the extreme where one is NaN."""
    value, extreme = p.x.value(s.value, s.axes), p.x.value(s.extreme, s.axes)
    if s.value.dtype is F32:
        hit = p.x.call("is_greatest" if s.monoid == "max" else "is_least", value[0], extreme[0])[0]
    else:
        hit = f"{wrap(value, 2)} == {wrap(extreme, 2)}"
    if s.masks:
        mask = p.mask(s.masks, s.axes)
        hit = f"({hit}) & {mask}" if mask.isidentifier() else f"({hit}) & ({mask})"
    nowhere = p.x.value(Extent(value=s.nowhere, dtype=s.var.dtype), ())[0]
    axis = s.at.value.index if isinstance(s.at, Extent) else None
    if axis is not None and len(s.axes) == 3 and s.axes == p.x.dims[axis] and s.over == s.axes[1:]:
        odd = [] if p.odd_row is None else ["ODD"]
        first = p.x.call("first_of_lanes", hit, f"{p.names[axis]}_start", nowhere, *odd)[0]
        p.put(f"{s.var.name} = {first}")
        return
    at = p.x.value(s.at, s.axes)[0]
    if axis is not None and p.full and len(s.axes) == 2 and s.over == s.axes[1:] == p.x.dims[axis]:
        args = [hit, at, nowhere, p.wide(s.value), "FULL"]
        p.put(f"{s.var.name} = {p.x.call('first_of_rows', *args)[0]}")
        return
    text = f"tl.where({hit}, {at}, {nowhere})"
    for dim in sorted(s.over, key=s.axes.index, reverse=True):
        text = f"tl.min({text}, axis={s.axes.index(dim)})"
    p.put(f"{s.var.name} = {text}")


def print_scan(p: Printing, s: Scan) -> None:
    """A running reduction, moved on along a stream where it is carried."""
    if s.decay is not None:
        _print_decay(p, s, s.decay)
        return
    text = _masked(p, s, s.value, p.neutral(s.monoid, s.value.dtype))
    if s.along is None:
        assert s.carry is not None
        step = f"{s.carry.name} = {p.join(s.monoid, _carried(p, s), text)}"
        lines = [f"{s.var.name} = {s.carry.name}", step]
        for line in lines if s.exclusive else reversed(lines):
            p.put(line)
        return
    call = _call(p, s, text[0])
    if s.carry is None:
        p.put(f"{'_, ' if s.exclusive else ''}{s.var.name} = {call}")
        return
    within = fresh(p, f"{s.var.name}_within")
    before = fresh(p, f"{within}_before")
    p.put(f"{within}, {before} = {call}" if s.exclusive else f"{within} = {call}")
    own = before if s.exclusive else within
    p.put(f"{s.var.name} = {p.join(s.monoid, _carried(p, s), (own, ATOM))}")
    total = _last(p, s, within)
    p.put(f"{s.carry.name} = {p.join(s.monoid, (s.carry.name, ATOM), (total, ATOM))}")


def _call(p: Printing, s: Scan, text: str) -> str:
    """The scan of one block; without the point itself, the pair of both."""
    assert s.along is not None
    name = BEFORE[s.monoid] if s.exclusive else SCAN[s.monoid]
    if not name.startswith("tl."):
        p.x.used.add(name)
    none = f", {p.neutral(s.monoid, s.value.dtype)}" if s.exclusive and s.monoid in ("max", "min") else ""
    return f"{name}({text}{none}, axis={s.axes.index(s.along)}{_back(s)})"


def _back(s: Scan) -> str:
    return ", reverse=True" if s.reverse else ""


def _last(p: Printing, s: Scan, text: str) -> str:
    """A value at the last point of a chunk in the order of the scan."""
    assert s.along is not None
    name = p.names[s.axis]
    last = f"{name}_start" if s.reverse else f"{name}_start + {p.blocks[s.along]} - 1"
    here = p.x.integer(index(s.axis), s.axes)[0]
    if (rows := p.blocks.get(f"{s.axis}.step")) is not None:  # of parts the last
        last = f"{name}_start + ({p.blocks[s.along]} - 1) * {rows}"
        here = p.x.integer(index(f"{s.axis}.place"), s.axes)[0]
    zero = {"float": "0.0", "int": "0", "bool": "False"}[s.var.dtype.kind]
    picked = f"tl.where({here} == {last}, {text}, {zero})"
    return p.reduced(picked, "any" if s.var.dtype.kind == "bool" else "sum", s.axes, (s.along,))


def _print_decay(p: Printing, s: Scan, decay: Value) -> None:
    """``s[t] = a[t] * s[t - 1] + x[t]``: pairs of a factor and a sum, which associate."""
    x = _masked(p, s, s.value, "0.0")
    a = _masked(p, s, decay, "1.0")
    if s.along is None:
        assert s.carry is not None
        lines = [
            f"{s.var.name} = {s.carry.name}",
            f"{s.carry.name} = {p.x.call('decayed', s.carry.name, a[0], x[0])[0]}",
        ]
        for line in lines if s.exclusive else reversed(lines):
            p.put(line)
        return
    name = "decay_before" if s.exclusive else "scan_decay"
    p.x.used.add(name)
    call = f"{name}({x[0]}, {a[0]}, axis={s.axes.index(s.along)}{_back(s)})"
    if s.carry is None:
        p.put(f"{'_, _, ' if s.exclusive else ''}_, {s.var.name} = {call}")
        return
    factor = fresh(p, f"{s.var.name}_decay")
    if not s.exclusive:
        p.put(f"{factor}, {s.var.name} = {call}")
        p.put(f"{s.var.name} = {p.x.call('decayed', _carried(p, s)[0], factor, s.var.name)[0]}")
        p.put(f"{s.carry.name} = {_last(p, s, s.var.name)}")
        return
    whole, within = fresh(p, f"{s.var.name}_whole"), fresh(p, f"{s.var.name}_within")
    p.put(f"{whole}, {within}, {factor}, {s.var.name} = {call}")
    p.put(f"{within} = {p.x.call('decayed', _carried(p, s)[0], whole, within)[0]}")
    p.put(f"{s.var.name} = {p.x.call('decayed', _carried(p, s)[0], factor, s.var.name)[0]}")
    p.put(f"{s.carry.name} = {_last(p, s, within)}")


def _carried(p: Printing, s: Scan) -> Text:
    assert s.carry is not None
    return p.x.expand((s.carry.name, ATOM), s.carry.axes, s.axes)


def _masked(p: Printing, s: Scan, value: Value, neutral: str) -> Text:
    """The value as a whole block, with what adds nothing where a mask fails."""
    text = _whole(p, value, s.axes, s.monoid)
    if not s.masks:
        return text
    return f"tl.where({p.mask(s.masks, s.axes)}, {text[0]}, {neutral})", ATOM


def _whole(p: Printing, value: Value, axes: tuple[str, ...], monoid: Monoid) -> Text:
    """The value over all dimensions: where it does not depend on one, it is the same all along it."""
    text = p.x.entering(value, monoid, axes)
    own: set[str] = set()
    plain = True
    for part in walk(value):
        if isinstance(part, Read):
            own |= set(p.x.axes[part.name])
        if isinstance(part, Extent):
            own |= p.x.int_axes(part.value)
        plain = plain and not isinstance(part, Read | Scalar)
    if set(axes) <= own:
        return text
    shape = f"({', '.join(p.blocks[a] for a in axes)}{',' if len(axes) == 1 else ''})"
    if not own:
        return f"tl.full({shape}, {text[0]}, {TL[value.dtype.name]})", ATOM
    return f"tl.broadcast_to({text[0]}, {shape})", ATOM


def fresh(p: Printing, name: str) -> str:
    """A name that nothing else in the kernel has."""
    while name in p.x.axes or name in p.names.values():
        name += "_"
    return name


def loop_range(s: Loop, start: str, stop: str, step: str | None) -> str:
    """The range of a loop in chunks of ``step`` (None: one at a time), backwards where it runs from the end."""
    if not s.reverse:
        if step is None:
            return f"range({stop})" if start == "0" else f"range({start}, {stop})"
        return f"range({start}, {stop}, {step})"
    if step is None:
        return f"range({stop} - 1, {f'({start}) - 1' if start != '0' else '-1'}, -1)"
    if start == "0":
        return f"range((tl.cdiv({stop}, {step}) - 1) * {step}, -1, -{step})"
    return f"range({start} + (tl.cdiv({stop} - ({start}), {step}) - 1) * {step}, ({start}) - 1, -{step})"


def across_memory(program: TileProgram) -> dict[str, str]:
    """Streams along which something is scanned, and the axis along memory beside them, where that is another.

    There a lane walks all steps of a chunk for its own two columns, and chunks are fetched while others are scanned.
    """
    found: dict[str, str] = {}
    for s in statements(program.body):
        if isinstance(s, Scan) and s.carry is not None and s.along is not None and s.axes[-1] != s.along:
            found[s.axis] = s.axes[-1]
    return found
