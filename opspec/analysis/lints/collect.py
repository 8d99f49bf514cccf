"""All lints of a module."""

from __future__ import annotations

from pathlib import Path

from opspec.analysis.lints.agree import disagreements
from opspec.analysis.lints.memory import materialised
from opspec.analysis.lints.release import gaps
from opspec.diagnostics import Diagnostic
from opspec.ir.program import Module


def lints(module: Module, folder: Path) -> tuple[Diagnostic, ...]:
    """Warnings about kernels, pipelines, ledgers and evidence. ``folder``: of the spec, for results that it names."""
    return (*materialised(module), *disagreements(module, folder), *gaps(module, folder))
