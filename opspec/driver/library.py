"""Other specs with the same pattern: every kernel of a folder of specs, scheduled and compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opspec.diagnostics import Failure
from opspec.driver.files import Spec, find_specs
from opspec.driver.pattern import Pattern, pattern_of

_WORTH_PROCESSES = 12
_MOST = 200
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Relative:
    """One kernel of a library: where it is, and its pattern. ``kernel`` is empty where the op has only one."""

    spec: str
    op: str
    kernel: str
    pattern: Pattern

    @property
    def name(self) -> str:
        """``softmax (specs/reduce/softmax.op)``."""
        return f"{self.op}{f'.{self.kernel}' if self.kernel else ''} ({self.spec})"


def library_of(spec: Spec) -> list[Spec]:
    """The specs to look among: the folder `specs` around the spec or in the working folder, else its own folder."""
    path = spec.path.resolve()
    around = next((p for p in path.parents if p.name == "specs"), None)
    here = Path("specs")
    folder = around or (here if here.is_dir() else path.parent)
    if folder.is_relative_to(Path.cwd()):
        folder = folder.relative_to(Path.cwd())
    try:
        return find_specs([str(folder)])[:_MOST]
    except Failure:
        return []


def relatives_in(specs: Sequence[Spec]) -> list[Relative]:
    """The kernels of all specs; what can't be loaded or scheduled is left out."""
    import multiprocessing

    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if count < 2 or len(specs) < _WORTH_PROCESSES or "fork" not in multiprocessing.get_all_start_methods():
        return [r for s in specs for r in _kernels(s)]
    from concurrent.futures import ProcessPoolExecutor

    sys.stdout.flush()
    with ProcessPoolExecutor(min(count, 8), mp_context=multiprocessing.get_context("fork")) as pool:
        return [r for found in pool.map(_kernels, specs, chunksize=4) for r in found]


def _kernels(spec: Spec) -> list[Relative]:
    from opspec.frontend import load
    from opspec.schedule.plan import schedule_kernel

    try:
        module = load(spec.path)
    except Failure:
        return []
    found: list[Relative] = []
    for op in module.ops:
        boundary = op.boundaries[0]
        for kernel in boundary.kernels:
            try:
                pattern = pattern_of(schedule_kernel(op, boundary, kernel))
            except Failure:
                continue
            found.append(
                Relative(spec.shown, op.name, kernel.name if len(boundary.kernels) > 1 else "", pattern)
            )
    return found


def others(mine: Pattern, own: tuple[str, str], library: Sequence[Relative]) -> list[str]:
    """Lines that name the relatives of a kernel, those with equal traits first. ``own``: spec and op, left out."""
    alike = [r for r in library if r.pattern.steps == mine.steps and (r.spec, r.op) != own]
    same = [r.name for r in alike if r.pattern.traits == mine.traits]
    lines = []
    if same:
        more = f" and {len(same) - _LISTED} more" if len(same) > _LISTED else ""
        lines.append(f"just like it: {', '.join(same[:_LISTED])}{more}")
    for r in [r for r in alike if r.pattern.traits != mine.traits][:_LISTED]:
        gained = [t for t in r.pattern.traits if t not in mine.traits]
        lost = [t for t in mine.traits if t not in r.pattern.traits]
        how = [*(f"with {t}" for t in gained), *(f"without {t}" for t in lost)]
        lines.append(f"{r.name}: {', '.join(how)}")
    return lines or ["none among the specs here"]
