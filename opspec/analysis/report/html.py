"""The report as one HTML page that needs nothing else: Plotly and the data lie inside, formulas are MathML.

The template escapes everything but three values that are ours: MathML, JSON without ``<``, and Plotly itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opspec.analysis.machine import Machine
from opspec.analysis.report.figure import numbered, roofline, waterfall
from opspec.analysis.report.marks import LETTERS, MARKS, of_ledger, of_term, rates
from opspec.analysis.report.model import (
    EvidencePage,
    Measurement,
    OpPage,
    PipelinePage,
    Provenance,
    Report,
    Spot,
)
from opspec.analysis.review.wording import number
from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.resources import folder

if TYPE_CHECKING:
    from markupsafe import Markup

NO_PLOTS = register(
    Code(
        code="OP783",
        title="the plotting library is not installed",
        why="The roofline on the report's page is drawn by Plotly, which only reports need.",
        example="opspec report specs/ --out report        # without the extra `report`",
        fix='Install it: `pip install "opspec[report]"`.',
    )
)


def plotly_script() -> str:
    """The source of Plotly's script.

    Raises: Failure if it is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        message = "the report's page needs plotly"
        raise Failure(Diagnostic(code=NO_PLOTS, message=message, span=None, help=NO_PLOTS.fix)) from None
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def to_html(report: Report, plotly: str) -> str:
    """The page; ``plotly`` is the script that draws."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["ticks"] = ticks
    template = environment.get_template("report.html.j2")
    return template.render(page=_page(report, plotly), marks=MARKS)


def ticks(text: str) -> Markup:
    """Escaped text, with what stands between backticks as code."""
    from markupsafe import Markup, escape

    parts = [escape(p) for p in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(p) if k % 2 else p for k, p in enumerate(parts))


def _page(report: Report, plotly: str) -> dict[str, Any]:
    figures = {f"roofline-{k}": roofline(m, report.ops) for k, m in enumerate(report.machines)}
    figures |= {
        f"waterfall-{k}-{n}": waterfall(p, v)
        for k, p in enumerate(report.pipelines)
        for n, v in enumerate(p.variants)
    }
    count = len(report.ops)
    names = ", ".join(m.name for m in report.machines)
    return {
        "summary": f"{count} op{'' if count == 1 else 's'} on {names}, by opspec {report.version}.",
        "plots": [
            {"id": f"roofline-{k}", "title": m.title, "key": _key(m, report.ops)}
            for k, m in enumerate(report.machines)
        ],
        "pipelines": [_pipeline(p, k) for k, p in enumerate(report.pipelines)],
        "evidence": [_evidence(e, k) for k, e in enumerate(report.evidence)],
        "ops": [_op(op, k) for k, op in enumerate(report.ops)],
        "figures": json.dumps(figures, ensure_ascii=True, sort_keys=True).replace("<", "\\u003c"),
        "plotly": plotly,
    }


def _key(machine: Machine, ops: tuple[OpPage, ...]) -> list[tuple[int, str, str]]:
    """(number, op and workload, anchor) of every point on a plot."""
    anchors = {id(op): f"op-{k}" for k, op in enumerate(ops)}
    return [
        (n, f"{page.name} · {spot.workload}", anchors[id(page)])
        for n, (page, spot) in enumerate(numbered(machine, ops), 1)
    ]


def _evidence(e: EvidencePage, k: int) -> dict[str, Any]:
    def marked(texts: tuple[tuple[str, Provenance], ...]) -> list[tuple[str, str]]:
        return [(text, LETTERS[kind]) for text, kind in texts]

    return {
        "anchor": f"evidence-{k}",
        "name": e.name,
        "spec": e.spec,
        "subject": e.subject,
        "source": e.source,
        "open": e.open,
        "rows": [{"title": r.title, "record": marked(r.record), "world": marked(r.world)} for r in e.rows],
        "verdicts": [{"what": a, "holds": b, "reason": c} for a, b, c in e.verdicts],
        "warnings": e.warnings,
    }


def _pipeline(p: PipelinePage, k: int) -> dict[str, Any]:
    return {
        "anchor": f"pipeline-{k}",
        "name": p.name,
        "spec": p.spec,
        "doc": p.doc,
        "total": number(p.total, "s"),
        "rest": number(p.rest, "s") if p.rest else "",
        "flags": p.flags,
        "stages": [
            {
                "name": s.name,
                "runs": s.runs,
                "counted": "D" if "." in s.runs else "A",
                "time": number(s.seconds, "s"),
                "mark": LETTERS[s.provenance],
                "share": f"{s.share:.2%}",
                "width": round(100 * s.share, 1),
                "source": s.source,
            }
            for s in p.stages
        ],
        "variants": [
            {
                "id": f"waterfall-{k}-{n}",
                "name": v.name,
                "doc": v.doc,
                "kernel": f"{v.kernel:.5g}×" if v.kernel else "",
                "gain": f"{v.gain:.5g}×",
                "before": number(p.total, "s"),
                "after": number(v.after, "s"),
                "times": f"{number(p.total, 's')} → {number(v.after, 's')}",
                "ceiling": f"{v.ceiling:.5g}×" if v.ceiling else "",
                "losses": [{"name": a, "time": number(b, "s"), "why": c} for a, b, c in v.losses],
            }
            for n, v in enumerate(p.variants)
        ],
    }


def _op(op: OpPage, k: int) -> dict[str, Any]:
    return {
        "anchor": f"op-{k}",
        "name": op.name,
        "spec": op.spec,
        "doc": op.doc,
        "notes": op.notes,
        "formulas": op.formulas,
        "reuse": op.reuse,
        "spots": [_spot(s) for s in op.spots],
    }


def _spot(spot: Spot) -> dict[str, Any]:
    values = [(r.ai_tensor if spot.dtype else r.ai) for r in spot.readings if r.size]
    longest = max(spot.own.terms.values(), default=0.0) or 1.0
    return {
        "workload": spot.workload,
        "machine": spot.machine.name,
        "shape": spot.shape,
        "readings": [
            {
                "name": r.boundary or "as written",
                "numbers": (
                    number(r.size, "B"),
                    number(r.ai, ""),
                    number(r.ai_tensor if spot.dtype else None, ""),
                    number(r.time, "s"),
                ),
                "bound": r.bound,
            }
            for r in spot.readings
        ],
        "interval": (
            {"low": number(min(values), ""), "high": number(max(values), "FLOP/B")}
            if len(values) > 1 and min(values) < max(values)
            else None
        ),
        "flips": spot.flips,
        "terms": [
            {
                "name": k,
                "time": number(v, "s"),
                "mark": of_term(spot.machine, k),
                "width": round(100 * v / longest, 1),
            }
            for k, v in spot.own.terms.items()
            if v
        ],
        "advice": [{"text": a.text, "saves": number(a.saves, "s"), "bound": a.bound} for a in spot.advice],
        "measured": [_measured(m, spot) for m in spot.measured],
    }


def _measured(m: Measurement, spot: Spot) -> dict[str, Any]:
    floor = m.floor or spot.own.time
    if m.time is None:
        headline = f"Not measured: {m.status}"
        detail = f"{m.reason} ({m.source})"
    else:
        headline = f"Measured: {number(m.time, 's')}"
        spread = f" [{number(m.interval[0], 's')}, {number(m.interval[1], 's')}]" if m.interval else ""
        detail = f"{m.gpu}{spread}, {m.dims} ({m.source})"
    return {
        "headline": headline,
        "detail": detail,
        "time": m.time,
        "share": f"{floor / m.time:.1%} of the floor of {number(floor, 's')}" if m.time else "",
        "calibrated": number(m.calibrated, "s") if m.calibrated else "",
        "baseline": m.baseline,
        "rates": rates(m),
        "ledger": [
            {
                "name": name,
                "time": number(seconds, "s"),
                "share": f"{seconds / m.time:.1%}",
                "width": round(max(0.0, min(100.0, 100 * seconds / m.time)), 1),
                "mark": of_ledger(name),
            }
            for name, seconds in (m.ledger if m.time else ())
            if m.time
        ],
        "warnings": m.warnings,
        "missing": "; ".join(m.missing),
    }
