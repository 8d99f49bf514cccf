"""Columns that the author lined up stay lined up: `=` and `for` of neighbouring lines, and trailing comments.

Neighbours whose `=` stood in one column, at least one of them behind more spaces than it needs, are set anew in
one column. Nothing is aligned that was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opspec.formatting.document import WIDTH, Printed, flat
from opspec.formatting.lexemes import Leaf, Node, first, leaves_of
from opspec.formatting.lines import Writer, clause_of


@dataclass(frozen=True, slots=True)
class Padding:
    """Spaces before the `=` of a line and before its `for`."""

    equal: int = 0
    clause: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """A column of the source, what it takes now, and whether there were more spaces than needed."""

    column: int
    width: int
    padded: bool


def paddings(lines: Sequence[list[Node]], writer: Writer, indent: int) -> list[Padding]:
    """What to add to each line of a block that begins in column ``indent``."""
    if writer.raw:
        return [Padding() for _ in lines]
    joined = [k > 0 and _follows(line) for k, line in enumerate(lines)]
    equals = _pads([_equal(line, writer) for line in lines], joined)
    heads = [_head(line, writer, pad) for line, pad in zip(lines, equals, strict=True)]
    clauses = _pads(heads, joined)
    room = [_width(line, writer) + e + c for line, e, c in zip(lines, equals, clauses, strict=True)]
    wide = any(r + indent > WIDTH for r, c in zip(room, clauses, strict=True) if c)
    return [Padding(e, 0 if wide else c) for e, c in zip(equals, clauses, strict=True)]


def _follows(line: list[Node]) -> bool:
    """Whether no blank line and no comment stands between a line and the one above."""
    leaf = first(line[0])
    leaves = list(leaves_of(line))
    moved = any(x.lead for x in leaves[1:]) or any(x.trail for x in leaves[:-1])
    return leaf.fresh and not (leaf.blank or leaf.lead or moved)


def _equal(line: list[Node], writer: Writer) -> _Place | None:
    head, _ = clause_of(line)
    at = next((k for k, n in enumerate(head) if isinstance(n, Leaf) and n.kind == "EQUAL"), 0)
    if not at or not first(line[0]).fresh:
        return None
    equal = first(head[at])
    width = len(flat(writer.words(head[:at])) or "")
    return None if equal.fresh else _Place(equal.column, width, equal.spaces > 1)


def _head(line: list[Node], writer: Writer, pad: int) -> _Place | None:
    head, clause = clause_of(line)
    if not clause or not first(line[0]).fresh or first(clause[0]).fresh:
        return None
    width = len(flat(writer.line(head)) or "") + pad
    return _Place(first(clause[0]).column, width, first(clause[0]).spaces > 2)


def _width(line: list[Node], writer: Writer) -> int:
    return len(flat(writer.line(line)) or "")


def _pads(places: list[_Place | None], joined: list[bool]) -> list[int]:
    result = [0] * len(places)
    for begin, end in _runs(places, joined):
        run = [p for p in places[begin:end] if p is not None]
        if any(p.padded for p in run):
            widest = max(p.width for p in run)
            result[begin:end] = [widest - p.width for p in run]
    return result


def _runs(places: Sequence[_Place | None], joined: Sequence[bool]) -> list[tuple[int, int]]:
    """Where runs of neighbours in one column begin and end."""
    runs: list[tuple[int, int]] = []
    begin = 0
    for k in range(1, len(places) + 1):
        before = places[k - 1]
        after = places[k] if k < len(places) else None
        if before is None or after is None or not joined[k] or before.column != after.column:
            if before is not None:
                runs.append((begin, k))
            begin = k
    return runs


def with_comments(lines: Sequence[Printed]) -> list[str]:
    """The lines with their trailing comments, two spaces behind or in a column."""
    places = [_comment(p) for p in lines]
    pads = _pads(places, [True] * len(lines))
    return [
        f"{p.text}{' ' * (pad + 2)}{p.comments[0].text}" if p.comments else p.text
        for p, pad in zip(lines, pads, strict=True)
    ]


def _comment(line: Printed) -> _Place | None:
    if not line.comments or "\n" in line.text:
        return None
    comment = line.comments[0]
    return _Place(comment.column, len(line.text), comment.padded)
