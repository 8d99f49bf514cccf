"""The roofline plot as data for Plotly: all roofs of a machine, and a point for each op and workload.

An op with contractions stands at its ``ai.tensor``, any other at its ``ai``. A point's height is its operations by
the time of the model (a floor: no kernel is faster), a measured one's by its measured time.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from opspec.analysis.machine import Machine
from opspec.analysis.report.model import OpPage, PipelinePage, Reading, Spot, VariantPage
from opspec.analysis.review.wording import number

MOST_NUMBERS = 16
_LEFT, _RIGHT = 2.0**-6, 2.0**14


def roofline(machine: Machine, pages: Sequence[OpPage]) -> dict[str, Any]:
    """Traces and layout; colours are set by the page, which knows whether it is dark."""
    spots = [(page, s) for page in pages for s in page.spots if s.machine.name == machine.name]
    lowest = min((_height(s, s.own) for _, s in spots if _height(s, s.own)), default=1e11)
    traces = [*_roofs(machine), *_intervals(spots), _points(spots)]
    measured = _measured(spots)
    top = 2 * max(*machine.tensor.values(), machine.vector)
    return {
        "data": [*traces, *([measured] if measured else [])],
        "layout": {
            "xaxis": {
                "type": "log",
                "title": {"text": "intensity in FLOP/B"},
                "exponentformat": "power",
                "dtick": 1,
            },
            "yaxis": {
                "type": "log",
                "title": {"text": "FLOP/s"},
                "range": [_log(min(lowest / 3, machine.bandwidth * 0.05)), _log(top)],
                "exponentformat": "power",
                "dtick": 1,
            },
            "hovermode": "closest",
            "legend": {"orientation": "h", "y": -0.2},
            "margin": {"l": 60, "r": 10, "t": 10, "b": 40},
        },
    }


def waterfall(pipeline: PipelinePage, variant: VariantPage) -> dict[str, Any]:
    """From the end-to-end time before to that after, one change at a time, in milliseconds."""
    names = ["before", *(what for what, _, _ in variant.steps), "after"]
    levels = [pipeline.total, *(delta for _, delta, _ in variant.steps), variant.after]
    texts = [f"{1e3 * v:+.4g}" if 0 < k < len(names) - 1 else f"{1e3 * v:.4g}" for k, v in enumerate(levels)]
    return {
        "data": [
            {
                "type": "waterfall",
                "meta": "waterfall",
                "measure": ["absolute", *("relative" for _ in variant.steps), "total"],
                "x": [_inert(n) for n in names],
                "y": [1e3 * v for v in levels],
                "text": texts,
                "textposition": "outside",
                "cliponaxis": False,
                "hovertemplate": "%{x}: %{text} ms<extra></extra>",
            }
        ],
        "layout": {
            "xaxis": {"type": "category"},
            "yaxis": {"title": {"text": "ms end to end"}, "rangemode": "tozero"},
            "showlegend": False,
            "legend": {},
            "margin": {"l": 60, "r": 10, "t": 30, "b": 60},
        },
    }


def _log(value: float) -> float:
    from math import log10

    return log10(value)


def _roofs(machine: Machine) -> list[dict[str, Any]]:
    """Memory and L2 as slopes; matrix units by type, the vector unit and special functions as ceilings."""
    ceilings = {f"tensor {k}": v for k, v in machine.tensor.items()}
    groups: dict[float, list[str]] = {}
    for name, rate in ceilings.items():
        groups.setdefault(rate, []).append(name.removeprefix("tensor "))
    highest = max(*machine.tensor.values(), machine.vector)
    found = [
        _line(
            f"HBM {_rate(machine.bandwidth)}",
            machine.bandwidth,
            highest,
            "solid",
            machine,
            "memory.bandwidth",
        ),
        _line(
            f"L2 {_rate(machine.l2_bandwidth)}",
            machine.l2_bandwidth,
            highest,
            "dot",
            machine,
            "l2.bandwidth",
        ),
    ]
    flat = [(f"tensor {', '.join(names)}", rate, f"tensor.{names[0]}") for rate, names in groups.items()]
    flat += [
        ("vector f32", machine.vector, "vector.f32"),
        ("special functions", machine.sfu, "sfu.per_clock_sm"),
    ]
    for name, rate, key in flat:
        start = rate / machine.bandwidth
        found.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [start, max(_RIGHT, 2 * start)],
                "y": [rate, rate],
                "line": {"dash": "dash" if not name.startswith("tensor") else "solid", "width": 1.5},
                "meta": "roof",
                "hovertemplate": _hover(name, [f"{number(rate, 'FLOP')}/s", _source(machine, key)]),
            }
        )
    return found


def _line(name: str, slope: float, top: float, dash: str, machine: Machine, key: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [_LEFT, top / slope],
        "y": [_LEFT * slope, top],
        "line": {"dash": dash, "width": 1.5},
        "meta": "roof",
        "hovertemplate": _hover(name, [_rate(slope), _source(machine, key)]),
    }


def _rate(value: float) -> str:
    return f"{value / 1e12:.4g} TB/s"


def _source(machine: Machine, key: str) -> str:
    text = machine.sources.get(key, "")
    return text if text.startswith("asserted") else f"datasheet: {text}"


def _height(spot: Spot, reading: Reading) -> float:
    work = reading.tensor if spot.dtype else reading.flops
    return work / reading.time if reading.time else 0.0


def _at(spot: Spot, reading: Reading) -> float:
    return reading.ai_tensor if spot.dtype else reading.ai


def numbered(machine: Machine, pages: Sequence[OpPage]) -> list[tuple[OpPage, Spot]]:
    """The ops and workloads that have a point on a machine's plot, in the order of their numbers from 1 on; none
    where there are so many that numbers would cover each other."""
    spots = [(page, s) for page in pages for s in page.spots if s.machine.name == machine.name]
    shown = [(p, s) for p, s in spots if _height(s, s.own) and s.own.size]
    return shown if len(shown) <= MOST_NUMBERS else []


def _labels(shown: Sequence[tuple[OpPage, Spot]]) -> list[str]:
    """A number for each point; points that lie together share one label, at the first of them."""
    if len(shown) > MOST_NUMBERS:
        return [""] * len(shown)
    places = [(_log(_at(s, s.own)), _log(_height(s, s.own))) for _, s in shown]
    groups: dict[int, list[int]] = {}
    for k, (x, y) in enumerate(places):
        at = next((g for g in groups if abs(places[g][0] - x) < 0.12 and abs(places[g][1] - y) < 0.25), k)
        groups.setdefault(at, []).append(k + 1)
    return [", ".join(map(str, groups.get(k, ()))) for k in range(len(places))]


def _points(spots: Sequence[tuple[OpPage, Spot]]) -> dict[str, Any]:
    shown = [(p, s) for p, s in spots if _height(s, s.own) and s.own.size]
    return {
        "type": "scatter",
        "mode": "markers+text",
        "text": _labels(shown),
        "textposition": "bottom right",
        "textfont": {"size": 10},
        "name": "model (derived)",
        "meta": "point",
        "x": [_at(s, s.own) for _, s in shown],
        "y": [_height(s, s.own) for _, s in shown],
        "marker": {"size": 11, "symbol": "circle"},
        "hovertemplate": [
            _hover(
                f"{p.name} · {s.workload}",
                [
                    s.shape,
                    f"{'ai.tensor' if s.dtype else 'ai'} {_at(s, s.own):.4g} FLOP/B, derived",
                    f"at least {number(s.own.time, 's')} by the model, bound by {s.own.bound}",
                ],
            )
            for p, s in shown
        ],
    }


def _measured(spots: Sequence[tuple[OpPage, Spot]]) -> dict[str, Any] | None:
    rows = [
        (p, s, m, m.cost.get("flops.tensor" if s.dtype else "flops", 0.0))
        for p, s in spots
        for m in s.measured
        if m.time
    ]
    rows = [r for r in rows if r[3]]
    if not rows:
        return None
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "meta": "measured",
        "x": [_at(s, s.own) for _, s, _, _ in rows],
        "y": [work / (m.time or 1.0) for _, _, m, work in rows],
        "marker": {"size": 12, "symbol": "x"},
        "hovertemplate": [
            _hover(f"{p.name} · {s.workload}", [m.dims, f"{number(m.time, 's')}, measured on {m.gpu}"])
            for p, s, m, _ in rows
        ],
    }


def _intervals(spots: Sequence[tuple[OpPage, Spot]]) -> list[dict[str, Any]]:
    """From the grouping with the lowest intensity to the one with the highest, at the height of the op's own."""
    found: list[dict[str, Any]] = []
    for page, s in spots:
        values = [_at(s, r) for r in s.readings if r.size]
        if len(values) > 1 and min(values) < max(values) and _height(s, s.own):
            found.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "showlegend": not found,
                    "legendgroup": "interval",
                    "name": "interval over fusion boundaries",
                    "meta": "interval",
                    "x": [min(values), max(values)],
                    "y": [_height(s, s.own)] * 2,
                    "line": {"width": 5},
                    "opacity": 0.35,
                    "hovertemplate": _hover(
                        f"{page.name} · {s.workload}",
                        [f"{min(values):.4g} to {max(values):.4g} FLOP/B over boundaries"],
                    ),
                }
            )
    return found


def _hover(title: str, lines: Sequence[str]) -> str:
    """Text of a hover label: Plotly reads some HTML and `%{…}` in it, so names are escaped for both."""
    inner = "<br>".join(_inert(t) for t in lines if t)
    return f"<b>{_inert(title)}</b><br>{inner}<extra></extra>"


def _inert(text: str) -> str:
    return escape(text).replace("%{", "%&#123;")
