"""Text → tokens for the parser: separators, limits and stray characters.

The terminals are those of ``grammar/op.lark``; this filter only decides which line
ends separate statements, cuts the stream into top-level items, and refuses text that
is too big or too deeply nested to be worked on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lark import Token

from opspec.diagnostics import Diagnostic
from opspec.frontend.faults import syntax as faults
from opspec.source import Source, Span

MAX_CHARACTERS = 400_000
MAX_TOKENS = 50_000
MAX_LINES = 100_000
MAX_DEPTH = 60
MAX_DIGITS = 40
MAX_FAULTS = 50

SEP = "SEP"
_OPENING = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_CLOSING = {v: k for k, v in _OPENING.items()}
_SHOWN = {"LPAR": "(", "LSQB": "[", "LBRACE": "{", "RPAR": ")", "RSQB": "]", "RBRACE": "}"}
_CONTINUES_AFTER = {
    "SIGN", "TIMES", "POWER", "COMPARE", "EQUAL", "COMMA", "COLON", "VBAR", "TILDE", "ARROW", "LBRACE",
    "AND", "OR", "NOT", "DOC",
}  # fmt: skip
_CONTINUES_BEFORE = {
    "SIGN", "TIMES", "POWER", "COMPARE", "EQUAL", "COMMA", "COLON", "VBAR", "RBRACE", "LBRACE", "AND", "OR",
    "FOR", "ELSE", "USING", "ARROW",
}  # fmt: skip
_STARTS = {
    "OP", "FN", "DTYPE", "IMPORT", "WORKLOAD", "EXPECT", "BOUNDARY", "PIPELINE", "VARIANT", "EVIDENCE", "MACHINE",
    "LEDGER",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chunk:
    """The tokens of one top-level item. ``cut``: it ended inside an open bracket, at this token."""

    tokens: tuple[Token, ...]
    cut: Token | None = None


def span_of(source: Source, token: Token) -> Span:
    """Where a token stands."""
    return Span(source, token.start_pos or 0, token.end_pos or 0)


def chunks(source: Source, tokens: Iterable[Token], report: list[Diagnostic]) -> list[Chunk]:
    """Cut a token stream into top-level items, with separators decided."""
    result: list[Chunk] = []
    current: list[Token] = []
    depth: list[Token] = []
    pending: Token | None = None
    raw = False
    for token in tokens:
        kind = token.type
        if kind in ("NEWLINE", "SEMICOLON"):
            if pending is None or kind == "SEMICOLON":
                pending = token
            continue
        if kind == "DOC" and current and not depth:
            result.append(Chunk(tuple(current)))
            current, pending = [], None
        starts = kind in _STARTS and token.column == 1 and (pending is not None or not current)
        if current and starts and current[-1].type != "DOC" and _is_item(source, token):
            result.append(Chunk(tuple(current), depth[-1] if depth else None))
            current, depth, pending = [], [], None
        if (
            current
            and pending is not None
            and not depth
            and not _continues(current[-1], token, pending, False)
        ):
            result.append(Chunk(tuple(current)))
            current = []
        elif current and pending is not None and not _continues(current[-1], token, pending, raw):
            inside = depth[-1].type if depth else "LBRACE"
            if inside == "LBRACE":
                current.append(Token.new_borrow_pos(SEP, ";", pending))
        pending = None
        if not current:
            raw = kind == "EXPECT"
        if kind in _OPENING:
            depth.append(token)
            if len(depth) > MAX_DEPTH:
                report.append(faults.too_deep(span_of(source, token), MAX_DEPTH))
                return result
        elif kind in _CLOSING:
            if depth and depth[-1].type == _CLOSING[kind]:
                depth.pop()
            elif depth:
                opened = depth[-1]
                report.append(
                    faults.mismatched(
                        span_of(source, token), str(token), str(opened), span_of(source, opened)
                    )
                )
                return result
            else:
                report.append(faults.unopened(span_of(source, token), str(token)))
                if len(report) >= MAX_FAULTS:
                    return result
                continue
        current.append(token)
    if current:
        result.append(Chunk(tuple(current), depth[-1] if depth else None))
    return result


def clean(source: Source, tokens: Iterator[Token], report: list[Diagnostic]) -> Iterator[Token]:
    """Drop characters that no token begins with, each run of them reported once, up to a limit."""
    count, lines, last = 0, 0, -2
    for token in tokens:
        count += token.type != "NEWLINE"
        lines += token.type == "NEWLINE"
        if count > MAX_TOKENS or lines > MAX_LINES:
            limit = f"{MAX_TOKENS:,} tokens" if count > MAX_TOKENS else f"{MAX_LINES:,} lines"
            report.append(faults.too_big(source, limit))
            return
        if token.type == "UNKNOWN":
            start = token.start_pos or 0
            if start != last + 1 and len(report) < MAX_FAULTS:
                report.append(faults.stray(span_of(source, token), str(token)))
            last = start
            continue
        if token.type in ("NUMBER", "NAME") and len(token) > 200:
            if len(report) < MAX_FAULTS:
                report.append(faults.too_long(span_of(source, token), 200))
            continue
        yield token


def _is_item(source: Source, token: Token) -> bool:
    """Whether the line reads like the head of an item, not like a statement on a tensor of that name."""
    rest = source.text[token.end_pos or 0 :][:200].lstrip(" \t")
    return bool(rest) and (rest[0].isalpha() or rest[0] in '_"')


def _continues(before: Token, after: Token, separator: Token, raw: bool) -> bool:
    """Whether the line end between two tokens is no separator."""
    if before.type == "LBRACE" or after.type == "RBRACE":
        return True
    if separator.type == "SEMICOLON":
        return False
    if raw:
        return after.type == "LBRACE"
    return before.type in _CONTINUES_AFTER or after.type in _CONTINUES_BEFORE
