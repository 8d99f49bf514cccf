"""A file in its one layout."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.formatting import lexemes
from opspec.formatting.aligning import with_comments
from opspec.formatting.document import HARD, Document, concat, printed
from opspec.formatting.items import item, leading
from opspec.formatting.lexemes import Leaf, Node, first
from opspec.formatting.lines import suffix
from opspec.frontend.loading import ordered
from opspec.frontend.parsing import parse
from opspec.frontend.syntax import File
from opspec.source import Source, Span

CHANGED = register(
    Code(
        code="OP911",
        title="the formatter would change what a file says",
        why="The text is read again after it is laid out, and must be the same spec with the same comments.",
        example="opspec fmt specs/",
        fix="A fault of opspec; the file is untouched. Please report it with the file.",
    )
)


def format_source(source: Source) -> str:
    """The text in its one layout; the same for a text that already is in it.

    Raises: Failure with every fault of the syntax, in which case there is no layout.
    """
    before = parsed(source)
    written = lexemes.read(source)
    text = lay_out(written)
    again = Source(source.name, text)
    try:
        same = _same(before, parsed(again)) and _comments(written) == _comments(lexemes.read(again))
    except Failure:
        same = False
    if not same:
        message = f"the layout of `{source.name}` would not be the same spec"
        raise Failure(Diagnostic(code=CHANGED, message=message, span=Span(source, 0, 0)))
    return text


def parsed(source: Source) -> File:
    """The syntax tree of a file.

    Raises: Failure with every fault.
    """
    report: list[Diagnostic] = []
    file = parse(source, report)
    if report:
        raise Failure(*ordered(report))
    return file


def lay_out(text: lexemes.Text) -> str:
    """All items and comments of a file, with at most one blank line between two."""
    parts: list[Document] = []
    above = ""
    for k, nodes in enumerate(text.items):
        doc, rest = _documented(list(nodes))
        bare = not rest and k + 1 < len(text.items) and _documented(list(text.items[k + 1]))[0] is None
        comments, document = item(rest) if rest else ([], "")
        begin = doc or first(rest[0])
        apart = begin.blank or any(c.blank for c in begin.lead) or _apart(above, rest, begin)
        lead = [*begin.lead, *(comments if doc is None else [])]
        if parts:
            parts.append(HARD)
        if parts and apart and not (lead[0].blank if lead else False) and not _blank_inside(begin):
            parts.append(HARD)
        parts += leading(lead, blank=bool(parts))
        if begin.blank and lead and not comments:
            parts.append(HARD)
        if doc is not None:
            parts += [doc.text, ";" if bare else "", suffix(doc.trail), *([HARD] if rest else [])]
        if doc is not None and rest:
            leaf = first(rest[0])
            parts += leading([*leaf.lead, *comments], blank=True)
            parts += [HARD] if leaf.blank and not (comments and leaf.lead) else []
        parts.append(document)
        above = first(rest[0]).kind if rest else "DOC"
    end = leading(text.end, blank=bool(parts))
    if end:
        parts += [*([HARD] if parts else []), *end[:-1]]
    lines = with_comments(printed(concat(*parts))) if parts else []
    return "\n".join(line for line in lines) + ("\n" if lines else "")


def _apart(above: str, rest: list[Node], begin: Leaf) -> bool:
    """Whether a blank line stands between two items, whatever the author wrote: around ops and doc strings."""
    below = first(rest[0]).kind if rest else "DOC"
    return bool(above) and ("OP" in (above, below) or above == "DOC" or begin.kind == "DOC")


def _blank_inside(begin: Leaf) -> bool:
    """Whether there already is a blank line among the comments before an item."""
    return bool(begin.lead) and (begin.blank or any(c.blank for c in begin.lead))


def _documented(nodes: list[Node]) -> tuple[Leaf | None, list[Node]]:
    head = nodes[0]
    return (head, nodes[1:]) if isinstance(head, Leaf) and head.kind == "DOC" else (None, nodes)


def _comments(text: lexemes.Text) -> Counter[str]:
    """The comments of a text, whatever their order."""
    found = list(text.end)
    for nodes in text.items:
        for leaf in lexemes.leaves_of(nodes):
            found += [*leaf.lead, *([leaf.trail] if leaf.trail is not None else [])]
    return Counter(c.text for c in found)


def _bare(text: str) -> str:
    """A text without white space and comments, which are compared by themselves."""
    return "".join("".join(line.partition("#")[0] for line in text.splitlines()).split())


def _same(a: object, b: object) -> bool:
    """Whether two syntax trees say the same, wherever it is written."""
    match a, b:
        case Span(), Span():  # a budget is kept as its text, in which a comment may stand
            return _bare(a.text) == _bare(b.text)
        case Source(), Source():
            return True
        case tuple(), tuple():
            return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
        case _ if is_dataclass(a) and type(a) is type(b):
            names = [f.name for f in fields(a) if f.name != "span"]
            return all(_same(getattr(a, n), getattr(b, n)) for n in names)
        case _:
            return a == b or (a != a and b != b)  # noqa: PLR0124 - NaN is a literal
