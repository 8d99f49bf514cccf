"""Source text and places in it. Every syntax and IR node carries a ``Span``."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Source:
    r"""One text that a user wrote.

    ``name`` is the path as the user gave it (or a label such as ``<query>``);
    ``text`` has ``\n`` line ends and no byte-order mark.
    """

    name: str
    text: str = field(repr=False)

    @classmethod
    def normalised(cls, name: str, text: str) -> Source:
        """Build a source from raw text: drop a BOM, turn CRLF and CR into LF."""
        return cls(name, text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offsets of the first character of each line."""
        return (0, *(i + 1 for i, c in enumerate(self.text) if c == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Text of line ``number`` (from 1) without its line end."""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range ``[start, end)`` of character offsets in one source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The spanned characters."""
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> str:
        """``file:line:col`` of the first character."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))
