"""The Lark parser, built once and kept in the user's cache between runs.

The cache entry is keyed by the grammar, Lark's and Python's versions; a missing,
stale or broken one only costs the time to build it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import lark
from lark import Lark

from opspec import resources


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser of ``.op`` items."""
    text = resources.grammar()
    key = hashlib.sha256(f"{text}\0{lark.__version__}\0{sys.version}".encode()).hexdigest()[:24]
    path = _cache_folder() / f"grammar-{key}"
    with contextlib.suppress(Exception):
        return Lark.load(io.BytesIO(path.read_bytes()))
    built = Lark(
        text,
        parser="lalr",
        lexer="basic",
        start=["item", "lexical"],
        propagate_positions=True,
        maybe_placeholders=False,
    )
    with contextlib.suppress(OSError):
        _store(built, path)
    return built


def _cache_folder() -> Path:
    root = os.environ.get("OPSPEC_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(root or Path("~/.cache").expanduser()) / "opspec"


def _store(built: Lark, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    built.save(buffer)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(buffer.getvalue())
    Path(file.name).replace(path)
