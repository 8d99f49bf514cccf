"""Text → tokens that keep their comments, nested by brackets, one sequence per top-level item.

Nothing of a source is lost here: a comment belongs to the token before it on its line, else to the token that
follows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lark import Token

from opspec.diagnostics import Diagnostic, Failure
from opspec.frontend import lexing
from opspec.frontend.grammar import parser
from opspec.source import Source

_COMMENT = re.compile(r"#[^\n]*")
_OPENING = {"LPAR", "LSQB", "LBRACE"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: its text, its column (from 0), the spaces before it, and whether a blank line comes before it."""

    text: str
    column: int
    spaces: int
    blank: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A token. ``lead``: comments on lines of their own before it; ``trail``: the one behind it on its line.

    ``blank``: a blank line stands before it or its comments' end; ``fresh``: it begins a line. ``column`` is
    from 0, ``spaces`` what stands before it on its line.
    """

    kind: str
    text: str
    start: int
    column: int
    spaces: int
    lead: tuple[Comment, ...] = ()
    trail: Comment | None = None
    blank: bool = False
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Bracket:
    """What stands between two brackets."""

    open: Leaf
    parts: tuple[Node, ...]
    close: Leaf


Node = Leaf | Bracket


@dataclass(frozen=True, slots=True)
class Text:
    """The items of a file, and the comments behind the last."""

    items: tuple[tuple[Node, ...], ...]
    end: tuple[Comment, ...]


def read(source: Source) -> Text:
    """The nested tokens of a source whose syntax is right."""
    report: list[Diagnostic] = []
    tokens = list(lexing.clean(source, parser().lex(source.text), report))
    pieces = lexing.chunks(source, iter(tokens), report)
    if report:
        raise Failure(*report)
    leaves, end = _leaves(source, [t for t in tokens if t.type not in ("NEWLINE", "SEMICOLON")])
    items = []
    for piece in pieces:
        line = [leaves[t.start_pos or 0] if t.type != lexing.SEP else _separator(t) for t in piece.tokens]
        items.append(tuple(_nested(iter(line))))
    return Text(tuple(items), end)


def leaves_of(nodes: tuple[Node, ...] | list[Node]) -> Iterator[Leaf]:
    """All tokens in order, brackets included."""
    for node in nodes:
        match node:
            case Leaf():
                yield node
            case Bracket():
                yield node.open
                yield from leaves_of(node.parts)
                yield node.close


def first(node: Node) -> Leaf:
    """The first token."""
    return node.open if isinstance(node, Bracket) else node


def last(node: Node) -> Leaf:
    """The last token."""
    return node.close if isinstance(node, Bracket) else node


def _separator(token: Token) -> Leaf:
    return Leaf(kind=lexing.SEP, text=";", start=token.start_pos or 0, column=0, spaces=0)


def _nested(leaves: Iterator[Leaf]) -> Iterator[Node]:
    for leaf in leaves:
        if leaf.kind not in _OPENING:
            yield leaf
            continue
        stack: list[tuple[Leaf, list[Node]]] = [(leaf, [])]
        for inner in leaves:
            if inner.kind in _OPENING:
                stack.append((inner, []))
            elif inner.kind in _CLOSING:
                opened, parts = stack.pop()
                bracket = Bracket(opened, tuple(parts), inner)
                if not stack:
                    yield bracket
                    break
                stack[-1][1].append(bracket)
            else:
                stack[-1][1].append(inner)


def _leaves(source: Source, tokens: list[Token]) -> tuple[dict[int, Leaf], tuple[Comment, ...]]:
    """The tokens by where they start, and the comments at the end of the file."""
    text = source.text
    result: dict[int, Leaf] = {}
    pending: Leaf | None = None
    previous = 0
    for token in tokens:
        start = token.start_pos or 0
        trail, lead, blank, fresh = _gap(source, previous, start, at_start=pending is None)
        if pending is not None:
            result[pending.start] = _with_trail(pending, trail)
        column = source.position(start)[1] - 1
        before = text[max(previous, start - column) : start]
        pending = Leaf(
            kind=token.type,
            text=str(token),
            start=start,
            column=column,
            spaces=len(before) - len(before.rstrip(" \t\f")),
            lead=lead,
            blank=blank,
            fresh=fresh,
        )
        previous = token.end_pos or 0
    trail, end, _, _ = _gap(source, previous, len(text), at_start=pending is None)
    if pending is not None:
        result[pending.start] = _with_trail(pending, trail)
    return result, end


def _with_trail(leaf: Leaf, trail: Comment | None) -> Leaf:
    return Leaf(
        kind=leaf.kind,
        text=leaf.text,
        start=leaf.start,
        column=leaf.column,
        spaces=leaf.spaces,
        lead=leaf.lead,
        trail=trail,
        blank=leaf.blank,
        fresh=leaf.fresh,
    )


def _gap(
    source: Source, start: int, end: int, *, at_start: bool
) -> tuple[Comment | None, tuple[Comment, ...], bool, bool]:
    """Between two tokens: the comment behind the first, those before the second, and whether a blank line
    and a line end come before the second.
    """
    text = source.text
    trail: Comment | None = None
    lead: list[Comment] = []
    blank = False
    offset = start
    lines = text[start:end].split("\n")
    for k, line in enumerate(lines):
        found = _COMMENT.search(line)
        if found is not None:
            at = offset + found.start()
            column = source.position(at)[1] - 1
            spaces = found.start() - len(line[: found.start()].rstrip(" \t\f;"))
            comment = Comment(found[0].rstrip(), column, spaces, blank)
            if k == 0 and not at_start:
                trail = comment
            else:
                lead.append(comment)
            blank = False
        elif 0 < k < len(lines) - 1 or (k == 0 and at_start and len(lines) > 1):
            blank = True
        offset += len(line) + 1
    return trail, tuple(lead), blank, len(lines) > 1 or at_start
