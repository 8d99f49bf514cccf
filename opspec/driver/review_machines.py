"""The machines of a review: those that ship, files in either revision, and those that a spec states.

A file may differ between the revisions, and a spec's machine may, too; so each side has its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from opspec.analysis.codes import BAD_MACHINE
from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.revisions import Repository, Tree
from opspec.resources import machines

if TYPE_CHECKING:
    from opspec.analysis.machine import Machine
    from opspec.ir.program import Module

_STATED = re.compile(r"^[ \t]*machine[ \t]+([^\s{]+)[ \t]+like\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MachineName:
    """A machine that is asked for. ``file``: its path from the top, if the repository may hold it."""

    name: str
    file: str = ""


def shipped() -> tuple[str, ...]:
    """Names of the machines that ship."""
    return tuple(sorted(p.stem for p in machines().glob("*.toml")))


def name_machines(names: Sequence[str], repository: Repository) -> tuple[MachineName, ...]:
    """The machines that are asked for, each once; all that ship if none is."""
    known = shipped()
    found: list[MachineName] = []
    for name in dict.fromkeys(names or known):
        file = ""
        if name not in known and name.endswith(".toml"):
            try:
                (file,) = repository.relative([name])
            except Failure:
                file = ""  # a file elsewhere is the same for both sides
        found.append(MachineName(name, file))
    return tuple(found)


def check_names(wanted: Iterable[MachineName], trees: Sequence[Tree]) -> None:
    """Each name must be a machine that ships, a usable file, or one that a spec of a revision states.

    Raises: Failure for those that are none of these.
    """
    stated = sorted({n for t in trees for text in t.texts.values() for n in _STATED.findall(text)})
    faults: list[Diagnostic] = []
    for m in wanted:
        if m.name in stated or m.name in shipped():
            continue
        if m.file and any(m.file in t.texts for t in trees):
            for tree in trees:
                faults += _tried(tree.root / m.file) if m.file in tree.texts else []
        elif not m.file and Path(m.name).is_file():
            faults += _tried(Path(m.name))
        else:
            faults.append(_unknown(m.name, stated))
    if faults:
        raise Failure(*faults)


def _tried(path: Path) -> tuple[Diagnostic, ...]:
    try:
        _from_file(path)
    except Failure as failure:
        return failure.diagnostics
    return ()


def _unknown(name: str, stated: Sequence[str]) -> Diagnostic:
    near = get_close_matches(name[:60], [*stated, *shipped()], n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    own = f"; stated by specs: {', '.join(stated[:20])}" if stated else ""
    return Diagnostic(
        code=BAD_MACHINE,
        message=f"there is no machine `{name[:80]}`",
        span=None,
        help=f"{hint}machines that ship: {', '.join(shipped())}{own}; or give the path of a TOML file",
    )


def machines_for(
    wanted: Sequence[MachineName],
    sides: tuple[Module | None, Module | None],
    roots: tuple[Path | None, Path | None],
    *,
    stated: bool,
) -> tuple[tuple[Machine, ...], tuple[Machine, ...]]:
    """The machines of either side, in one order and under one name. Where one side has none, it has the other's.

    ``stated``: also those that the specs state themselves.
    """
    own = [b.name for m in sides if m is not None and stated for b in m.machines]
    pairs: list[tuple[Machine, Machine]] = []
    for name in {m.name: m for m in (*wanted, *map(MachineName, own))}.values():
        a, b = (_machine(name, module, root) for module, root in zip(sides, roots, strict=True))
        if a is not None or b is not None:
            before, after = (a or b, b or a)
            assert before is not None
            assert after is not None
            pairs.append((replace(before, name=after.name), after))
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def _machine(wanted: MachineName, module: Module | None, root: Path | None) -> Machine | None:
    from opspec.analysis.machine import machine_of

    if module is None:
        return None
    try:
        if wanted.file and root is not None and (root / wanted.file).is_file():
            return _from_file(root / wanted.file)
        return machine_of(module, wanted.name)
    except Failure:
        return None


def _from_file(path: Path) -> Machine:
    """Read anew each time: a work tree may have changed."""
    from opspec.analysis.machine import parse
    from opspec.source import Source

    return parse(Source.normalised(path.name, path.read_text(encoding="utf-8")))
