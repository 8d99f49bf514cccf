"""Diagnostics: what went wrong, where, why, and what to do about it."""

from opspec.diagnostics.core import Code, Diagnostic, Failure, Note, Severity, codes, register

__all__ = ["Code", "Diagnostic", "Failure", "Note", "Severity", "codes", "register"]
