"""The parser of ``.op`` items."""

from __future__ import annotations

from functools import lru_cache

from lark import Lark

from opspec import resources
from opspec.parsers import cached_parser


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser of ``.op`` items."""
    return cached_parser(resources.grammar(), lexer="basic", start=["item", "lexical"])
