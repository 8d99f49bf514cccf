"""What stands between two tokens of a line: nothing or a space."""

from __future__ import annotations

from opspec.formatting.lexemes import Leaf

_OPERATORS = {"SIGN", "TIMES", "POWER", "COMPARE", "EQUAL", "ARROW", "VBAR", "TILDE", "AT", "AND", "OR"}
_BEFORE_OPERAND = {
    *_OPERATORS, "LPAR", "LSQB", "LBRACE", "COMMA", "COLON", "DOTDOT", "NOT", "FOR", "IN", "ELSE", "SEP", "REQUIRE",
    "ASSUME",
}  # fmt: skip
_PREFIX_WORDS = {"AND", "OR", "NOT", "FOR", "IN", "ELSE"}
_LINE_WORDS = {"REQUIRE", "ASSUME"}


def unary_signs(leaves: list[Leaf]) -> set[int]:
    """Where the signs stand that have no left operand."""
    return {
        leaf.start
        for k, leaf in enumerate(leaves)
        if leaf.kind == "SIGN" and (k == 0 or leaves[k - 1].kind in _BEFORE_OPERAND)
    }


def gaps(leaves: list[Leaf], *, raw: bool) -> dict[int, str]:
    """The text before each token of an item, by where the token starts. ``raw``: its lines are queries."""
    unary = unary_signs(leaves)
    return {leaf.start: _gap(leaves, k, unary, raw=raw) for k, leaf in enumerate(leaves)}


def _gap(leaves: list[Leaf], k: int, unary: set[int], *, raw: bool) -> str:
    if k == 0 or leaves[k - 1].kind == "SEP":
        return ""
    before, after = leaves[k - 1], leaves[k]
    kinds = [leaf.kind for leaf in leaves[max(0, k - 3) : k]]
    if after.kind in {"COMMA", "RPAR", "RSQB", "COLON", "DOT"} or before.kind in {"LPAR", "LSQB", "DOT"}:
        return ""
    if before.start in unary:
        return ""
    if "DOTDOT" in (before.kind, after.kind):
        at = k if after.kind == "DOTDOT" else k - 1
        return " " if _is_unit(leaves, at - 1) else ""
    if _in_rate(leaves, k, raw=raw):
        return ""
    if raw:
        if after.text == "%" and before.kind == "NUMBER" and not _begins_operand(leaves, k + 1):
            return ""
        if "EQUAL" in (before.kind, after.kind):
            return ""
        if after.kind == "LPAR" and before.kind not in _OPERATORS:
            return " " if after.spaces else ""
    if after.kind == "LPAR":
        return _before_parenthesis(leaves, k, kinds)
    if after.kind == "LSQB":
        return " " if before.kind in {*_OPERATORS, *_PREFIX_WORDS, "COMMA", "COLON"} else ""
    return " "


def _before_parenthesis(leaves: list[Leaf], k: int, kinds: list[str]) -> str:
    """A call has no space before its arguments; a word of the language has."""
    before = leaves[k - 1]
    if before.kind in {"RSQB", "RPAR"}:
        return ""
    if before.kind in _PREFIX_WORDS | _OPERATORS | {"COMMA", "COLON", "LBRACE"}:
        return " "
    if before.kind in _LINE_WORDS and (k == 1 or leaves[k - 2].kind in {"SEP", "LBRACE"}):
        return " "
    if "USING" in kinds[:-1] and kinds[-2] == "USING":
        return " "
    if kinds[-2:-1] == ["TILDE"]:
        return " "
    return ""


def _is_unit(leaves: list[Leaf], k: int) -> bool:
    return k >= 1 and leaves[k].kind not in _OPERATORS and leaves[k - 1].kind == "NUMBER"


def _in_rate(leaves: list[Leaf], k: int, *, raw: bool) -> bool:
    """Whether the gap before a token is one of ``TB/s`` behind a number; in a query only if it is none now."""
    at = k if leaves[k].text == "/" else k - 1 if leaves[k - 1].text == "/" else 0
    if at < 2 or at + 1 >= len(leaves) or not _is_unit(leaves, at - 1):
        return False
    slash, second = leaves[at], leaves[at + 1]
    if not second.text.isalpha():
        return False
    return not raw or (not slash.spaces and not second.spaces)


def _begins_operand(leaves: list[Leaf], k: int) -> bool:
    return k < len(leaves) and (leaves[k].kind in {"NUMBER", "LPAR"} or leaves[k].text.isidentifier())
