"""Measured times of an op from the result file of a generated benchmark driver."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from opspec.analysis.pipeline.codes import BAD_RESULT, refuse
from opspec.diagnostics import Failure
from opspec.ir.composition import Pipeline, Variant
from opspec.ir.program import Module
from opspec.source import Source, Span

SCHEMA = "opspec.bench/1"
_FIELDS = ("schema", "op", "spec", "status", "results", "distributions")
_LONGEST = 1e15
_LARGEST = 256 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A time in seconds; over a distribution the weighted mean, and the worst shape."""

    seconds: Fraction
    worst: Fraction | None
    worst_dims: str
    path: str
    digest: str


def read_json(path: Path, shown: str, span: Span | None) -> dict[str, Any]:
    """The object in a JSON file.

    Raises: Failure if there is no such file, or it holds something else.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
    except (OSError, ValueError) as e:
        reason = (getattr(e, "strerror", None) or "it is no path").lower()
        raise refuse(BAD_RESULT, f"cannot read `{shown}`: {reason}", span) from None
    if len(raw) > _LARGEST:
        raise refuse(BAD_RESULT, f"`{shown}` is larger than {_LARGEST // 2**20} MiB", span)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as e:
        raise refuse(BAD_RESULT, f"`{shown}` is not JSON: {e}", span) from None
    if not isinstance(data, dict):
        raise refuse(BAD_RESULT, f"`{shown}` is not a JSON object", span)
    return data


def measured(path: Path, shown: str, op: str, workload: str, spec: str, span: Span | None) -> Measured:
    """The time of an op at a workload; ``spec`` is the file that defines the op.

    Raises: Failure if the file is of another op, spec or schema, or holds no such measurement.
    """
    data = read_json(path, shown, span)

    def bad(message: str, help: str = "") -> Failure:
        return refuse(BAD_RESULT, f"`{shown}` {message}", span, help)

    if data.get("schema") != SCHEMA:
        raise bad(
            f"has the schema `{str(data.get('schema'))[:40]}`, not `{SCHEMA}`",
            "write it with `opspec bench --json`",
        )
    missing = [k for k in _FIELDS if k not in data]
    if missing:
        raise bad(f"lacks {', '.join(f'`{k}`' for k in missing)}")
    if data["op"] != op:
        raise bad(f"measures `{str(data['op'])[:60]}`, not `{op}`")
    if Path(str(data["spec"])).name != Path(spec).name:
        raise bad(f"is from the spec `{str(data['spec'])[:80]}`, not `{spec}`")
    records, spread = data["results"], data["distributions"]
    if not isinstance(records, list) or not isinstance(spread, list):
        raise bad("has no list of results")
    digest = _digest(data)
    for entry in spread:
        if isinstance(entry, dict) and entry.get("workload") == workload:
            mean, worst = _seconds(entry.get("mean_s")), _seconds(entry.get("worst_s"))
            if mean is None:
                raise bad(f"gives no mean for `{workload}`")
            return Measured(
                seconds=mean,
                worst=worst,
                worst_dims=_dims(entry.get("worst_dims")),
                path=shown,
                digest=digest,
            )
    own = [r for r in records if isinstance(r, dict) and r.get("workload") == workload]
    known = sorted({str(r.get("workload")) for r in records if isinstance(r, dict)})
    if not own:
        raise bad(f"has no measurement at `{workload}`", f"it has: {', '.join(known) or 'none'}")
    found: list[tuple[Fraction, Fraction, str]] = []
    for record in own:
        timing = record.get("measured")
        state = timing.get("status") if isinstance(timing, dict) else "not measured"
        seconds = _seconds(timing.get("time_s")) if isinstance(timing, dict) else None
        if state != "ok" or seconds is None:
            raise bad(f"has no valid time at `{workload}`: {state}")
        weight = _seconds(record.get("weight")) or Fraction(1)
        found.append((weight, seconds, _dims(record.get("dims"))))
    total = sum((w for w, _, _ in found), Fraction(0))
    mean = sum((w * t for w, t, _ in found), Fraction(0)) / total
    worst_time, worst_dims = max((t, d) for _, t, d in found)
    several = len(found) > 1
    return Measured(
        seconds=mean,
        worst=worst_time if several else None,
        worst_dims=worst_dims if several else "",
        path=shown,
        digest=digest,
    )


def result_op(path: Path, shown: str) -> str:
    """The op that a result file measures.

    Raises: Failure if it can't be read.
    """
    return str(read_json(path, shown, Span(Source("<results>", shown), 0, len(shown))).get("op", ""))


def check_wanted(module: Module, op: str, path: str) -> None:
    """A result must be one that some stage takes its time from, or it would be left out without a word.

    Raises: Failure if no stage runs the op, or all that do state their times.
    """
    span = Span(Source("<results>", path), 0, len(path))
    owners: list[Pipeline | Variant] = [*module.pipelines, *module.variants]
    stages = [s for p in owners for s in p.stages if s.op]
    mine = [s for s in stages if s.op == op]
    if not op:
        raise refuse(BAD_RESULT, f"`{path}` lacks `op`", span)
    if not mine:
        ops = ", ".join(f"`{n}`" for n in dict.fromkeys(s.op for s in stages)) or "no op"
        raise refuse(
            BAD_RESULT, f"`{path}` measures `{op[:60]}`, which no stage runs", span, f"stages run {ops}"
        )
    if all(s.seconds is not None for s in mine):
        raise refuse(
            BAD_RESULT,
            f"`{path}` would not be used: each stage that runs `{op[:60]}` states its time",
            span,
            "leave `takes` out of the stage, or the file out of the command",
        )


def _seconds(value: object) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LONGEST:
        return None
    return Fraction(repr(value))


def _dims(value: object) -> str:
    return ", ".join(f"{k} = {v}" for k, v in value.items()) if isinstance(value, dict) else ""


def _digest(data: dict[str, Any]) -> str:
    environment = data.get("environment")
    software = environment.get("software") if isinstance(environment, dict) else None
    return str(software.get("spec_hash", "")) if isinstance(software, dict) else ""
