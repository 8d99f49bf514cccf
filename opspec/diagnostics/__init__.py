"""Diagnostics: what went wrong, where, why, and what to do about it."""

from opspec.diagnostics.core import Code, Diagnostic, Failure, Note, Severity, codes, register
from opspec.diagnostics.render import render_github, render_json, render_text

__all__ = [
    "Code",
    "Diagnostic",
    "Failure",
    "Note",
    "Severity",
    "codes",
    "register",
    "render_github",
    "render_json",
    "render_text",
]
