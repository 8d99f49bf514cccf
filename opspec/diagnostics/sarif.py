"""Diagnostics as SARIF 2.1.0 (OASIS), for code scanning and editors that read it.

Columns count characters, ends are exclusive. Every code that a diagnostic can carry is a rule, so that a viewer
has its page; a result carries the line as a snippet and a fingerprint that survives moved lines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath, PurePosixPath
from typing import Any
from urllib.parse import quote

from opspec.diagnostics.core import Code, Diagnostic
from opspec.source import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERSION = "2.1.0"


def render_sarif(
    diagnostics: Iterable[Diagnostic], rules: Mapping[str, Code], pages: Mapping[str, str], version: str
) -> str:
    """One run of ``opspec`` as a SARIF log. ``rules``: every code by name; ``pages``: their text for people."""
    ordered = list(rules)
    log = {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "opspec",
                        "semanticVersion": version,
                        "rules": [_rule(rules[name], pages[name]) for name in ordered],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(d, ordered) for d in diagnostics],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _rule(code: Code, page: str) -> dict[str, Any]:
    fix = f"\n\n**Fix:** {code.fix}" if code.fix else ""
    example = f"\n\n```\n{code.example}\n```" if code.example else ""
    return {
        "id": code.code,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.why},
        "help": {"text": page, "markdown": f"{code.why}{example}{fix}"},
        "defaultConfiguration": {"level": code.severity},
    }


def _result(d: Diagnostic, rules: list[str]) -> dict[str, Any]:
    text = d.message + "".join(f"\nnote: {n.text}" for n in d.notes) + (f"\nhelp: {d.help}" if d.help else "")
    found: dict[str, Any] = {
        "ruleId": d.code.code,
        "ruleIndex": rules.index(d.code.code),
        "level": d.severity,
        "message": {"text": text},
        "partialFingerprints": {"opspec/v1": _fingerprint(d)},
    }
    if d.span is not None:
        found["locations"] = [{"physicalLocation": _place(d.span)}]
    related = [
        {"id": k, "message": {"text": n.text}, "physicalLocation": _place(n.span)}
        for k, n in enumerate(d.notes, start=1)
        if n.span is not None
    ]
    return {**found, "relatedLocations": related} if related else found


def _place(span: Span) -> dict[str, Any]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(max(span.start, span.end))
    return {
        "artifactLocation": {"uri": _uri(span.source.name)},
        "region": {
            "startLine": line,
            "startColumn": column,
            "endLine": end_line,
            "endColumn": end_column,
            "snippet": {"text": span.source.line(line)},
        },
    }


def _uri(name: str) -> str:
    """A relative reference for a path below the working folder, a ``file`` URI for an absolute one."""
    path = PurePath(name)
    if path.is_absolute():
        return path.as_uri()
    return quote(PurePosixPath(path.as_posix()).as_posix())


def _fingerprint(d: Diagnostic) -> str:
    """Equal for the same fault of the same text, wherever its line has moved to."""
    where = (d.span.source.name, d.span.text) if d.span is not None else ("", "")
    return hashlib.sha256("\0".join((d.code.code, d.message, *where)).encode("utf-8", "replace")).hexdigest()[
        :32
    ]
