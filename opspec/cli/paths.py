"""Command lines whose options come when they are needed, with paths behind a ``--``, and with near misses named."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

_CHOICE = re.compile(r"invalid choice: '(?P<value>[^']*)' \(choose from (?P<choices>.*)\)")
_OPTION = re.compile(r"unrecognized arguments: (?P<value>--[\w-]+)")


class Parser(argparse.ArgumentParser):
    """A parser that may take everything behind ``--`` as ``paths``; without that it is argparse's own.

    ``add_later`` adds its options before it parses for the first time.
    """

    paths_behind_dashes = False
    add_later: Callable[[Parser], None] | None = None

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse what stands before the ``--``, and set ``paths`` from what stands behind it."""
        if self.add_later is not None:
            add, self.add_later = self.add_later, None
            add(self)
        if not self.paths_behind_dashes or args is None:
            return self._own_options(*super().parse_known_args(args, namespace))
        words = list(args)
        at = words.index("--") if "--" in words else len(words)
        found, rest = super().parse_known_args(words[:at], namespace)
        found.paths = words[at + 1 :]
        return self._own_options(found, rest)

    def _own_options(self, found: Any, rest: list[str]) -> tuple[Any, list[str]]:
        """Refuse an option here, where it is known which ones there are."""
        if self._subparsers is None and any(word.startswith("--") for word in rest):
            self.error(f"unrecognized arguments: {' '.join(w for w in rest if w.startswith('--'))}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, with the nearest choice or option, and exit with 2."""
        from opspec.diagnostics.hints import nearest

        hint = ""
        if choice := _CHOICE.search(message):
            hint = nearest(choice["value"], re.findall(r"[\w-]+", choice["choices"]))
        elif option := _OPTION.search(message):
            hint = nearest(option["value"], self._option_string_actions)
        super().error(f"{message}; {hint}" if hint else message)
