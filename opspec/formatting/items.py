"""A top-level item → a document: its head, and blocks of lines in braces.

Comments stay with the line or parameter that they stand at; one inside of an expression moves before its line.
"""

from __future__ import annotations

from collections.abc import Sequence

from opspec.formatting.aligning import Padding, paddings
from opspec.formatting.document import (
    HARD,
    SOFT,
    SPACE,
    Concat,
    Document,
    Group,
    IfBroken,
    Indent,
    Line,
    concat,
)
from opspec.formatting.lexemes import Bracket, Comment, Leaf, Node, first, last, leaves_of
from opspec.formatting.lines import Writer, split, suffix
from opspec.formatting.spacing import gaps, unary_signs

_STEP = 2
_WHOLE = {"EXPECT", "PIPELINE", "VARIANT", "EVIDENCE", "MACHINE", "LEDGER"}


def item(nodes: list[Node]) -> tuple[list[Comment], Document]:
    """An item without its doc string, and the comments that move before it."""
    leaves = list(leaves_of(nodes))
    kind = leaves[0].kind
    writer = Writer(gaps(leaves, raw=kind == "EXPECT"), unary_signs(leaves), kind == "EXPECT", kind in _WHOLE)
    comments, document = _line(writer, nodes, Padding(), 0)
    return comments, concat(document, suffix(last(nodes[-1]).trail))


def leading(comments: Sequence[Comment], *, blank: bool) -> list[Document]:
    """Comments on lines of their own; ``blank``: the first may have a blank line before it."""
    parts: list[Document] = []
    for k, comment in enumerate(comments):
        parts += [HARD] if comment.blank and (k or blank) else []
        parts += [comment.text, HARD]
    return parts


def _line(writer: Writer, nodes: list[Node], padding: Padding, indent: int) -> tuple[list[Comment], Document]:
    """A line with its blocks, and the comments that move before it."""
    begin, end = first(nodes[0]), last(nodes[-1])
    comments: list[Comment] = []
    parts: list[Document] = []
    for segment in _segments(nodes):
        if isinstance(segment, list):
            leaves, document = list(leaves_of(segment)), writer.line(segment, padding.equal, padding.clause)
        elif segment.open.kind == "LBRACE":
            leaves, document = [segment.open], _block(writer, segment, begin.kind, indent)
        else:
            leaves, document = [segment.open], _parameters(writer, segment)
        parts += [writer.gaps[leaves[0].start], document] if parts else [document]
        whole = isinstance(segment, list)
        for leaf in leaves:
            comments += leaf.lead if leaf is not begin else ()
            comments += [leaf.trail] if whole and leaf is not end and leaf.trail is not None else []
        if isinstance(segment, Bracket) and segment.close is not end and segment.close.trail is not None:
            comments.append(segment.close.trail)
    return comments, Concat(tuple(parts))


def _segments(nodes: list[Node]) -> list[Bracket | list[Node]]:
    """A line cut into blocks, the signature of an op, and what stands between them."""
    result: list[Bracket | list[Node]] = []
    signed = first(nodes[0]).kind != "OP" or not any(isinstance(n, Bracket) for n in nodes)
    for k, node in enumerate(nodes):
        if isinstance(node, Bracket):
            before = nodes[k - 1].kind if k and isinstance(nodes[k - 1], Leaf) else ""  # type: ignore[union-attr]
            block = node.open.kind == "LBRACE" and before not in {"IN", "TILDE"}
            signature = node.open.kind == "LPAR" and not signed
            signed = signed or signature
            if block or signature:
                result.append(node)
                continue
        if not result or isinstance(result[-1], Bracket):
            result.append([])
        line = result[-1]
        assert isinstance(line, list)
        line.append(node)
    return result


def _block(writer: Writer, block: Bracket, kind: str, indent: int) -> Document:
    """Lines in braces: on one line if they were written so and fit. ``kind`` is the word before its name."""
    lines = _lines(block, kind)
    inside = [block.open.trail, *block.close.lead]
    inside += [c for leaf in leaves_of(block.parts) for c in (leaf.trail, *leaf.lead)]
    together = not any(inside) and not any(first(line[0]).fresh for line in lines)
    if not lines and together:
        return "{}"
    apart = Line(flat="  " if kind in {"BOUNDARY", "SCHEDULE"} else "; ") if together else HARD
    parts: list[Document] = []
    for k, (line, padding) in enumerate(zip(lines, paddings(lines, writer, indent + _STEP), strict=True)):
        comments, document = _line(writer, line, padding, indent + _STEP)
        leaf = first(line[0])
        blank = leaf.blank and (k > 0 or bool(leaf.lead)) and not comments
        parts += [apart] if k else []
        parts += [*leading([*leaf.lead, *comments], blank=k > 0), *([HARD] if blank else [])]
        parts += [document, suffix(last(line[-1]).trail)]
    end = leading(block.close.lead, blank=bool(lines))[:-1]
    if end:
        parts += [*([HARD] if lines else []), *end]
    edge = SPACE if together else HARD
    body = Indent(_STEP, concat(*([edge] if parts else []), *parts))
    return Group(concat("{", suffix(block.open.trail), body, edge, "}"))


def _lines(block: Bracket, kind: str) -> list[list[Node]]:
    """The lines of a block: between separators, or as its items begin."""
    lines = [line for line in split(list(block.parts), "SEP") if line]
    if kind == "BOUNDARY":
        return [part for line in lines for part in _groups(line)]
    return [part for line in lines for part in _entries(line)] if kind == "SCHEDULE" else lines


def _groups(nodes: list[Node]) -> list[list[Node]]:
    """``kernel a { … } kernel b { … }`` after each brace."""
    result: list[list[Node]] = [[]]
    for node in nodes:
        result[-1].append(node)
        if isinstance(node, Bracket):
            result.append([])
    return [line for line in result if line]


def _entries(nodes: list[Node]) -> list[list[Node]]:
    """``stream t  tile d = 64, e`` before each key: a word behind a value that no comma continues."""
    result: list[list[Node]] = []
    expected = 0  # values still to come before the next word is a key
    for k, node in enumerate(nodes):
        mark = isinstance(node, Leaf) and node.kind in {"EQUAL", "COMMA"}
        if not mark and not expected:
            result.append([])
            expected = 1
        elif not mark:
            following = nodes[k + 1] if k + 1 < len(nodes) else None
            expected = int(isinstance(following, Leaf) and following.kind in {"EQUAL", "COMMA"})
        result[-1].append(node)
    return result


def _parameters(writer: Writer, node: Bracket) -> Document:
    """A signature: one parameter a line if there are comments, a comma behind the last, or no room."""
    elements = split(list(node.parts), "COMMA")
    commas = [n for n in node.parts if isinstance(n, Leaf) and n.kind == "COMMA"]
    parts: list[Document] = []
    for k, element in enumerate(elements):
        leaves = [*leaves_of(element), *commas[k : k + 1]]
        behind = [leaf.trail for leaf in leaves if leaf.trail is not None]
        moved = [*leaves[0].lead, *behind[:-1], *(c for leaf in leaves[1:] for c in leaf.lead)]
        trail = behind[-1] if behind else None
        comma = IfBroken(",") if k == len(elements) - 1 else ","
        parts += [SPACE] if k else []
        parts += [*leading(moved, blank=False), writer.expression(element), comma, suffix(trail)]
    end = leading(node.close.lead, blank=False)[:-1]
    if end:
        parts += [*([HARD] if elements else []), *end]
    edge = HARD if elements and len(commas) == len(elements) else SOFT
    return Group(concat("(", suffix(node.open.trail), Indent(_STEP, concat(edge, *parts)), edge, ")"))
