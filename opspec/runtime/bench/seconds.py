"""Where the seconds of a measurement go: host time by part, kept in the result and printed nowhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Seconds:
    """Host seconds by part since this was made."""

    now: Callable[[], float] = time.perf_counter
    parts: dict[str, float] = field(default_factory=dict)
    start: float = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.now()

    @contextlib.contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Count what runs inside to that part, whatever ends it."""
        before = self.now()
        try:
            yield
        finally:
            self.parts[part] = self.parts.get(part, 0.0) + self.now() - before

    def record(self) -> dict[str, float]:
        """Each part, what none of them has (``rest``) and all together (``total``)."""
        total = self.now() - self.start
        return {**self.parts, "rest": total - sum(self.parts.values()), "total": total}
