"""What a rewrite of the scheduler says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One application of a rewrite, for ``explain`` and the kernel's docstring."""

    rule: str
    statement: str
    text: str
