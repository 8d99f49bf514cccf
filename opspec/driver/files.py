"""Finding specs and writing artefacts: whole files or nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.diagnostics.hints import nearest

NOT_FOUND = register(
    Code(
        code="OP621",
        title="no spec at this path",
        why="A path on the command line names neither a `.op` file nor a folder that holds one.",
        example="opspec build spec/          # the folder is called specs/",
        fix="Check the path; `opspec build specs/` takes every spec of a folder.",
    )
)
UNWRITABLE = register(
    Code(
        code="OP622",
        title="the output can't be written",
        why="The folder or file that should receive the output can't be created or written. "
        "What was there before is untouched.",
        example="opspec build specs/ --out /etc/kernels",
        fix="Check permissions and free space, or choose another folder with `--out`.",
    )
)


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec file: where it is, how it is shown, and the folder that its package gets."""

    path: Path
    shown: str
    package: Path


def find_specs(paths: Iterable[str]) -> list[Spec]:
    """Every `.op` file that the paths name, each once, sorted; raises ``Failure`` for a path without one.

    Folders and pipes that are called so are left out; a link that leads nowhere is told by whoever reads it.
    """
    found: dict[Path, Spec] = {}
    for text in paths:
        path = Path(text)
        if text and path.is_dir():
            files = sorted(p for p in path.rglob("*.op") if p.is_file() or not p.exists())
        elif path.is_file():
            files = [path]
        else:
            raise Failure(
                Diagnostic(
                    code=NOT_FOUND,
                    message=f"`{text[:200]}` is neither a file nor a folder"
                    if path.exists()
                    else f"there is no file or folder `{text[:200]}`",
                    span=None,
                    help="" if path.exists() else _near(path),
                )
            )
        if not files:
            raise Failure(Diagnostic(code=NOT_FOUND, message=f"`{text}` holds no `.op` file", span=None))
        for file in files:
            found.setdefault(file.resolve(), _spec(file, path))
    return list(found.values())


def _near(path: Path) -> str:
    """A file or folder beside it that has nearly its name."""
    try:
        beside = [p.name for p in path.parent.iterdir() if p.suffix == ".op" or p.is_dir()]
    except OSError:
        return ""
    return nearest(path.name, beside[:1_000])


def _spec(file: Path, given: Path) -> Spec:
    """Package folders mirror the specs: below `specs/` in the working folder, else below the folder given."""
    resolved, here = file.resolve(), Path.cwd().resolve()
    relative = resolved.relative_to(here) if resolved.is_relative_to(here) else None
    if relative is not None:
        inner = (
            Path(*relative.parts[1:])
            if relative.parts[0] == "specs" and len(relative.parts) > 1
            else relative
        )
        return Spec(path=file, shown=relative.as_posix(), package=inner.with_suffix(""))
    base = given.resolve() if given.is_dir() else file.parent.resolve()
    inner = resolved.relative_to(base)
    return Spec(path=file, shown=inner.as_posix(), package=inner.with_suffix(""))


def read_text(path: Path) -> str | None:
    """The text of a generated file, None if it isn't there or isn't text."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a file so that readers see the old one or the new one, never a part."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode("utf-8") if isinstance(text, str) else text)
            mask = os.umask(0)
            os.umask(mask)
            Path(temporary).chmod(path.stat().st_mode & 0o777 if path.is_file() else 0o666 & ~mask)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Failure(
            Diagnostic(code=UNWRITABLE, message=f"`{path}` can't be written: {error.strerror}", span=None)
        ) from error
