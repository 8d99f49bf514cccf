"""A plot as PNG or SVG, by matplotlib. The same plot gives the same file."""

from __future__ import annotations

import io
from textwrap import wrap
from typing import Any

from opspec.analysis.plot.model import Sweep
from opspec.analysis.plot.terminal import missing
from opspec.analysis.plot.ticks import extents, short

FORMATS = ("png", "svg")
_STYLE = {
    "font.size": 10.0, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#8b95a1",
    "axes.labelcolor": "#1c2024", "xtick.color": "#5b6470", "ytick.color": "#5b6470", "grid.color": "#d9dee4",
    "text.parse_math": False, "svg.hashsalt": "opspec", "font.family": "DejaVu Sans",
}  # fmt: skip
_CURVES = ("#0b62c4", "#1a7f4b", "#8a5a00")
_MARKS = {"bound": "#b0306a", "crossing": "#7a3fb0"}


def to_picture(plot: Sweep, kind: str) -> bytes:
    """The file of a plot; ``kind`` is ``png`` or ``svg``.

    Raises: Failure if matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise missing("matplotlib") from None
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8, 5), layout="constrained")
        _draw(figure.add_subplot(), plot)
        if len(plot.curves) > 1 or plot.marks:
            figure.legend(loc="outside lower left", frameon=False, fontsize=8.5)
        out = io.BytesIO()
        metadata = {"Date": None, "Creator": "opspec"} if kind == "svg" else {"Software": "opspec"}
        figure.savefig(out, format=kind, dpi=150, metadata=metadata)
    return out.getvalue()


def _draw(axes: Any, plot: Sweep) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    for curve, colour in zip(plot.curves, _CURVES, strict=False):
        x, y = zip(*curve.points, strict=True)
        axes.plot(x, y, color=colour, linewidth=2, label=curve.name, zorder=3)
    for level in plot.levels:
        axes.axhline(level.value, color="#5b6470", linewidth=1.2, linestyle=(0, (5, 3)))
        text = f"{level.name}: {short(level.value, plot.unit)}"
        axes.annotate(
            text, (0, level.value), xycoords=("axes fraction", "data"), xytext=(4, 3), textcoords="offset points",
            fontsize=8.5, color="#5b6470",
        )  # fmt: skip
    if plot.log_x:
        axes.set_xscale("log", base=2)
    if plot.log_y:
        axes.set_yscale("log")
    xs = [x for c in plot.curves for x, _ in c.points]
    axes.set_xlim(min(xs), max(xs))
    axes.set_xticks(extents(min(xs), max(xs), 9, log=plot.log_x))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if v < 1e6 else f"{v:.3g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: short(v, plot.unit)))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.grid(which="major", linewidth=0.8)
    axes.set_xlabel(plot.dim)
    title = "\n".join(wrap(f"{plot.expr} of {plot.op}", 76)[:3])
    axes.set_title(title, loc="left", fontsize=12, color="#1c2024", pad=18 if plot.where else 8)
    if plot.where:
        axes.text(0, 1.02, plot.where, transform=axes.transAxes, fontsize=8.5, color="#5b6470")
    _mark(axes, plot)


def _mark(axes: Any, plot: Sweep) -> None:
    """Vertical lines where something flips, named in the legend."""
    for mark, style in zip(plot.marks, ("-", "--", ":", "-.") * len(plot.marks), strict=False):
        axes.axvline(
            mark.at, color=_MARKS[mark.kind], linewidth=1.2, linestyle=style, zorder=2,
            label=f"{plot.dim} = {mark.at}: {mark.text}",
        )  # fmt: skip
