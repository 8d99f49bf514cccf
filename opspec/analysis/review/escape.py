"""Text that users wrote, made harmless for Markdown and HTML.

A name may be any identifier, a path or a budget any text: none of it may open a tag, a link, a mention or
a table cell.
"""

from __future__ import annotations

import re

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,-()=+%")
_POINT = re.compile(r"(?<=\d)&#46;(?=\d)|&#46;(?= |$)")  # decimal points and full stops make no link
_LONGEST = 400


def one_line(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, without control characters, cut if it is very long."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def code(text: str) -> str:
    """A code span: by backticks where nothing in the text can end it, else by entities."""
    flat = one_line(text)
    if not flat:
        return ""
    if "`" in flat or "|" in flat or "\\" in flat:
        return f"<code>{entities(flat)}</code>"
    return f"`{flat}`"


def words(text: str) -> str:
    """Running text in which nothing means anything to Markdown or HTML."""
    return _POINT.sub(".", entities(one_line(text)))


def entities(text: str) -> str:
    """Every character that could mean something as a numeric entity."""
    return "".join(c if c in _PLAIN or ord(c) > 127 else f"&#{ord(c)};" for c in text)
