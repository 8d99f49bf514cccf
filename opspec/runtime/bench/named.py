"""Peers that a user names on the command line: ``--peer module:function`` or ``--peer path/to/file.py:function``.

Such a function takes the op's arguments in the order of its signature and returns its results, then the new
contents of what the op changes in place; it changes nothing itself. The module is code that the user asks to
run, found as Python finds it from the current folder.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from opspec.runtime.bench.model import Dims, Dtypes, Peer, UsageError


def named_peer(text: str) -> Peer:
    """The peer of that name; UsageError if it can't be had."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"`--peer {text}` is not MODULE:FUNCTION")
    try:
        module = from_file(Path(place)) if place.endswith(".py") else from_path(place)
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


def from_file(path: Path) -> Any:
    """A module by its file."""
    spec = importlib.util.spec_from_file_location(f"opspec_peer_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def version_of(module: Any) -> str:
    """Name and version of the distribution that a module belongs to, as far as it says."""
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    version = getattr(module, "__version__", None) or getattr(top, "__version__", None)
    return f"{top.__name__} {version}" if isinstance(version, str) else ""
