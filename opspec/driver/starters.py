"""Specs to begin with: one of each kind, under a name of the user's."""

from __future__ import annotations

import os
import re
from pathlib import Path

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.driver.files import UNWRITABLE
from opspec.frontend import load_text
from opspec.resources import starters

BAD_NAME = register(
    Code(
        code="OP629",
        title="a name that a new spec cannot have",
        why="The name of the file is that of its op, and so of the generated Python function.",
        example="opspec new my-norm --kind reduction",
        fix="Use letters, digits and `_`, and no word of the language: `opspec new my_norm`.",
    )
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_PLACEHOLDER = "starter"


def kinds() -> tuple[str, ...]:
    """The kinds of specs that there are to begin with."""
    return tuple(sorted(p.stem for p in starters().glob("*.op")))


def starting_spec(kind: str, name: str) -> str:
    """The text of a spec of that kind whose op has that name.

    Raises: Failure if an op cannot be called so.
    """
    text = (starters() / f"{kind}.op").read_text(encoding="utf-8")
    if not _NAME.fullmatch(name):
        fitting = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:100]
        if not _NAME.fullmatch(fitting):
            fitting = f"op_{fitting}"
        raise Failure(_bad(name, "is no name", f"for instance `{fitting}`"))
    text = re.sub(rf"\b{_PLACEHOLDER}", name, text)
    try:
        load_text(text, name=f"{name}.op")
    except Failure:
        raise Failure(_bad(name, "cannot name an op", f"for instance `{name}_op`")) from None
    return text


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, whole.

    Raises: Failure if it is, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        message = f"`{path}` is there already, and stays as it is"
        raise Failure(
            Diagnostic(code=UNWRITABLE, message=message, span=None, help="choose another name")
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Failure(
            Diagnostic(code=UNWRITABLE, message=f"`{path}` can't be written: {reason}", span=None)
        ) from None


def _bad(name: str, why: str, hint: str) -> Diagnostic:
    return Diagnostic(code=BAD_NAME, message=f"`{name[:60]}` {why}", span=None, help=hint)
