"""Compile what `opspec tune` tries before anything is timed, by several processes."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context

from opspec.driver.subjects import Subject, subjects_of
from opspec.schedule.resources import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The choices of an op at one workload: ``path`` of its spec, ``device`` by name, at most ``count`` a kernel."""

    path: str
    op: str
    workload: str
    device: str
    count: int
    own: Limits


def compile_all(tasks: Sequence[Task], jobs: int) -> tuple[int, float]:
    """Launch the choices of all tasks once, with so many processes: how many were launched, and seconds.

    A process that ends with its task takes the rest along; what isn't compiled then is when it is timed.
    """
    start, launched = time.monotonic(), 0
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_ending_quietly)
    try:
        waiting: list[Future[int]] = [pool.submit(compile_one, task) for task in tasks]
        for done in as_completed(waiting):
            with suppress(Exception):  # memory, a lost device: tuning comes to it again and says so
                launched += done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return launched, time.monotonic() - start


def compile_one(task: Task) -> int:
    """Launch the choices of a task; how many were."""
    import torch

    from opspec.driver.tune import compile_ahead

    subject = _subjects(task.path, task.own)[task.op]
    launched = 0
    for case in subject.cases([task.workload]):
        launched += compile_ahead(subject, case, device=task.device, count=task.count)
        torch.cuda.empty_cache()
    return launched


@cache
def _subjects(path: str, own: Limits) -> dict[str, Subject]:
    from pathlib import Path

    from opspec.frontend import load

    module = load(Path(path))
    _, found = subjects_of(module, module.ops, path, own)
    return {subject.op.name: subject for subject in found}


def _ending_quietly() -> None:
    """An interrupt is told by the process that waits."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
