"""Documents that can be printed in more or fewer lines, after Wadler, "A prettier printer" (2003).

A ``Group`` is printed on one line where it fits and has no hard line in it, else each of its own lines is a
line end. A ``Suffix`` (a trailing comment) waits for the end of its line and has no width.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 110


@dataclass(frozen=True, slots=True)
class Line:
    """A line end, or ``flat`` where its group is on one line. ``hard``: always a line end."""

    flat: str = " "
    hard: bool = False


@dataclass(frozen=True, slots=True)
class IfBroken:
    """Text that is only there where its group is on several lines."""

    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """A trailing comment, with the column that it had (from 0), and whether that took more than two spaces."""

    text: str
    column: int
    padded: bool


@dataclass(frozen=True, slots=True)
class Indent:
    """Lines in ``body`` begin ``by`` columns further in."""

    by: int
    body: Document


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that end together or not at all."""

    body: Document


@dataclass(frozen=True, slots=True)
class Concat:
    """One after the other."""

    parts: tuple[Document, ...]


Document = str | Line | IfBroken | Suffix | Indent | Group | Concat

HARD = Line(hard=True)
SOFT = Line(flat="")
SPACE = Line()


def concat(*parts: Document) -> Document:
    """Documents one after the other."""
    return Concat(parts)


@dataclass(frozen=True, slots=True)
class Printed:
    """A line of text without its trailing comments."""

    text: str
    comments: tuple[Suffix, ...]


def flat(document: Document) -> str | None:
    """The text on one line, or None if it needs several."""
    out: list[str] = []
    stack = [document]
    while stack:
        match stack.pop():
            case str() as text:
                out.append(text)
            case Line(flat=text, hard=hard):
                if hard:
                    return None
                out.append(text)
            case Indent(body=body) | Group(body=body):
                stack.append(body)
            case Concat(parts=parts):
                stack.extend(reversed(parts))
            case IfBroken():
                pass
            case Suffix():
                return None
    return "".join(out)


def printed(document: Document) -> list[Printed]:
    """The lines of a document."""
    forced = _forced(document)
    lines: list[Printed] = []
    text: list[str] = []
    comments: list[Suffix] = []
    column = 0
    stack: list[tuple[int, bool, Document]] = [(0, True, document)]
    while stack:
        indent, broken, doc = stack.pop()
        match doc:
            case str():
                text.append(doc)
                column += len(doc)
            case Line(flat=on_one_line, hard=hard):
                if not broken and not hard:
                    text.append(on_one_line)
                    column += len(on_one_line)
                    continue
                lines.append(Printed("".join(text).rstrip(), tuple(comments)))
                text, comments, column = [" " * indent], [], indent
            case IfBroken(text=more):
                text.append(more if broken else "")
            case Suffix():
                comments.append(doc)
            case Indent(by=by, body=body):
                stack.append((indent + by, broken, body))
            case Concat(parts=parts):
                stack.extend((indent, broken, p) for p in reversed(parts))
            case Group(body=body):
                breaks = id(doc) in forced or not _fits(doc, WIDTH - column, stack, forced)
                stack.append((indent, breaks, body))
    lines.append(Printed("".join(text).rstrip(), tuple(comments)))
    return lines


def _fits(document: Document, room: int, rest: list[tuple[int, bool, Document]], forced: set[int]) -> bool:
    """Whether the document on one line, and what follows up to the next line end, has room."""
    stack: list[tuple[bool, Document]] = [(False, document)]
    behind = len(rest)
    while True:
        if not stack:
            if not behind:
                return True
            behind -= 1
            _, mode, doc = rest[behind]
            stack.append((mode, doc))
        broken, doc = stack.pop()
        match doc:
            case str():
                room -= len(doc)
            case Line(flat=on_one_line, hard=hard):
                if broken or hard:
                    return True
                room -= len(on_one_line)
            case Suffix() | IfBroken():
                pass
            case Indent(body=body):
                stack.append((broken, body))
            case Group(body=body):
                stack.append((broken or id(doc) in forced, body))
            case Concat(parts=parts):
                stack.extend((broken, p) for p in reversed(parts))
        if room < 0:
            return False


def _forced(document: Document) -> set[int]:
    """The groups, by identity, that hold a hard line or a trailing comment."""
    found: set[int] = set()
    _force(document, found)
    return found


def _force(document: Document, found: set[int]) -> bool:
    match document:
        case str() | IfBroken():
            return False
        case Line(hard=hard):
            return hard
        case Suffix():
            return True
        case Indent(body=body):
            return _force(body, found)
        case Concat(parts=parts):
            forced = [_force(p, found) for p in parts]  # each of them, so that its own groups are found
            return any(forced)
        case Group(body=body):
            hard = _force(body, found)
            if hard:
                found.add(id(document))
            return hard
