"""The diagnostic record and the registry of codes.

A code is registered once with its headline, what it means, why it is an error, an
example and a fix; the page of ``opspec explain CODE`` and the reference are made
from that. Rendering lives in ``diagnostics.render``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as L

from opspec.source import Span

Severity = L["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One kind of fault. ``code`` such as ``OP204``; the texts are whole sentences."""

    code: str
    title: str
    why: str
    example: str = ""
    fix: str = ""
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Note:
    """A fact beside a diagnostic, with its place if it has one."""

    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One fault, reported once. ``message`` stands alone; ``help`` proposes an edit."""

    code: Code
    message: str
    span: Span | None
    notes: tuple[Note, ...] = ()
    help: str = ""
    severity: Severity = field(default="error")


class Failure(Exception):
    """Raised to end a phase with its diagnostics. Exit status 2."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


_registry: dict[str, Code] = {}


def register(code: Code) -> Code:
    """Add a code to the registry; two registrations of one code are our bug."""
    if code.code in _registry:
        raise ValueError(f"diagnostic code {code.code} registered twice")
    _registry[code.code] = code
    return code


def codes() -> dict[str, Code]:
    """All registered codes, by name."""
    return dict(sorted(_registry.items()))
