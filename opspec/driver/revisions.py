"""Specs as a git revision or the working tree has them, without a checkout.

A revision's specs are written to a temporary folder, so that imports resolve inside the revision. Nothing is
fetched; a shallow clone needs no more than the two commits. Git filters and line ends don't matter: texts are
compared as the front end reads them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import normpath
from tempfile import TemporaryDirectory

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.driver.files import NOT_FOUND
from opspec.source import Source, Span

NO_REPOSITORY = register(
    Code(
        code="OP671",
        title="there is no git repository here",
        why="`opspec diff` compares two states of the specs that git holds.",
        example="opspec diff main            # outside any checkout",
        fix="Run it inside a work tree; `git init` and a first commit make one.",
    )
)
BAD_REVISION = register(
    Code(
        code="OP672",
        title="git knows no such revision",
        why="A revision names a commit: a branch, a tag, a hash, `HEAD~1`. In a shallow clone others are missing.",
        example="opspec diff mian",
        fix="Name a commit that `git rev-parse` finds; in a shallow clone fetch it: `git fetch --depth=1 origin REV`.",
    )
)
GIT_FAILED = register(
    Code(
        code="OP673",
        title="git can't read the repository",
        why="A command of git failed, so what the specs were is not known.",
        example="opspec diff main            # in a checkout whose objects are damaged",
        fix="See git's own message; `git fsck` finds a damaged repository.",
    )
)
_IMPORT = re.compile(r'(?:\bimport\s|~\s*|\bfrom\s)\s*"([^"\n]*)"')  # recorded traffic and results, too
_LINK = "120000"


@dataclass(frozen=True, slots=True)
class Tree:
    """One state of the specs. ``root`` holds them on disk; ``texts``: text by path from the top, normalised.

    ``links``: path → path for links inside of the tree. What one points to is looked at by its own name.
    """

    label: str
    root: Path
    texts: dict[str, str] = field(repr=False)
    links: dict[str, str] = field(default_factory=dict, repr=False)

    def closure(self, path: str) -> dict[str, str | None]:
        """The texts that a spec is made of: itself and its imports, None for one that is missing."""
        found: dict[str, str | None] = {}
        open_ = [path]
        while open_:
            name = open_.pop()
            if name not in found:
                name = self.links.get(name, name)
                found[name] = text = self.texts.get(name)
                folder = PurePosixPath(name).parent.as_posix()
                open_ += [normpath(f"{folder}/{i}") for i in _IMPORT.findall(text or "")]
        return found


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree; ``top`` is its root."""

    top: Path

    @classmethod
    def here(cls) -> Repository:
        """The repository of the working folder.

        Raises: Failure where there is none, or no git.
        """
        done = _git(Path.cwd(), "rev-parse", "--show-toplevel")
        if done.returncode:
            folder = Path.cwd().as_posix()
            raise Failure(_fault(NO_REPOSITORY, f"`{folder}` is in no git work tree", _said(done)))
        return cls(Path(os.fsdecode(done.stdout).rstrip("\n")))

    def commit(self, revision: str) -> str:
        """The full hash of a revision.

        Raises: Failure if git knows none of that name.
        """
        done = _git(
            self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
        found = done.stdout.decode("ascii", "replace").strip()
        if done.returncode or not found:
            span = Span(Source("<revision>", revision), 0, len(revision)) if revision else None
            message = f"git knows no revision `{revision}`"
            raise Failure(
                Diagnostic(code=BAD_REVISION, message=message, span=span, help=self._hint(revision))
            )
        return found

    def _hint(self, revision: str) -> str:
        if ".." in revision:
            return "give the two revisions as two words: `opspec diff BASE HEAD`"
        done = _git(self.top, "rev-parse", "--is-shallow-repository")
        if done.stdout.strip() == b"true" and re.search(r"[~^@]", revision):
            return "the clone is shallow: `git fetch --deepen=20` brings earlier commits"
        if done.stdout.strip() == b"true":
            return f"the clone is shallow: `git fetch --depth=1 origin {revision}` brings the commit"
        if Path(revision).exists():
            return f"it is a path, and `diff` compares revisions: `opspec diff HEAD -- {revision}`"
        return "name a branch, a tag or a hash; paths come after `--`"

    def relative(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Paths from the working folder as paths from the top.

        Raises: Failure for one outside of the work tree.
        """
        found: list[str] = []
        for text in paths:
            try:
                path = Path(os.path.abspath(text))  # noqa: PTH100 - the path may be gone, a link stays a link
                top = self.top.resolve()
                inside = next(p for p in (path, path.parent.resolve() / path.name) if p.is_relative_to(top))
            except (StopIteration, ValueError, OSError):
                raise Failure(
                    _fault(NOT_FOUND, f"`{text}` is not inside the work tree `{self.top}`")
                ) from None
            found.append(inside.relative_to(top).as_posix())
        return tuple(found)

    @contextmanager
    def tree(self, revision: str, also: Collection[str] = ()) -> Iterator[Tree]:
        """The specs of a revision and the files ``also``, on disk as long as the context is open."""
        commit = self.commit(revision)
        blobs = self._blobs(commit)
        with TemporaryDirectory(prefix="opspec-") as folder:
            root = Path(folder)
            texts: dict[str, str] = {}
            links: dict[str, str] = {}
            wanted = {p: b for p, b in blobs.items() if p.endswith(".op") or p in also}
            while wanted:
                for path, raw in self._contents(wanted):
                    if blobs[path][0] == _LINK:
                        links |= _lay_link(root, path, os.fsdecode(raw))
                    elif _lay_down(root, path, raw):
                        texts[path] = normalised(raw)
                imports = {n for p in wanted for n in _imports(p, texts.get(p, ""))}
                wanted = {n: blobs[n] for n in imports if n in blobs and n not in texts and n not in wanted}
            yield Tree(shortened(revision), root, texts, links)

    def working_tree(self, also: Collection[str] = ()) -> Tree:
        """The specs as they lie on disk: tracked ones and new ones that are not ignored; and the files ``also``."""
        done = self._run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.op")
        texts: dict[str, str] = {}
        links: dict[str, str] = {}
        open_ = sorted({*also, *(os.fsdecode(n) for n in done.split(b"\0") if n)})
        while open_:
            name = open_.pop()
            path = self.top / name
            if path.is_symlink():
                inside = _pointed(name, os.readlink(path))  # noqa: PTH115 - as written, not resolved
                links |= {name: inside} if inside else {}
                continue
            if not path.is_file():
                continue  # deleted
            texts[name] = normalised(path.read_bytes())
            open_ += [n for n in _imports(name, texts[name]) if n not in texts and not n.startswith("../")]
        return Tree("working tree", self.top, texts, links)

    def _blobs(self, commit: str) -> dict[str, tuple[str, str]]:
        """Path → (mode, object) of every file of a commit."""
        found: dict[str, tuple[str, str]] = {}
        for entry in self._run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            head, tab, name = entry.partition(b"\t")
            mode, kind, blob = head.decode("ascii").split() if tab else ("", "", "")
            if kind == "blob":
                found[os.fsdecode(name)] = (mode, blob)
        return found

    def _contents(self, wanted: dict[str, tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
        """The bytes of files, all in one call; of a link the path that it points to."""
        asked = "".join(f"{blob}\n" for _, blob in wanted.values()).encode("ascii")
        out = self._run("cat-file", "--batch", stdin=asked)
        at = 0
        for path in wanted:
            end = out.index(b"\n", at)
            header = out[at:end].split()
            size = int(header[2]) if len(header) == 3 else 0
            raw = out[end + 1 : end + 1 + size]
            at = end + 1 + (size + 1 if len(header) == 3 else 0)
            if len(header) == 3:
                yield path, raw

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = _git(self.top, *arguments, stdin=stdin)
        if done.returncode:
            raise Failure(_fault(GIT_FAILED, f"`git {arguments[0]}` failed", _said(done)))
        return done.stdout


def shortened(revision: str) -> str:
    """A revision as a reader wants it: a full hash by its first digits."""
    return revision[:12] if re.fullmatch(r"[0-9a-f]{40,64}", revision) else revision


def normalised(raw: bytes) -> str:
    """A text as the front end reads it; bytes that are no UTF-8 are kept apart from each other."""
    return Source.normalised("", raw.decode("utf-8", "surrogateescape")).text


def _imports(path: str, text: str) -> list[str]:
    folder = PurePosixPath(path).parent.as_posix()
    return [normpath(f"{folder}/{i}") for i in _IMPORT.findall(text)]


def _pointed(path: str, target: str) -> str:
    """Where a link leads inside of the tree; empty if it leads out of it."""
    inside = normpath(f"{PurePosixPath(path).parent.as_posix()}/{target}")
    return "" if target.startswith("/") or inside.startswith("..") else inside


def _lay_link(root: Path, path: str, target: str) -> dict[str, str]:
    """Lay down a link that stays inside of the tree; empty if it does not, and then there is no such file."""
    inside = _pointed(path, target)
    if inside and ".." not in PurePosixPath(path).parts:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
        return {path: inside}
    return {}


def _lay_down(root: Path, path: str, raw: bytes) -> bool:
    """Write one file of a revision below the folder; a path that would leave it is left out."""
    target = root / path
    if ".." in PurePosixPath(path).parts or not target.is_relative_to(root):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(raw)
    return True


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *arguments], cwd=folder, input=stdin, capture_output=True, env=environment, check=False
        )
    except FileNotFoundError:
        raise Failure(_fault(NO_REPOSITORY, "`git` is not installed")) from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"git says: {lines[0]}" if lines else ""


def _fault(code: Code, message: str, help: str = "") -> Diagnostic:
    return Diagnostic(code=code, message=message, span=None, help=help or code.fix)
