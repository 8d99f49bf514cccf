"""A line of a spec → a document. Long ones break at commas, before `for`, then before the operator that binds least."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.formatting.document import (
    SOFT,
    SPACE,
    WIDTH,
    Concat,
    Document,
    Group,
    Indent,
    Line,
    Suffix,
    concat,
    flat,
)
from opspec.formatting.lexemes import Bracket, Comment, Leaf, Node, first

# From the operator that binds least; a line end before any of them continues the line.
_LEVELS = ("VBAR", "OR", "AND", "COMPARE", "SIGN", "TIMES")
_CONTINUED = 4
_NESTED = 2
_INDICES = 60


@dataclass(frozen=True, slots=True)
class Writer:
    """Documents of the lines of one item. ``gaps`` is what stands before each token, ``unary`` the signs
    without left operand; ``raw``: lines are queries; ``whole``: operators do not continue a line.
    """

    gaps: dict[int, str]
    unary: set[int]
    raw: bool
    whole: bool

    def line(self, nodes: list[Node], before_equal: int = 0, before_for: int = 0) -> Document:
        """A statement, a setting, a stage; the numbers are spaces that align it with its neighbours."""
        if self.raw:
            return self.words(nodes)
        if isinstance(nodes[0], Leaf) and nodes[0].kind == "ARROW":
            return self._short(self.words(nodes), WIDTH - 4) or self.commas(nodes)
        head, clause = clause_of(nodes)
        equal = next((k for k, n in enumerate(head) if isinstance(n, Leaf) and n.kind == "EQUAL"), None)
        parts: list[Document] = []
        if equal is not None and equal > 0:
            parts.append(f"{flat(self.words(head[:equal])) or ''}{' ' * before_equal} = ")
            head = head[equal + 1 :]
        parts.append(self.commas(head))
        if clause:
            inner = concat(" " * before_for, Line("  "), "for ", self.commas(clause[1:]))
            parts.append(Group(Indent(_CONTINUED, inner)))
        return concat(*parts)

    def commas(self, nodes: list[Node]) -> Document:
        """Expressions between commas, as many on a line as fit."""
        pieces = split(nodes, "COMMA")
        parts: list[Document] = []
        for k, piece in enumerate(pieces):
            expression = self.expression(piece, _CONTINUED)
            parts += [",", Group(SPACE), expression] if k else [expression]
        return Indent(_CONTINUED, Concat(tuple(parts))) if len(pieces) > 1 else Concat(tuple(parts))

    def expression(self, nodes: list[Node], indent: int = 0, level: int = 0) -> Document:
        """Operands and operators; ``indent`` is how far in its further lines begin."""
        for k in range(len(_LEVELS) if self.whole else level, len(_LEVELS)):
            cuts = [i for i, n in enumerate(nodes) if i and self._operator(n, _LEVELS[k])]
            if not cuts:
                continue
            parts: list[Document] = [self.expression(nodes[: cuts[0]], _NESTED, k + 1)]
            for at, end in zip(cuts, [*cuts[1:], len(nodes)], strict=True):
                operand = self.expression(nodes[at + 1 : end], _NESTED, k + 1)
                parts += [SPACE, f"{first(nodes[at]).text} ", operand]
            return Group(Indent(indent, Concat(tuple(parts))))
        return self.words(nodes)

    def _operator(self, node: Node, kind: str) -> bool:
        return isinstance(node, Leaf) and node.kind == kind and node.start not in self.unary

    def words(self, nodes: list[Node]) -> Document:
        """Tokens and brackets side by side."""
        parts: list[Document] = []
        for k, node in enumerate(nodes):
            if k:
                parts.append(self.gaps[first(node).start])
            parts.append(node.text if isinstance(node, Leaf) else self.bracket(node))
        return Concat(tuple(parts))

    def bracket(self, node: Bracket) -> Document:
        """A bracketed list, one element a line if it does not fit."""
        pieces = split(list(node.parts), "COMMA")
        if not pieces:
            return node.open.text + node.close.text
        parts: list[Document] = []
        for k, piece in enumerate(pieces):
            parts += [",", SPACE, self.expression(piece)] if k else [self.expression(piece)]
        body = Indent(2, concat(SOFT, *parts))
        whole = concat(node.open.text, body, SOFT, node.close.text)
        indices = node.open.kind == "LSQB" and self._short(whole, _INDICES)
        return indices or Group(whole)

    def _short(self, document: Document, limit: int) -> str | None:
        """The text of what is never broken, unless it is longer than that."""
        text = flat(document)
        return text if text is not None and len(text) <= limit else None


def split(nodes: list[Node], kind: str) -> list[list[Node]]:
    """The runs between tokens of a kind; an empty one at the end is dropped."""
    result: list[list[Node]] = [[]]
    for node in nodes:
        if isinstance(node, Leaf) and node.kind == kind:
            result.append([])
        else:
            result[-1].append(node)
    return result if result[-1] else result[:-1]


def clause_of(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """A statement and its `for` clause. In the head of a workload `for` is another word."""
    kinds = [n.kind if isinstance(n, Leaf) else "" for n in nodes]
    if "EQUAL" not in kinds or "FOR" not in kinds:
        return nodes, []
    at = kinds.index("FOR")
    return (nodes[:at], nodes[at:]) if kinds.index("EQUAL") < at else (nodes, [])


def suffix(comment: Comment | None) -> Document:
    """A trailing comment, if there is one."""
    return Suffix(comment.text, comment.column, comment.spaces > 2) if comment is not None else ""
