"""The report as JSON: seconds and ratios, each time with where it is from."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from opspec.analysis.pipeline.compare import Comparison
from opspec.analysis.pipeline.report import Report
from opspec.analysis.pipeline.timing import Timed
from opspec.analysis.pipeline.total import Breakdown

SCHEMA = "opspec.pipeline/1"


def to_json(report: Report) -> dict[str, Any]:
    """Times in seconds. A gain without limit is null."""
    return {
        "schema": SCHEMA,
        "pipeline": report.pipeline.name,
        "machine": report.machine or None,
        "base": _breakdown(report.base),
        "variants": [_comparison(v) for v in report.variants],
        "ledgers": [
            {
                "name": t.ledger.name,
                "workload": t.ledger.workload,
                "dim": t.ledger.dim,
                "extent": t.extent,
                "stated": t.stated,
                "entries": {e.name: {"tokens": e.tokens, "open": e.open} for e in t.ledger.entries},
                "consistent": t.flag is None,
            }
            for t in report.ledgers
        ],
        "flags": [{"where": f.where, "text": f.text} for f in report.flags],
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _breakdown(b: Breakdown) -> dict[str, Any]:
    return {
        "total_s": float(b.total),
        "busy_s": float(b.busy),
        "rest_s": float(b.rest),
        "overlapped_s": float(b.shared),
        "stages": [
            {**_timed(p.timed), "exposed_s": float(p.exposed), "share": float(p.share)} for p in b.parts
        ],
    }


def _timed(t: Timed) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": t.name,
        "count": float(t.count),
        "each_s": float(t.each),
        "time_s": float(t.seconds),
        "provenance": t.provenance,
        "source": t.source,
    }
    if t.op:
        found |= {"op": t.op, "workload": t.workload}
    if t.worst is not None:
        found |= {"worst_s": float(t.worst), "worst_dims": t.worst_dims}
    if t.bound is not None:
        found["bound"] = {
            "machine": t.bound.machine,
            "resource": t.bound.resource,
            "floor_s": float(t.bound.floor),
            "time_s": float(t.bound.time),
            "bytes": float(t.bound.bytes),
            "flops_tensor": float(t.bound.flops),
        }
    if t.notes:
        found["notes"] = list(t.notes)
    return found


def _comparison(v: Comparison) -> dict[str, Any]:
    return {
        "variant": v.variant,
        "end_to_end_gain": float(v.gain),
        "kernel_gain": _number(v.kernel),
        "saved_s": float(v.saved),
        "ceiling": _number(v.ceiling),
        "after": _breakdown(v.after),
        "changes": [
            {
                "stage": c.name,
                "kernel_gain": _number(c.kernel),
                "stage_gain": _number(c.stage),
                "ceiling": _number(c.ceiling),
            }
            for c in v.changes
        ],
        "waterfall": [
            {"step": s.what, "change_s": float(s.delta), "total_s": float(s.total)} for s in v.steps
        ],
        "losses": [{"part": x.what, "lost_s": float(x.seconds), "why": x.why} for x in v.losses],
    }
