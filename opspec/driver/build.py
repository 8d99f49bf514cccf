"""``opspec build``: specs to generated packages.

Every spec is loaded and scheduled before anything is written, so that a spec that fails leaves
the previous output of all of them untouched.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.files import Spec, find_specs, read_text, write_atomically
from opspec.version import VERSION

FILES = ("kernel.py", "bench.py", "cost.json")


@dataclass(frozen=True, slots=True)
class Built:
    """One spec's outcome. ``changed``: files that differ from what is on disk."""

    spec: Spec
    files: dict[str, str]
    changed: tuple[str, ...]
    skipped: tuple[tuple[str, str, str], ...] = ()
    cached: bool = False


@dataclass(slots=True)
class Report:
    """Everything that a build has to say."""

    built: list[Built] = field(default_factory=list)
    stale: list[Path] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)


def build(
    paths: Iterable[str],
    out: Path,
    *,
    check: bool = False,
    debug: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Build the packages of all specs below ``paths`` into ``out``; with ``check`` write nothing.

    ``debug``: packages that check, before each call, what data says of places to read and write.

    Raises ``Failure`` with the diagnostics of every spec that can't be built.
    """
    specs = find_specs(paths)
    report = Report()
    cache = _Cache(out)
    faults: list[Diagnostic] = []
    for spec in specs:
        progress(spec.shown)
        try:
            report.built.append(
                _build_one(spec, out, report, None, debug=True)
                if debug
                else cache.get(spec, out) or _build_one(spec, out, report, cache)
            )
        except Failure as failure:
            faults += failure.diagnostics
    if faults:
        raise Failure(*faults)
    if not check:
        for built in report.built:
            for name in built.changed:
                write_atomically(out / built.spec.package / name, built.files[name])
        cache.save()
    return report


def _build_one(spec: Spec, out: Path, report: Report, cache: _Cache | None, *, debug: bool = False) -> Built:
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package
    from opspec.frontend import load_with_warnings

    module, warnings = load_with_warnings(spec.path)
    package = build_package(module, spec.shown, limits(), debug=debug)
    warnings = (*warnings, *package.warnings)
    report.warnings += warnings
    changed = tuple(n for n in FILES if read_text(out / spec.package / n) != package.files[n])
    built = Built(spec=spec, files=package.files, changed=changed, skipped=package.skipped)
    if cache is not None:
        cache.put(built, [Path(s.name) for s in module.files], clean=not warnings)
    return built


class _Cache:
    """Remembers which inputs gave which outputs, so that an unchanged spec is not built again.

    The key covers the texts of all sources, every file of the compiler, grammar, templates and
    machines, and the version; the entry holds the outputs' digests. It lies in ``.cache`` beside the output folder and may be
    deleted at any time.
    """

    def __init__(self, out: Path) -> None:
        self.path = out.parent / ".cache" / "opspec-build.json"
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        self.entries: dict[str, Any] = found if isinstance(found, dict) else {}
        self.compiler = compiler_digest()
        self.dirty = False

    def get(self, spec: Spec, out: Path) -> Built | None:
        """The outcome if neither inputs nor outputs have changed since."""
        entry = self.entries.get(_key(spec, out))
        if not isinstance(entry, dict) or entry.get("compiler") != self.compiler:
            return None
        sources, outputs = entry.get("sources"), entry.get("outputs")
        if not isinstance(sources, dict) or not isinstance(outputs, dict):
            return None
        if any(_digest(Path(name)) != digest for name, digest in sources.items()):
            return None
        files = {n: read_text(out / spec.package / n) for n in FILES}
        if any(text is None or _of(text) != outputs.get(n) for n, text in files.items()):
            return None
        skipped = tuple(tuple(s) for s in entry.get("skipped", ()))
        return Built(
            spec=spec, files={k: v or "" for k, v in files.items()}, changed=(), skipped=skipped, cached=True
        )

    def put(self, built: Built, sources: list[Path], *, clean: bool) -> None:
        """Remember an outcome; one with warnings is built again, so that they are shown again."""
        files = {str(p.resolve()): _digest(p) for p in sources if p.is_file()}
        if not clean or len(files) < 1:
            return
        self.entries[_key(built.spec, self.path.parent.parent)] = {
            "compiler": self.compiler,
            "sources": files,
            "outputs": {n: _of(t) for n, t in built.files.items()},
            "skipped": list(built.skipped),
        }
        self.dirty = True

    def save(self) -> None:
        """Write the cache; a folder that can't be written just means no cache."""
        if not self.dirty:
            return
        try:
            write_atomically(self.path, json.dumps(self.entries, indent=1, sort_keys=True))
        except Failure:
            return


def _key(spec: Spec, out: Path) -> str:
    del out
    return f"{spec.path.resolve()}:{spec.shown}"


def _of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def compiler_digest() -> str:
    """A digest of everything besides specs that outputs depend on."""
    from opspec.resources import PACKAGE, folder

    digest = hashlib.sha256(VERSION.encode())
    roots = [
        PACKAGE / p
        for p in (
            "analysis",
            "diagnostics",
            "driver",
            "emit",
            "frontend",
            "ir",
            "schedule",
            "machines",
            "prelude",
        )
    ]
    for root in (*roots, folder("grammar"), folder("templates")):
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".op", ".lark", ".j2", ".toml"):
                stat = path.stat()
                digest.update(f"{path}:{stat.st_size}:{stat.st_mtime_ns}".encode())
    return digest.hexdigest()
