"""Text → syntax tree, one top-level item at a time, so that one mistake hides no other."""

from __future__ import annotations

from functools import lru_cache

from lark import Token, Tree, UnexpectedToken
from lark.exceptions import UnexpectedInput

from opspec.diagnostics import Diagnostic
from opspec.frontend import building, lexing
from opspec.frontend.faults import syntax as faults
from opspec.frontend.faults.naming import nearest
from opspec.frontend.grammar import parser
from opspec.frontend.syntax import Expr, File, Item
from opspec.source import Source, Span

_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "DOC": "a doc string",
    "SEP": "a new line",
    "COMPARE": "a comparison",
    "SIGN": "`+` or `-`",
    "TIMES": "`*`, `/`, `//` or `%`",
    "POWER": "`**`",
    "ARROW": "`->`",
    "DOTDOT": "`..`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "EQUAL": "`=`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "DOT": "`.`",
    "VBAR": "`|`",
    "TILDE": "`~`",
    "AT": "`@`",
    "$END": "the end of the item",
}
_ITEMS = (
    "op", "fn", "dtype", "import", "workload", "expect", "boundary", "pipeline", "variant", "evidence", "machine",
    "ledger",
)  # fmt: skip


def parse(source: Source, report: list[Diagnostic]) -> File:
    """Parse a file; faults go to ``report``, and items without any come back."""
    if len(source.text) > lexing.MAX_CHARACTERS:
        report.append(faults.too_big(source, f"{lexing.MAX_CHARACTERS:,} characters"))
        return File(source, "", (), complete=False)
    before = len(report)
    tokens = list(lexing.clean(source, parser().lex(source.text), report))
    if len(report) > before and report[-1].code is faults.TOO_BIG:
        return File(source, "", (), complete=False)
    doc = ""
    pieces = lexing.chunks(source, tokens, report)
    if pieces and len(pieces[0].tokens) == 1 and pieces[0].tokens[0].type == "DOC":
        doc = building.doc_text(str(pieces.pop(0).tokens[0]))
    elif pieces and pieces[0].tokens[0].type == "DOC":
        doc = building.doc_text(str(pieces[0].tokens[0]))
    items: list[Item] = []
    strays = [d.span.start for d in report if d.span is not None]
    for piece in pieces:
        first, last = piece.tokens[0].start_pos or 0, source.text.find("\n", piece.tokens[-1].end_pos or 0)
        if len(report) - before >= lexing.MAX_FAULTS:
            break
        stray = any(first <= at and (at < last or last < 0) for at in strays)
        tree = _tree(source, piece, [] if stray else report)
        if tree is not None:
            _collect(source, tree, items, report)
    return File(source, doc, tuple(items), complete=len(report) == before)


def parse_expression(source: Source, report: list[Diagnostic]) -> Expr | None:
    """Parse one expression (used by tools that show or ask for one), or report why not."""
    wrapped = Source(source.name, f"fn f() = {source.text}")
    inner: list[Diagnostic] = []
    items = parse(wrapped, inner).items
    report.extend(inner)
    return getattr(items[0], "value", None) if items and not inner else None


def _collect(source: Source, tree: Tree[Token], items: list[Item], report: list[Diagnostic]) -> None:
    try:
        items.append(building.Builder(source, report).item(tree))
    except building.Rejected:
        return
    except RecursionError:
        report.append(faults.too_deep(building.span_of(source, tree), lexing.MAX_DEPTH))


def _tree(source: Source, piece: lexing.Chunk, report: list[Diagnostic]) -> Tree[Token] | None:
    """Run the LALR parser over one item, deciding for each keyword whether it is a name here."""
    machine = parser().parse_interactive(start="item")
    table = machine.parser_state.parse_conf.parse_table
    keywords = _keywords()
    last = piece.tokens[-1]
    previous: Token | None = None
    for token in piece.tokens:
        accepted = table.states[machine.parser_state.position]
        fed = token
        if token.type in keywords and token.type not in accepted:
            if "NAME" in accepted and token.type not in _RESERVED:
                fed = Token.new_borrow_pos("NAME", str(token), token)
            elif "NAME" in accepted and token.type in _RESERVED:
                report.append(faults.reserved(lexing.span_of(source, token), str(token), "anything"))
                return None
        try:
            machine.feed_token(fed)
        except UnexpectedToken:
            report.append(_unexpected(source, fed, previous, set(accepted), piece))
            return None
        previous = token
    if piece.cut is not None:
        report.append(faults.unclosed(lexing.span_of(source, piece.cut), str(piece.cut)))
        return None
    try:
        result = machine.feed_token(Token.new_borrow_pos("$END", "", last))
    except UnexpectedInput:
        accepted = table.states[machine.parser_state.position]
        end = Span(source, last.end_pos or 0, last.end_pos or 0)
        report.append(faults.unexpected(end, "end of the item", _expected(set(accepted))))
        return None
    return result if isinstance(result, Tree) else None


_RESERVED = {"AND", "OR", "NOT", "FOR", "ELSE", "IN", "USING"}


_OPERATORS = {"SIGN", "TIMES", "COMPARE"}
_CLOSERS = ("RPAR", "RSQB", "RBRACE")


@lru_cache(maxsize=1)
def _keywords() -> frozenset[str]:
    return frozenset(
        t.name for t in parser().terminals if t.pattern.type == "str" and t.pattern.value.isalpha()
    )


def _unexpected(
    source: Source, token: Token, previous: Token | None, accepted: set[str], piece: lexing.Chunk
) -> Diagnostic:
    span = lexing.span_of(source, token)
    if piece.cut is not None and token.column == 1:
        return faults.unclosed(lexing.span_of(source, piece.cut), str(piece.cut))
    if token.type == "SEP":
        found, span = "end of the line", Span(source, span.start, span.start)
        if previous is not None:
            end = previous.end_pos or 0
            span = Span(source, end, end)
    else:
        found = f"`{token}`" if len(token) < 40 else f"`{token[:40]}…`"
    if token.type in ("RPAR", "RSQB", "RBRACE") and len(piece.tokens) == 1:
        return faults.unopened(span, str(token))
    help_ = _advice(token, previous, accepted)
    return faults.unexpected(span, found, _expected(accepted), help_)


def _advice(token: Token, previous: Token | None, accepted: set[str]) -> str:
    if previous is None or "OP" in accepted:
        return nearest(str(token), _ITEMS)
    if token.type == "NAME":
        close = nearest(str(token), [k.lower() for k in accepted & _keywords()])
        if close:
            return close
    if previous.type == "NAME" and "COLON" in accepted and nearest(str(previous), ("inout",)):
        return "did you mean `inout`?"
    closing = [k for k in _CLOSERS if k in accepted]
    if previous.type == "COMMA" and closing:
        return _behind_comma(token, _WORDS[closing[0]])
    if token.type == "EQUAL" and "COMPARE" in accepted:
        return "equality is written `==`"
    if str(token) in ("if", "elif", "while", "return", "lambda") and token.type == "NAME":
        return f"`{token}` is no word of this language; a choice is `where(condition, a, b)`"
    if token.type == "NAME" and str(previous) in ("if", "while", "return", "def", "lambda"):
        return f"`{previous}` is no word of this language; a choice is `where(condition, a, b)`"
    if token.type == "NAME" and previous.type == "NAME" and "EQUAL" in accepted:
        close = nearest(str(previous), ("kernel", "require", "assume", "let", "dtype", "schedule"))
        if close:
            return close
    if (
        token.type in ("NAME", "NUMBER")
        and previous.type in ("NAME", "NUMBER", "RPAR", "RSQB")
        and "SEP" in accepted
    ):
        return "a statement ends with its line or with `;`; a product needs `*`"
    if previous.type.isalpha() and str(previous) in _ITEMS and token.type == "EQUAL":
        return f"`{previous}` is a word of the language here; choose another name"
    return ""


def _behind_comma(token: Token, closing: str) -> str:
    """Behind the last element of a list stands something that is none."""
    if token.type == "COMMA":
        return "take one of the two commas out"
    if token.type in ("ARROW", "LBRACE", *_CLOSERS):
        return f"the list is still open: close it with {closing} before `{token}`"
    return f"take `{token}` out: a comma may be the last of a list"


def _expected(accepted: set[str]) -> str:
    words = []
    if accepted >= _OPERATORS:
        accepted = accepted - _OPERATORS - {"AND", "OR", "POWER", "DOT", "ELSE", "LSQB", "LPAR", "USING"}
        words.append("an operator")
    for kind in sorted(accepted):
        if kind.startswith("__") or kind.islower():
            continue
        if kind in _WORDS:
            words.append(_WORDS[kind])
        elif kind.isupper():
            words.append(f"`{kind.lower()}`")
    words = sorted(set(words), key=lambda w: (w.startswith("`"), w))
    if len(words) > 9:
        words = [*words[:8], "…"]
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else "".join(words)
