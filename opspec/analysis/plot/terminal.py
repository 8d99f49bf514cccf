"""A plot drawn with characters, by plotille."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import log

from opspec.analysis.codes import NOTHING_DRAWS
from opspec.analysis.plot.model import Sweep
from opspec.analysis.plot.ticks import extents, short, values
from opspec.diagnostics import Diagnostic, Failure

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_HEIGHT = 18


def missing(library: str) -> Failure:
    """The failure where a library that draws is not installed."""
    message = f"a plot needs {library}"
    return Failure(Diagnostic(code=NOTHING_DRAWS, message=message, span=None, help=NOTHING_DRAWS.fix))


def to_text(plot: Sweep, columns: int) -> str:
    """The plot in so many columns, 40 at least, with a line for every mark below it.

    Raises: Failure if plotille is not installed.
    """
    try:
        from plotille import Canvas
    except ImportError:
        raise missing("plotille") from None
    xs = [x for c in plot.curves for x, _ in c.points]
    ys = [*plot.values, *(v.value for v in plot.levels)]
    low, high = min(ys), max(ys)
    if low == high:
        low, high = (low / 2, high * 2) if plot.log_y or low > 0 else (low - 1, high + 1)
    ticks = values(low, high, _HEIGHT // 2, log=plot.log_y)
    labels = {y: short(y, plot.unit) for y in ticks}
    margin = max(map(len, labels.values()), default=0)
    width = max(40, columns) - margin - 5 - min(8, len(plot.dim))
    across, up = _scale(plot.log_x), _scale(plot.log_y)
    left, right, bottom, top = across(min(xs)), across(max(xs)), up(low), up(high)
    canvas = Canvas(width, _HEIGHT, left, bottom, right, top)
    for curve in plot.curves:
        points = [(across(x), up(y)) for x, y in curve.points]
        for (x0, y0), (x1, y1) in pairwise(points):
            canvas.line(x0, y0, x1, y1)
    for level in plot.levels:
        for k in range(0, 2 * width, 4):
            canvas.point(left + (right - left) * k / (2 * width - 1), up(level.value))
    marks = plot.marks[: len(_LETTERS)]
    for mark in marks:
        for k in range(0, 4 * _HEIGHT, 4):
            canvas.point(across(mark.at), bottom + (top - bottom) * k / (4 * _HEIGHT - 1))
    column = _columns(left, right, width)
    head = [" "] * width
    for letter, mark in zip(_LETTERS, marks, strict=False):
        head[column(across(mark.at))] = letter
    rows = canvas.plot().splitlines()
    beside = [""] * _HEIGHT
    for y in ticks:
        beside[_HEIGHT - 1 - _columns(bottom, top, _HEIGHT)(up(y))] = labels[y]
    body = [f"{label:>{margin}} ┤{row}" for label, row in zip(beside, rows, strict=True)]
    lines = [_title(plot)]
    if marks:
        lines.append(f"{'':>{margin}}  {''.join(head)}".rstrip())
    lines += [line.rstrip("⠀ ") for line in body]
    lines += _below(plot, width, margin, lambda x: column(across(x)))
    lines += [f"  {a}  {plot.dim} = {m.at}: {m.text}" for a, m in zip(_LETTERS, marks, strict=False)]
    lines += [f"  ┈  {v.name}: {short(v.value, plot.unit)}" for v in plot.levels]
    return "\n".join([*lines, *(f"note: {n}" for n in plot.notes)])


def _title(plot: Sweep) -> str:
    where = f", {plot.where}" if plot.where else ""
    return f"{plot.expr} of {plot.op} over {plot.dim}{where}"


def _scale(log_axis: bool) -> Callable[[float], float]:
    return log if log_axis else float


def _columns(low: float, high: float, cells: int) -> Callable[[float], int]:
    """The cell of a value."""
    span = (high - low) or 1.0
    return lambda v: min(cells - 1, max(0, int((v - low) / span * (cells - 1e-9))))


def _below(plot: Sweep, width: int, margin: int, column: Callable[[int], int]) -> list[str]:
    """The horizontal axis with its numbers."""
    xs = [x for c in plot.curves for x, _ in c.points]
    axis, text = ["─"] * width, [" "] * (width + 1)
    free = 0
    for x in extents(min(xs), max(xs), width // 8, log=plot.log_x):
        shown, at = f"{x}", column(x)
        start = min(max(0, at - len(shown) // 2), width - len(shown))
        if start >= free:
            axis[at] = "┴"
            text[start : start + len(shown)] = shown
            free = start + len(shown) + 1
    return [f"{'':>{margin}} └{''.join(axis)}", f"{'':>{margin}}  {''.join(text)}".rstrip() + f"  {plot.dim}"]
