"""The JSON schema of machine files, made from the same table that they are read by."""

from __future__ import annotations

from typing import Any

from opspec.analysis.machine_file import TARGET, described
from opspec.ir.machine_keys import KEYS, TENSOR, TENSOR_TYPES, Key


def machine_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a machine file as TOML gives it; values in base units."""
    tables: dict[str, dict[str, Any]] = {}
    for name, key in KEYS.items():
        table, _, field = name.partition(".")
        tables.setdefault(table, {})[field] = _value(key)
    peaks = {t: _value(TENSOR, dense=True) for t in TENSOR_TYPES}
    properties: dict[str, Any] = {
        "name": {"type": "string", "pattern": r"\S", "description": "what `--machine` is asked by"},
        "title": {"type": "string", "pattern": r"\S"},
        "target": {"type": "string", "pattern": f"^({TARGET})$", "description": "what kernels compile for"},
        **{name: _table(fields, list(fields)) for name, fields in tables.items()},
        "tensor": {**_table(peaks, []), "minProperties": 1, "description": "dense matrix-unit peaks by type"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "opspec machine",
        **_table(properties, list(properties)),
    }


def _table(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _value(key: Key, *, dense: bool = False) -> dict[str, Any]:
    """One value: a plausible number, where it is from, and for a peak of a matrix unit that it is dense."""
    kind = "integer" if key.whole else "number"
    fields: dict[str, Any] = {
        "value": {"type": kind, "minimum": key.low, "maximum": key.high},
        "source": {"type": "string", "pattern": r"\S"},
        "density": {"const": "dense"} if dense else {"type": "string"},
    }
    required = ["value", "source", "density"] if dense else ["value", "source"]
    return {**_table(fields, required), "description": described(key)}
