"""A tile program as text, for ``explain --stage tile`` and for reading what a pass did."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from opspec.ir.show import show_value
from opspec.ir.values import Value
from opspec.schedule.tile import (
    Begin,
    Collapse,
    Combine,
    Fetch,
    Let,
    Locate,
    Loop,
    Multiply,
    Operand,
    Remark,
    Scan,
    Statement,
    Take,
    TileProgram,
    Unroll,
    Var,
    Write,
)


def show_tile(program: TileProgram) -> str:
    """Axes with their roles, then the statements of one program."""
    lines = [f"tile {program.op.name}.{program.kernel} {program.variant}"]
    lines += [
        f"  axis {a.name} < {a.extent}: {a.role}" + (", in blocks" if a.blocked else ", one at a time")
        for a in program.axes
    ]
    lines += _body(program.body, "  ")
    lines += [f"  note {note}" for note in program.notes]
    return "\n".join(lines)


def _body(body: Iterable[Statement], indent: str) -> list[str]:
    lines: list[str] = []
    for s in body:
        lines += [indent + text for text in _statement(s)]
        if isinstance(s, Loop) and s.ahead is not None:
            lines.append(f"{indent}  one step ahead, as {', '.join(s.ahead.now)} of this one:")
            lines += _body((s.ahead.loads,), indent + "    ")
        if isinstance(s, Loop | Unroll):
            lines += _body(s.body, indent + "  ")
    return lines


def _statement(s: Statement) -> list[str]:
    match s:
        case Remark(text=text):
            return [f"# {text}"]
        case Fetch(var=var, again=(held, _)):
            return [f"{_var(var)} = {held} as it was loaded"]
        case Fetch(var=var, tensor=tensor, at=at, masks=masks, other=other):
            rest = "" if other is None else f" else {show_value(other)}"
            again = "   # again" if s.reread else ""
            return [f"{_var(var)} = load {tensor}[{', '.join(map(str, at))}]{_masks(masks)}{rest}{again}"]
        case Let(var=var, value=value):
            return [f"{_var(var)} = {show_value(value)}"]
        case Begin(var=var, monoid=monoid):
            return [f"{_var(var)} = identity of {monoid}"]
        case Collapse(var=var, monoid=monoid, value=value, over=over, masks=masks):
            text = f"{_var(var)} = {monoid} over {', '.join(over)} of {show_value(value)}{_masks(masks)}"
            points = (
                f"{_var(s.counted)} = number of points{_masks(s.points)}" if s.counted is not None else ""
            )
            return [text, points] if points else [text]
        case Combine(var=var, monoid=monoid, value=value, masks=masks):
            return [f"{var.name} = {monoid}({var.name}, {show_value(value)}){_masks(masks)}"]
        case Locate(var=var, value=value, extreme=extreme, at=at, over=over, masks=masks):
            where = f"{show_value(value)} is {show_value(extreme)}"
            return [
                f"{_var(var)} = least {show_value(at)} over {', '.join(over) or 'nothing'} where {where}{_masks(masks)}"
            ]
        case Scan(var=var, monoid=monoid, value=value, axis=axis, masks=masks):
            back = "-" if s.reverse else ""
            text = f"{_var(var)} = running {monoid} along {back}{axis} of {show_value(value)}"
            text += "" if s.decay is None else f" decaying by {show_value(s.decay)}"
            text += ", without the point itself" if s.exclusive else ""
            text += "" if s.carry is None else f" from {s.carry.name} on"
            return [text + _masks(masks)]
        case Multiply(var=var, a=a, b=b, accumulate=accumulate):
            plus = f"{var.name} + " if accumulate else ""
            return [f"{_var(var)} = {plus}{_operand(a)} @ {_operand(b)}"]
        case Write(tensor=tensor, at=at, value=value, masks=masks):
            return [f"store {tensor}[{', '.join(map(str, at))}] = {show_value(value)}{_masks(masks)}"]
        case Loop(axis=axis, start=start, stop=stop, segments=str(tensor)):
            return [
                f"for {axis} over the segments of {tensor} from {show_value(start)} to {show_value(stop)}:"
            ]
        case Loop(axis=axis, start=start, stop=stop, sweep=sweep, sweeps=sweeps, reverse=reverse):
            ends = f"from {show_value(start)} to {show_value(stop)}{', backwards' if reverse else ''}"
            return [f"for {axis} {ends}:   # sweep {sweep} of {sweeps}"]
        case Unroll(index=index, count=count, place=place, kept=kept):
            put = f", {place[0]} at {place[1]}" if place is not None else ""
            names = "".join(f", each {name} kept in {values}" for name, values in kept)
            return [f"unrolled for {index} from 0 to {count}{put}{names}:"]
        case Take(var=var, kept=values, at=number):
            return [f"{_var(var)} = {values} at {number}"]
        case _:
            assert_never(s)


def _var(var: Var) -> str:
    return f"{var.name}[{', '.join(var.axes)}]" if var.axes else var.name


def _operand(operand: Operand) -> str:
    text = f"{show_value(operand.value)}{_masks(operand.masks)}"
    cast: Any = operand.cast
    return f"{cast.name}({text})" if cast is not None else f"({text})"


def _masks(masks: tuple[Value, ...]) -> str:
    return f" where {' and '.join(map(show_value, masks))}" if masks else ""
