"""A review for programs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from opspec.analysis.review.model import Review
from opspec.analysis.review.wording import heartbeat
from opspec.diagnostics import render_json

SCHEMA = "opspec.diff/1"


def to_json(review: Review, status: int) -> str:
    """One JSON object: ``specs`` holds those whose text differs, quiet ones included."""
    return json.dumps(_record(review, status), indent=1, ensure_ascii=False) + "\n"


def _record(review: Review, status: int) -> dict[str, Any]:
    specs = []
    for spec in review.specs:
        record = asdict(replace(spec, faults_before=(), faults_after=()))
        record["faults_before"] = json.loads(render_json(spec.faults_before))
        record["faults_after"] = json.loads(render_json(spec.faults_after))
        specs.append({**record, "quiet": spec.quiet})
    return {
        "schema": SCHEMA,
        "base": review.base,
        "head": review.head,
        "status": status,
        "summary": heartbeat(review),
        "looked_at": review.looked_at,
        "machines": list(review.machines),
        "specs": specs,
    }
