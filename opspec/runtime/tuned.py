"""What ``opspec tune`` found for the kernels of a package, read by the package when it first launches.

The file ``tuned.json`` lies beside ``kernel.py`` and holds for the very text of that file; for another text it
says nothing. An entry is for one op, kernel block, device, bucket of shapes and dtypes, and names a variant of
the kernel and the launch options in which it differs from the untuned choice.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA = "opspec.tuned/1"
NAME = "tuned.json"
Options = Mapping[str, int]
Tuning = Mapping[str, Options]  # variant of a kernel → options that differ
Key = tuple[str, str, str, str]  # op, kernel block, device, bucket


def bucket(dims: Sequence[Any]) -> str:
    """The class of shapes and dtypes that shares a tuning: each extent up to the next power of two."""
    parts = [
        str(1 << max(d - 1, 0).bit_length()) if isinstance(d, int) else str(d).removeprefix("torch.")
        for d in dims
    ]
    return ",".join(parts)


def digest(kernel: Path) -> str:
    """What a file of kernels is recognised by."""
    return hashlib.sha256(kernel.read_bytes()).hexdigest()


def read(path: Path, kernel: Path) -> dict[Key, Tuning]:
    """The tunings of ``path`` for the text of ``kernel``; none where there is no such file or it is for another
    text, and a warning where it can't be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or document["kernel"] != digest(kernel):
            return {}
        return {key_of(entry): {entry["variant"]: options_of(entry)} for entry in document["entries"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        warnings.warn(f"{path.name} is left out: {type(error).__name__}: {error}", stacklevel=2)
        return {}


def key_of(entry: Mapping[str, Any]) -> Key:
    """What an entry is for."""
    op, kernel, device, shapes = (str(entry[k]) for k in ("op", "kernel", "device", "bucket"))
    return op, kernel, device, shapes


def options_of(entry: Mapping[str, Any]) -> dict[str, int]:
    """The launch options of an entry, which are whole numbers of at least 1."""
    found: dict[str, int] = {}
    for name, value in entry["options"].items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"`{name}` is {value!r}, not a whole number")
        found[str(name)] = value
    return found
