"""``opspec diff``: two states of the specs → a review. Specs whose texts are equal are never read."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.files import NOT_FOUND
from opspec.driver.review_machines import MachineName, check_names, machines_for, name_machines
from opspec.driver.revisions import Repository, Tree

if TYPE_CHECKING:
    from concurrent.futures import Future

    from opspec.analysis.review.model import OpReview, Review, SpecReview
    from opspec.ir.program import Module

    Side = tuple[Module | None, tuple[Diagnostic, ...]]
    Sides = tuple[Side, Side]

_OP = re.compile(r"^[ \t]*op[ \t]+([^\s\[(]+)", re.MULTILINE)
_WORTH_PROCESSES = 12


@dataclass(frozen=True, slots=True)
class Task:
    """One spec to review. ``before``, ``after``: the root of a state and the path from there; None if it is not there.

    ``stated``: its own machines are looked at, too.
    """

    path: str
    before: tuple[Path, str] | None
    after: tuple[Path, str] | None
    machines: tuple[MachineName, ...]
    stated: bool


def review(
    base: str, head: str | None, paths: Sequence[str], machines: Sequence[str], *, jobs: int | None = None
) -> Review:
    """The review of ``base`` against ``head`` (None: the working tree), of the specs that ``paths`` name.

    ``machines``: names, also of those that specs state, or files; all that ship and all stated ones if empty.
    Raises: Failure without a repository, for a revision, path or machine that is not there.
    """
    from opspec.analysis.review.model import Review

    repository = Repository.here()
    wanted = repository.relative(paths)
    named = name_machines(machines, repository)
    files = [m.file for m in named if m.file]
    with ExitStack() as stack:
        before = stack.enter_context(repository.tree(base, files))
        after = (
            repository.working_tree(files)
            if head is None
            else stack.enter_context(repository.tree(head, files))
        )
        check_names(named, (before, after))
        specs = _choose(sorted({*before.texts, *after.texts}), wanted, paths)
        other = any(before.texts.get(f) != after.texts.get(f) for f in files)
        changed = [p for p in specs if other or before.closure(p) != after.closure(p)]
        tasks = _tasks(changed, before, after, named, stated=not machines)
        reviews = _run(tasks, jobs)
    return Review(
        base=before.label,
        head=after.label,
        looked_at=len(specs),
        machines=tuple(m.name for m in named),
        specs=tuple(reviews),
    )


def _choose(names: Iterable[str], wanted: Sequence[str], given: Sequence[str]) -> list[str]:
    """The specs that the paths name, all without a path; a path that names none is a fault."""
    specs = [n for n in names if n.endswith(".op")]
    if not wanted:
        return specs
    found: dict[str, None] = {}
    faults = []
    for path, text in zip(wanted, given, strict=True):
        mine = [n for n in specs if path in (n, ".") or n.startswith(f"{path}/")]
        found |= dict.fromkeys(mine)
        if not mine:
            message = f"`{text}` names no spec in either revision"
            faults.append(Diagnostic(code=NOT_FOUND, message=message, span=None, help=NOT_FOUND.fix))
    if faults:
        raise Failure(*faults)
    return sorted(found)


def _tasks(
    changed: Sequence[str], before: Tree, after: Tree, machines: tuple[MachineName, ...], *, stated: bool
) -> list[Task]:
    moved = _moves(changed, before.texts, after.texts)
    gone = set(moved.values())
    return [
        Task(
            path=path,
            before=_place(before, moved.get(path, path)),
            after=_place(after, path),
            machines=machines,
            stated=stated,
        )
        for path in changed
        if path not in gone
    ]


def _place(tree: Tree, path: str) -> tuple[Path, str] | None:
    return (tree.root, path) if path in tree.texts else None


def _moves(changed: Sequence[str], before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """New path → old path of specs that were moved: the same text, or else the same ops by name."""
    gone = [p for p in changed if p not in after]
    new = [p for p in changed if p not in before]
    moved: dict[str, str] = {}
    for alike in (lambda text: text, lambda text: frozenset(_OP.findall(text))):
        left = {alike(before[p]): p for p in gone if p not in moved.values()}
        for path in new:
            key = alike(after[path])
            if path not in moved and key and key in left:
                moved[path] = left.pop(key)
    return moved


def _run(tasks: Sequence[Task], jobs: int | None) -> list[SpecReview]:
    if not tasks:
        return []
    import multiprocessing

    count = jobs or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else [0])
    if count < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [review_spec(t) for t in tasks]
    from concurrent.futures import ProcessPoolExecutor

    sys.stdout.flush()
    context = multiprocessing.get_context("fork")
    if len(tasks) < _WORTH_PROCESSES:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            reading = [pool.submit(_sides, t) for t in tasks]
            import opspec.analysis.review.compare  # SymPy is loaded while the other process reads

            return [review_spec(t, _read(r, t)) for r, t in zip(reading, tasks, strict=True)]
    import opspec.analysis.review.compare
    import opspec.frontend.loading  # noqa: F401

    with ProcessPoolExecutor(min(count, 16), mp_context=context) as pool:
        return list(pool.map(review_spec, tasks, chunksize=4))


def _read(reading: Future[Sides], task: Task) -> Sides:
    """What the other process read; read here where it ended, or could not hand over something so deep."""
    try:
        return reading.result()
    except (RuntimeError, PicklingError):
        return _sides(task)


def _sides(task: Task) -> Sides:
    return _load(task.before), _load(task.after)


def review_spec(task: Task, sides: Sides | None = None) -> SpecReview:
    """One spec, both sides. A side that the front end refuses is reported, never raised."""
    from opspec.analysis.review.compare import compare_modules
    from opspec.analysis.review.model import SpecReview
    from opspec.analysis.review.pipelines import compare_pipelines

    (base, faults_before), (head, faults_after) = sides or _sides(task)
    moved = task.before[1] if task.before and task.after and task.before[1] != task.path else ""
    if faults_after or (faults_before and head is None):
        return SpecReview(
            path=task.path, moved_from=moved, faults_before=faults_before, faults_after=faults_after
        )
    roots = (task.before and task.before[0], task.after and task.after[0])
    machines = machines_for(task.machines, (base, head), roots, stated=task.stated)
    found = compare_modules(base, head, path=task.path, machines=machines)
    ops = found.ops
    if base is not None and head is not None:
        ops = tuple(_with_code(o, base, head, task.path) for o in ops)
    folders = [Path(*side).parent if side else Path() for side in (task.before, task.after)]
    pipelines = compare_pipelines(base, head, (folders[0], folders[1]))
    return replace(found, ops=ops, pipelines=pipelines, moved_from=moved, faults_before=faults_before)


def _load(place: tuple[Path, str] | None) -> Side:
    from opspec.frontend import load_with_warnings

    if place is None:
        return None, ()
    try:
        return load_with_warnings(Path(*place), place[1])[0], ()
    except Failure as failure:
        return None, failure.diagnostics


def _with_code(op: OpReview, base: Module, head: Module, spec: str) -> OpReview:
    """The review of an edited op of equal cost, with word of whether its kernels would differ."""
    if op.kind != "same" or not op.edited:
        return op
    before, after = kernel_digest(base, op.op, spec), kernel_digest(head, op.op, spec)
    if isinstance(after, Diagnostic):
        notes = (
            () if isinstance(before, Diagnostic) else (f"no kernel can be made any more: {after.message}",)
        )
        return replace(op, notes=(*op.notes, *notes))
    return replace(op, recoded=before != after)


def kernel_digest(module: Module, name: str, spec: str) -> str | Diagnostic:
    """A digest of the code that is generated for one op, whatever its comments and docstrings say; or why not."""
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package

    mine = tuple(o for o in module.ops if o.name == name)
    alone = replace(module, ops=mine, workloads=module.workloads_of(name), expectations=())
    try:
        text = build_package(alone, spec, limits()).files["kernel.py"]
    except Failure as failure:
        return failure.diagnostics[0]
    return hashlib.sha256(ast.dump(_bare(ast.parse(text))).encode()).hexdigest()


def _bare(tree: ast.Module) -> ast.Module:
    """The tree without docstrings."""
    for node in ast.walk(tree):
        match node:
            case ast.Module() | ast.FunctionDef() | ast.ClassDef():
                if ast.get_docstring(node, clean=False) is not None:
                    del node.body[0]
            case _:
                pass
    return tree
