"""Lark parsers, and what else is the same in every run, built once and kept in the user's cache between runs.

An entry is keyed by all that it depends on, Lark's and Python's versions included; a missing, stale or broken one
only costs the time to build it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import lark
from lark import Lark

T = TypeVar("T")


def cached_parser(text: str, **options: Any) -> Lark:
    """The LALR parser of a grammar; ``options`` are Lark's."""
    path = _path("grammar", f"{text}\0{sorted(options.items())}")
    with contextlib.suppress(Exception):
        return Lark.load(io.BytesIO(path.read_bytes()))
    built = Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False, **options)
    with contextlib.suppress(OSError):
        buffer = io.BytesIO()
        built.save(buffer)
        _store(buffer.getvalue(), path)
    return built


def cached_value(name: str, key: str, kind: type[T], build: Callable[[], T]) -> T:
    """A value that ``key`` and ``name`` determine, which can be pickled."""
    path = _path(name, key)
    with contextlib.suppress(Exception):
        found = pickle.loads(path.read_bytes())  # noqa: S301 - written by us, like the parsers
        if isinstance(found, kind):
            return found
    built = build()
    with contextlib.suppress(OSError):
        _store(pickle.dumps(built), path)
    return built


def _path(name: str, key: str) -> Path:
    whole = f"{key}\0{lark.__version__}\0{sys.version}"
    return cache_folder() / f"{name}-{hashlib.sha256(whole.encode()).hexdigest()[:24]}"


def cache_folder() -> Path:
    """``$OPSPEC_CACHE``, else ``opspec`` in the user's cache folder."""
    root = os.environ.get("OPSPEC_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(root or Path("~/.cache").expanduser()) / "opspec"


def _store(data: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)
