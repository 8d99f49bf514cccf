"""What a character that no token begins with was probably meant to be."""

from __future__ import annotations

import unicodedata

_MEANT = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "×": "*", "·": "*", "∗": "*", "⋅": "*", "÷": "/", "∕": "/", "⁄": "/",
    "≤": "<=", "≥": ">=", "≠": "!=", "≡": "==", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "″": '"',
    "→": "->", "⇒": "->", "…": "..", "∞": "inf", "∑": "sum", "Σ": "sum", "∏": "prod", "√": "sqrt", "∧": "and",
    "∨": "or", "¬": "not", "∈": "in", "^": "**", "&": "and", "!": "not", "²": "** 2", "³": "** 3", "∣": "|",
}  # fmt: skip
_LETTERS = dict(
    zip(
        "аеорсхуіјѕһԁԛԝАВЕКМНОРСТХІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧοѵνικ",
        "aeopcxyijshdqwABEKMHOPCTXISJABEZHIKMNOPTYXovvik",
        strict=True,
    )
)
_WORDS = {
    "'": 'strings and doc strings stand in `"`',
    "?": "a choice is written `where(condition, a, b)`",
    "\\": "a line goes on inside brackets and beside an operator, without `\\`",
    "$": "a name is written bare",
    "`": "a name is written bare",
}


def meant_by(character: str) -> str:
    """A proposal in words, or the empty string."""
    if character in _MEANT:
        return f"did you mean `{_MEANT[character]}`?"
    if character in _LETTERS:
        return f"this looks like the letter `{_LETTERS[character]}` and is {_called(character)}"
    if character in _WORDS:
        return _WORDS[character]
    plain = unicodedata.normalize("NFKC", character)
    if plain != character and plain.isascii() and plain.strip():
        return f"did you mean `{plain}`?"
    if unicodedata.category(character) in {"Zs", "Cf", "Cc", "Zl", "Zp"}:
        return f"{_called(character)} cannot be seen; delete it"
    return "names are made of ASCII letters, digits and `_`" if character.isalpha() else ""


def _called(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}{f' {name}' if name else ''}"
