"""Results of generated drivers: read, checked against their schema, and turned into measurements.

A result that does not fit its schema, or that was measured on another spec than the one beside it, is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opspec.analysis.report.model import Measurement
from opspec.analysis.report.schema import faults
from opspec.diagnostics import Code, Diagnostic, Failure, Note, register
from opspec.resources import PACKAGE

BAD_RESULT = register(
    Code(
        code="OP781",
        title="the result can't be read",
        why="A report sets measurements beside the model; it reads the JSON that generated drivers write.",
        example="opspec report notes.json --out report",
        fix="Give a file that `opspec bench … --json FILE` wrote.",
    )
)
OTHER_SPEC = register(
    Code(
        code="OP782",
        title="the result was measured on another spec",
        why="The spec has changed since, or is not there: its costs say nothing about that measurement.",
        example="opspec report softmax.json --out report   # after an edit of specs/reduce/softmax.op",
        fix="Measure again, or report from the revision that was measured.",
    )
)
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Result:
    """One document. ``source`` is its path as given."""

    source: str
    data: Mapping[str, Any]

    @property
    def spec(self) -> str:
        """The path of the spec, as the driver was told."""
        return str(self.data["spec"])

    @property
    def spec_hash(self) -> str:
        """The hash over the spec's sources."""
        return str(self.data["environment"]["software"]["spec_hash"])

    @property
    def machine(self) -> str:
        """The name of the machine whose datasheet the driver used; empty without one."""
        return str(self.data["machine"]["name"]) if self.data["machine"] else ""


def read_result(path: str) -> Result:
    """A result from its file.

    Raises: Failure if it is not there, no JSON or does not fit the schema.
    """
    try:
        data = json.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise Failure(_fault(path, f"it can't be read: {(error.strerror or str(error)).lower()}")) from None
    except (ValueError, RecursionError) as error:
        raise Failure(_fault(path, f"it is no JSON: {error}")) from None
    schema = json.loads((PACKAGE / "runtime/bench/result.schema.json").read_text(encoding="utf-8"))
    found = list(faults(data, schema))
    if found:
        notes = tuple(Note(f"{place or 'the document'} {what}") for place, what in found[:_SHOWN])
        raise Failure(_fault(path, "it does not fit the schema of results", notes))
    return Result(path, data)


def _fault(path: str, why: str, notes: tuple[Note, ...] = ()) -> Diagnostic:
    return Diagnostic(
        code=BAD_RESULT, message=f"`{path}`: {why}", span=None, notes=notes, help=BAD_RESULT.fix
    )


def other_spec(result: Result, why: str) -> Failure:
    """The failure for a result that does not belong to the spec."""
    message = f"`{result.source}` was measured on `{result.spec}`, {why}"
    return Failure(Diagnostic(code=OTHER_SPEC, message=message, span=None, help=OTHER_SPEC.fix))


def measurements(
    results: tuple[Result, ...], op: str, workload: str, machine: str
) -> tuple[Measurement, ...]:
    """What was measured of an op at a workload, on the card of that machine."""
    return tuple(
        _measurement(r, record)
        for r in results
        if r.data["op"] == op and r.machine in ("", machine)
        for record in r.data["results"]
        if record["workload"] == workload
    )


def _measurement(result: Result, record: Mapping[str, Any]) -> Measurement:
    found = record["measured"] or {"status": "not measured", "reason": "no GPU was there"}
    gpu = result.data["environment"]["gpu"]
    line = record["roofline"]
    calibrated = found.get("calibrated") or {}
    baseline = found.get("baseline")
    interval = found.get("interval_s")
    ok = found["status"] == "ok"
    return Measurement(
        source=result.source,
        status=found["status"],
        reason=found.get("reason", ""),
        gpu=gpu["name"] if gpu else "",
        dims=", ".join(f"{k} = {v}" for k, v in (*record["dims"].items(), *record["dtypes"].items())),
        time=found.get("time_s") if ok else None,
        interval=(interval[0], interval[1]) if interval and ok else None,
        floor=line["floor_s"] if line else None,
        calibrated=calibrated.get("predicted_s"),
        ledger=tuple((row["name"], row["seconds"]) for row in found.get("ledger") or ()) if ok else (),
        rates=dict(found.get("rates") or {}),
        cost=dict(record["cost"]),
        baseline=(
            f"{baseline['speedup']:.3g}× against {baseline['peer']} ({baseline['version']})"
            if baseline
            else ""
        ),
        warnings=tuple(_warnings(found)),
        missing=tuple(_missing(result, record, found)),
    )


def _warnings(found: Mapping[str, Any]) -> Iterator[str]:
    if found.get("fallback"):
        yield f"fallback: {found['fallback']}"
    if found.get("drifted"):
        yield f"the rate drifted by {100 * (found.get('drift') or 0):+.1f}% during the run"
    if found.get("throttled_rounds"):
        yield f"the clock was held down in {found['throttled_rounds']} of {found.get('rounds', '?')} rounds"
    if found.get("incomplete"):
        yield f"incomplete: {found['incomplete']}"


def _missing(result: Result, record: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """What a full report also says: shape, types, layout, latency, rates, a baseline, end-to-end gain."""
    if not record["tensors"]:
        yield "layout"
    if not found.get("time_s"):
        yield "latency"
    if not found.get("rates"):
        yield "achieved rates"
    if not found.get("baseline"):
        yield "a baseline"
    if result.data["environment"]["gpu"] is None:
        yield "the GPU"
    if not found.get("ledger"):
        yield "where the time went"
    yield "end-to-end gain: a kernel's time alone claims none"
