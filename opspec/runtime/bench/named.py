"""Peers that a user names: ``--peer module:function`` or ``--peer path/to/file.py:function``, for every op or for one
(``--peer op=module:function``); or in a file (``--peers-from``) that has a table ``[op]`` with ``peers = [...]``, and
``at = [...]`` for the workloads to measure.

Such a function takes the op's arguments in the order of its signature and returns its results, then the new
contents of what the op changes in place; it changes nothing itself. The module is code that the user asks to
run, found as Python finds it from the current folder.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from opspec.runtime.bench.model import Dims, Dtypes, Peer, UsageError


def split_peer(text: str) -> tuple[str, str]:
    """The op that a peer is for, empty for every op, and its MODULE:FUNCTION."""
    op, equals, rest = text.partition("=")
    return (op, rest) if equals and op.isidentifier() else ("", text)


def peers_of(op: str, texts: Iterable[str]) -> tuple[Peer, ...]:
    """Of the peers that are named, those for that op; each once. UsageError if one can't be had."""
    names = [name for which, name in map(split_peer, texts) if which in ("", op)]
    return tuple(named_peer(name) for name in dict.fromkeys(names))


def check_peers(texts: Iterable[str], ops: Sequence[str]) -> None:
    """UsageError for a peer of an op that there isn't."""
    for text in texts:
        op, _ = split_peer(text)
        if op and op not in ops:
            raise UsageError(f"`--peer {text}`: there is no op `{op}`; there are: {', '.join(ops)}")


def read_peers(path: Path) -> dict[str, dict[str, list[str]]]:
    """``{op: {"peers": [...], "at": [...]}}`` of a file; UsageError if it says anything else.

    Paths in it are as ``--peer`` takes them: from the current folder.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"`--peers-from {path}`: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"`--peers-from {path}`: {error}") from error
    return {op: read_table(path, op, table) for op, table in data.items()}


def read_table(path: Path, op: str, table: Any) -> dict[str, list[str]]:
    """What such a file says of one op."""
    if not isinstance(table, Mapping):
        raise UsageError(f"`--peers-from {path}`: `{op}` is no table; write `[OP]`")
    for key, value in table.items():
        if key not in ("peers", "at"):
            raise UsageError(f"`--peers-from {path}`: `[{op}]` may hold peers and at, not `{key}`")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UsageError(f"`--peers-from {path}`: `{key}` of `[{op}]` is no list of strings")
    return {"peers": list(table.get("peers", ())), "at": list(table.get("at", ()))}


def named_peer(text: str) -> Peer:
    """The peer of that name; UsageError if it can't be had."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"`--peer {text}` is not MODULE:FUNCTION")
    try:
        module = from_file(Path(place).resolve()) if place.endswith(".py") else from_path(place)
    except Exception as error:
        raise UsageError(f"`--peer {text}`: {type(error).__name__}: {error}") from error
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise UsageError(f"`--peer {text}`: `{place}` has no function `{name}`")

    def factory(_dims: Dims, _dtypes: Dtypes) -> Any:
        return function

    return Peer(text, factory, version_of(module))


def from_path(name: str) -> Any:
    """A module by its name; the current folder is looked at first."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(here)


@lru_cache(maxsize=64)
def from_file(path: Path) -> Any:
    """A module by its file, loaded once."""
    spec = importlib.util.spec_from_file_location(f"opspec_peer_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def version_of(module: Any) -> str:
    """Name and version of the distribution that a module belongs to, as far as it says: by ``__version__``, or by
    ``__distribution__``, the name under which what it calls is installed."""
    distribution = getattr(module, "__distribution__", None)
    if isinstance(distribution, str):
        try:
            return f"{distribution} {metadata.version(distribution)}"
        except metadata.PackageNotFoundError:
            return ""
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    version = getattr(module, "__version__", None) or getattr(top, "__version__", None)
    return f"{top.__name__} {version}" if isinstance(version, str) else ""
