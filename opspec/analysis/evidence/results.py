"""What was measured for an evidence block: a JSON file by the schema ``opspec.evidence/1``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from opspec.analysis.pipeline.codes import BAD_RESULT, refuse
from opspec.analysis.pipeline.results import read_json
from opspec.diagnostics import Failure
from opspec.ir.composition import Evidence
from opspec.ir.program import Module
from opspec.source import Source, Span

SCHEMA = "opspec.evidence/1"
DERIVED = ("end_to_end_gain", "kernel_gain", "ceiling", "saved_ms")
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "schema": str,
    "spec": str,
    "evidence": str,
    "pipeline": str,
    "variant": str,
    "level": str,
    "base": dict,
    "metrics": dict,
    "environment": dict,
}
_LARGEST = 1e300
_OPTIONAL = ("spec_sha256", "sources", "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Metrics of the change (``metrics``) and of what it replaces (``base``); ``level``: of the evidence.

    ``stale``: measured with another revision of the spec. ``warnings``: what a reader must know.
    """

    level: str
    metrics: Mapping[str, Fraction]
    base: Mapping[str, Fraction]
    environment: Mapping[str, Any]
    sources: Mapping[str, str]
    stale: bool = False
    warnings: tuple[str, ...] = ()


def load_results(path: str, module: Module, evidence: Evidence) -> Results:
    """The results of this spec's evidence.

    Raises: Failure with the reason if the file is not usable, lacks a field, or is of something else.
    """
    span = Span(Source("<results>", path), 0, len(path))
    data = read_json(Path(path), path, span)

    def bad(message: str, help: str = "") -> Failure:
        return refuse(BAD_RESULT, f"`{path}` {message}", span, help)

    if data.get("schema") != SCHEMA:
        raise bad(f"has the schema `{str(data.get('schema'))[:40]}`, not `{SCHEMA}`")
    missing = [k for k in _FIELDS if k not in data]
    if missing:
        raise bad(f"lacks {', '.join(f'`{k}`' for k in missing)}", f"the fields are {', '.join(_FIELDS)}")
    extra = [k for k in data if k not in _FIELDS and k not in _OPTIONAL]
    if extra:
        known = ", ".join((*_FIELDS, *_OPTIONAL))
        raise bad(f"has a field `{extra[0][:40]}` that the schema does not have", f"the fields are {known}")
    for name, kind in _FIELDS.items():
        if not isinstance(data[name], kind):
            raise bad(f"has a `{name}` that is no {'object' if kind is dict else 'string'}")
    spec = module.files[0].name
    for name, own in (
        ("evidence", evidence.name),
        ("pipeline", evidence.pipeline),
        ("variant", evidence.variant),
    ):
        if data[name] != own:
            raise bad(f"is about the {name} `{data[name][:60]}`, not `{own}`")
    if Path(data["spec"]).name != Path(spec).name:
        raise bad(f"is from the spec `{data['spec'][:80]}`, not `{spec}`")
    digest = data.get("spec_sha256", "")
    if not isinstance(digest, str):
        raise bad("has a `spec_sha256` that is no string")
    warnings = (
        () if digest else ("the results do not say of which revision of the spec they are (`spec_sha256`)",)
    )
    return Results(
        level=data["level"].strip(),
        metrics=_metrics(data["metrics"], "metrics", bad),
        base=_metrics(data["base"], "base", bad),
        environment=data["environment"],
        sources=_sources(data.get("sources", {}), bad),
        stale=bool(digest) and digest != module.digest,
        warnings=warnings,
    )


def _metrics(found: dict[str, Any], where: str, bad: Any) -> dict[str, Fraction]:
    """Numbers; true and false count as 1 and 0, and null is a metric that was not measured."""
    metrics: dict[str, Fraction] = {}
    taken = [name for name in DERIVED if name in found]
    if taken:
        raise bad(
            f"states `{where}.{taken[0]}`, which the pipeline gives", "leave it out, or give it another name"
        )
    for name, value in found.items():
        if value is None:
            continue
        if not isinstance(value, bool | int | float) or not -_LARGEST < value < _LARGEST:
            raise bad(f"has a `{where}.{name[:40]}` that is no finite number")
        metrics[name] = Fraction(int(value)) if isinstance(value, bool) else Fraction(repr(value))
    return metrics


def _sources(found: object, bad: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise bad("has `sources` that are no object of strings")
    return found
