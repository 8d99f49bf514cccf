"""Files → source texts, with limits on what is read."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from opspec.diagnostics import Failure
from opspec.frontend.faults import syntax as faults
from opspec.frontend.lexing import MAX_CHARACTERS
from opspec.source import Source, Span


def read_source(path: Path, shown: str, span: Span | None) -> Source:
    """The text of a file; raises Failure if it is missing, no file, too big or not UTF-8."""
    return source_of(read_bytes(path, shown, span), shown, span)


def read_bytes(path: Path, shown: str, span: Span | None) -> bytes:
    """What a file holds; raises Failure if it is missing, no file or too big for a spec."""
    try:
        with path.open("rb") as file:
            return read_stream(file, shown)
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise Failure(faults.unreadable(span, shown, reason)) from None
    except ValueError:
        raise Failure(faults.unreadable(span, shown, "the path contains a null byte")) from None


def read_stream(stream: BinaryIO, shown: str) -> bytes:
    """All that comes, if it is not more than a spec may be."""
    raw = stream.read(4 * MAX_CHARACTERS + 1)
    if len(raw) > 4 * MAX_CHARACTERS:
        raise Failure(faults.too_big(Source(shown, ""), f"{MAX_CHARACTERS:,} characters"))
    return raw


def source_of(raw: bytes, shown: str, span: Span | None) -> Source:
    """The text of what was read; raises Failure if it is not UTF-8."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as e:
        line = raw[: e.start].count(b"\n") + 1
        reason = f"line {line} is not UTF-8"
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            reason = "it is UTF-16"
        raise Failure(faults.unreadable(span, shown, reason, "save the file as UTF-8")) from None
    return Source.normalised(shown, text)
