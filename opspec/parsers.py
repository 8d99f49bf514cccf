"""Lark parsers, built once and kept in the user's cache between runs.

An entry is keyed by the grammar, the options, Lark's and Python's versions; a missing, stale or
broken one only costs the time to build it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import lark
from lark import Lark


def cached_parser(text: str, **options: Any) -> Lark:
    """The LALR parser of a grammar; ``options`` are Lark's."""
    key = f"{text}\0{sorted(options.items())}\0{lark.__version__}\0{sys.version}"
    path = cache_folder() / f"grammar-{hashlib.sha256(key.encode()).hexdigest()[:24]}"
    with contextlib.suppress(Exception):
        return Lark.load(io.BytesIO(path.read_bytes()))
    built = Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False, **options)
    with contextlib.suppress(OSError):
        _store(built, path)
    return built


def cache_folder() -> Path:
    """``$OPSPEC_CACHE``, else ``opspec`` in the user's cache folder."""
    root = os.environ.get("OPSPEC_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(root or Path("~/.cache").expanduser()) / "opspec"


def _store(built: Lark, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    built.save(buffer)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(buffer.getvalue())
    Path(file.name).replace(path)
