"""Command lines with a ``--``: what stands behind it is paths, whatever stands before."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """A parser that may take everything behind ``--`` as ``paths``; without that it is argparse's own."""

    paths_behind_dashes = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse what stands before the ``--``, and set ``paths`` from what stands behind it."""
        if not self.paths_behind_dashes or args is None:
            return super().parse_known_args(args, namespace)
        words = list(args)
        at = words.index("--") if "--" in words else len(words)
        found, rest = super().parse_known_args(words[:at], namespace)
        found.paths = words[at + 1 :]
        return found, rest
