"""Text of a question to a tree. Nothing is evaluated, no text is ever handed to SymPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta

from opspec.analysis.codes import BAD_QUERY
from opspec.analysis.query.quantity import UNITS
from opspec.diagnostics import Diagnostic, Failure
from opspec.parsers import cached_parser
from opspec.resources import grammar
from opspec.source import Source, Span

_LONGEST = 4000
_DEEPEST = 60
_LONGEST_NUMBER = 300


@dataclass(frozen=True, slots=True)
class Number:
    """``0.3 ms``: the digits as written, and the unit (empty: none)."""

    digits: str
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class Name:
    """``flops.sfu.exp`` or ``bytes[k]``."""

    text: str
    selector: str
    span: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """``add sub mul div power neg`` of its operands, or a comparison ``== != < <= > >=``."""

    op: str
    operands: tuple[Asked, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Close:
    """``a ~ b within p %``."""

    a: Asked
    b: Asked
    percent: Asked
    span: Span


@dataclass(frozen=True, slots=True)
class On:
    """``x on h200``."""

    x: Asked
    machine: str
    span: Span


@dataclass(frozen=True, slots=True)
class At:
    """``x at (T = 8192)``."""

    x: Asked
    settings: tuple[tuple[str, Asked], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Tends:
    """``T -> oo``, an argument of ``limit``."""

    name: str
    to: Asked
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """``solve(E == E, G)`` and other functions."""

    function: str
    arguments: tuple[Asked | Tends, ...]
    span: Span


Asked = Number | Name | Operation | Close | On | At | Call


def parse(text: str, *, within: Span | None = None) -> Asked:
    """The tree of a question.

    ``within``: the place of the text in a file, for messages; a source of its own otherwise.

    Raises: Failure if it can't be read.
    """
    base = (
        within if within is not None and within.text == text else Span(Source("<query>", text), 0, len(text))
    )
    if len(text) > _LONGEST or _depth(text) > _DEEPEST:
        raise Failure(_fault("the query is too long or too deeply nested", base))
    try:
        tree = _parser().parse(text)
        result: Asked = _Builder(base).transform(tree)
    except UnexpectedCharacters as e:
        raise Failure(_fault(f"`{e.char}` does not belong in a query", _at(base, _offset(e), 1))) from None
    except UnexpectedToken as e:
        raise Failure(_unexpected(e, base)) from None
    except UnexpectedInput:
        raise Failure(_fault("the query can't be read", base)) from None
    except VisitError as e:
        raise e.orig_exc from None
    return result


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return cached_parser(grammar("query.lark"))


def _offset(error: UnexpectedInput) -> int:
    """Where the parser stopped."""
    return int(error.pos_in_stream or 0)  # type: ignore[redundant-expr]


def _depth(text: str) -> int:
    deepest = depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        deepest = max(deepest, depth)
    run = longest = 0
    for c in text.replace(" ", ""):
        run = run + 1 if c == "-" else 0
        longest = max(longest, run)
    return max(deepest, longest)


def _unexpected(error: UnexpectedToken, base: Span) -> Diagnostic:
    token = error.token
    if token.type == "$END":
        return _fault("the query ends too early", Span(base.source, base.end, base.end))
    place = _at(base, token.start_pos or 0, len(token))
    before = base.text[: token.start_pos or 0].rstrip()
    if token.type == "NAME" and before[-1:].isdigit():
        return Diagnostic(code=BAD_QUERY, message=f"`{token}` is no unit", span=place, help=f"units: {UNITS}")
    return _fault(f"`{token}` can't stand here", place, _advice(str(token), before))


def _advice(found: str, before: str) -> str:
    """What is probably wrong at a token; nothing if there is no telling."""
    if found in (")", "]", ",") and before.endswith((",", "(", "[", "=")):
        return f"something is missing before `{found}`"
    if found == "=":
        return "equality is written `==`"
    if before.endswith(" at"):
        return "shapes stand in brackets: `ai at (T = 8192)`"
    if (found[0].isalnum() or found == "(") and (before[-1:].isalnum() or before.endswith((")", "]"))):
        return f"an operator is missing before `{found}`"
    return ""


def _at(base: Span, offset: int, size: int) -> Span:
    return Span(base.source, base.start + offset, min(base.start + offset + size, base.end))


def _fault(message: str, span: Span, help: str = "") -> Diagnostic:
    return Diagnostic(
        code=BAD_QUERY,
        message=message,
        span=span,
        help=help or "a query looks like `ai.tensor at (T = 8192)`",
    )


class _Builder(Transformer[Token, Any]):
    """Lark's tree to ours."""

    def __init__(self, base: Span) -> None:
        super().__init__()
        self.base = base

    def _span(self, meta: Meta) -> Span:
        return _at(self.base, meta.start_pos, meta.end_pos - meta.start_pos)

    @v_args(meta=True)
    def number(self, meta: Meta, parts: list[Token]) -> Number:
        """A literal."""
        digits = str(parts[0]).replace("_", "")
        _, _, power = digits.lower().partition("e")
        if len(digits) > _LONGEST_NUMBER or (power and abs(int(power)) > _LONGEST_NUMBER):
            raise Failure(_fault("the number is too large", self._span(meta)))
        return Number(digits, str(parts[1]) if len(parts) > 1 else "", self._span(meta))

    @v_args(meta=True)
    def name(self, meta: Meta, parts: list[Any]) -> Name:
        """A dotted name, perhaps with a selector in brackets."""
        selector = parts.pop() if isinstance(parts[-1], tuple) else ("",)
        return Name(".".join(map(str, parts)), ".".join(selector), self._span(meta))

    def selector(self, parts: list[Token]) -> tuple[str, ...]:
        """The name in brackets."""
        return tuple(map(str, parts))

    @v_args(meta=True)
    def compare(self, meta: Meta, parts: list[Any]) -> Operation:
        """A comparison."""
        return Operation(str(parts[1]), (parts[0], parts[2]), self._span(meta))

    @v_args(meta=True)
    def close(self, meta: Meta, parts: list[Any]) -> Close:
        """Equal within a percentage."""
        return Close(parts[0], parts[1], parts[2], self._span(meta))

    @v_args(meta=True)
    def on(self, meta: Meta, parts: list[Any]) -> On:
        """On a named machine."""
        return On(parts[0], str(parts[1]), self._span(meta))

    @v_args(meta=True)
    def at(self, meta: Meta, parts: list[Any]) -> At:
        """With dims set."""
        return At(parts[0], tuple(parts[1:]), self._span(meta))

    def setting(self, parts: list[Any]) -> tuple[str, Asked]:
        """``T = 8192``."""
        return str(parts[0]), parts[1]

    @v_args(meta=True)
    def tends(self, meta: Meta, parts: list[Any]) -> Tends:
        """``T -> oo``."""
        return Tends(str(parts[0]), parts[1], self._span(meta))

    def argument(self, parts: list[Any]) -> Any:
        """An argument of a function."""
        return parts[0]

    @v_args(meta=True)
    def call(self, meta: Meta, parts: list[Any]) -> Call:
        """A function with its arguments."""
        return Call(str(parts[0]), tuple(parts[1:]), self._span(meta))


def _operation(op: str) -> Any:
    @v_args(meta=True)
    def build(self: _Builder, meta: Meta, parts: list[Any]) -> Operation:
        return Operation(op, tuple(parts), self._span(meta))

    return build


for _name in ("add", "sub", "mul", "div", "power", "neg"):
    setattr(_Builder, _name, _operation(_name))
