"""Where the files that are not Python live: grammar, templates, prelude, machines.

In a checkout ``grammar/`` and ``templates/`` lie beside the package; a wheel carries
them inside the package. The checkout wins.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


@lru_cache(maxsize=8)
def folder(name: str) -> Path:
    """The folder ``grammar`` or ``templates``; raises FileNotFoundError if the install is broken."""
    for root in (PACKAGE.parent, PACKAGE):
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(f"opspec is installed without its folder {name!r}")


def grammar(name: str = "op.lark") -> str:
    """Text of a grammar file."""
    return (folder("grammar") / name).read_text(encoding="utf-8")


def prelude() -> Path:
    """Path of the prelude, which is written in the language itself."""
    return PACKAGE / "prelude" / "prelude.op"


def machines() -> Path:
    """Folder of the machine files that ship."""
    return PACKAGE / "machines"


def starters() -> Path:
    """Folder of the specs that `opspec new` begins with."""
    return PACKAGE / "starters"
