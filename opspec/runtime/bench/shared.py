"""What drivers of one run share: roofs, measured once and again when they are old."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LASTING = 600.0  # seconds for which the roofs of a run hold


def stamp() -> str:
    """Now, as results write it: UTC to the second."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True, kw_only=True)
class RunRoofs:
    """The roofs of a run. ``wanted``: dtypes whose matrix rate any of its drivers stands beside."""

    wanted: tuple[str, ...] = ()
    lasting: float = LASTING
    now: Callable[[], float] = time.monotonic
    found: dict[str, Any] | None = None
    known: frozenset[str] = frozenset()
    taken: float = 0.0

    def of(self, measure: Callable[[Sequence[str]], dict[str, Any]], dtypes: Sequence[str]) -> dict[str, Any]:
        """The roofs, with when they were measured (``measured_at``) and how old they are (``age_s``).

        ``measure`` is asked where there are none yet, one of ``dtypes`` is missing or they are too old.
        """
        if self.found is None or not set(dtypes) <= self.known or self.now() - self.taken > self.lasting:
            every = tuple(dict.fromkeys((*dtypes, *self.wanted)))
            self.found = {**measure(every), "measured_at": stamp()}
            self.known, self.taken = frozenset(every), self.now()
        return {**self.found, "age_s": self.now() - self.taken}
