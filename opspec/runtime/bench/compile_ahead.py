"""Compile before anything is measured: kernels and compiled peers of a run, by several processes at once.

``python -m opspec.runtime.bench.compile_ahead PLAN.json`` is one of these processes; each takes the ops that no other has
taken. A kernel is compiled for the arguments it is called with, so each shape is called once, and what Triton made
lies in its cache on disk when the measuring process calls it. Of torch's compiler the same holds, but not of what it
measures to choose by: beside others at work that would be noise, so its choices are not kept. Nothing that fails here
matters, since the measurement comes to it again and says so.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opspec.runtime.bench.jobs import Job, plan_jobs
from opspec.runtime.bench.model import Case, Driver
from opspec.runtime.bench.sampling import one_line
from opspec.runtime.bench.session import INTERRUPTED, ending_as_interrupt

DONE = "compiled.jsonl"  # what became of each shape, in the plan's scratch folder


def main(argv: Sequence[str] | None = None) -> int:
    """Compile the ops of a plan that nobody else has taken: 0, or 130 if interrupted."""
    (path,) = sys.argv[1:] if argv is None else argv
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        with ending_as_interrupt():
            compile_some(plan)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def compile_some(plan: Mapping[str, Any], *, place: str = "cuda") -> None:
    """Call each shape of each op that is free once, on the device ``place``."""
    import torch

    if place == "cuda" and not torch.cuda.is_available():
        return
    options = argparse.Namespace(**plan["options"])
    scratch = Path(plan["scratch"])
    choose_nothing()
    for number, job in enumerate(plan_jobs(plan["packages"], options, Path(plan["results"]))):
        if job.driver is None or not take(scratch / f"taken-{number}"):
            continue
        for case in job.cases:
            fault = compile_shape(job.driver, case, place, modes=plan["compiled_modes"])
            note(scratch / DONE, job, case, fault)
            gc.collect()
            if place == "cuda":
                torch.cuda.empty_cache()


def choose_nothing() -> None:
    """Let torch's compiler keep none of the choices that it measures in this process."""
    import torch._inductor.config as inductor

    if hasattr(inductor, "autotune_local_cache"):
        inductor.autotune_local_cache = False


def modes(peers: str) -> list[str | None]:
    """How the formula is compiled where ``peers`` is none, usual or max. The graphs of ``max-autotune`` hold the
    kernels that it makes without them."""
    return {"none": [], "max": [None, "max-autotune-no-cudagraphs"]}.get(peers, [None])


def compile_shape(driver: Driver, case: Case, place: str, *, modes: Sequence[str | None]) -> str:
    """Call the op and its compiled formula once, in each mode of torch.compile; what failed, or nothing."""
    import torch

    from opspec.runtime.bench.inputs import make_set

    try:
        inputs = make_set(driver, case, seed=0, device=place)
        inputs.call(driver.function)
        if place == "cuda":
            torch.cuda.synchronize()
        inputs.restore()
        for mode in modes:
            torch.compiler.reset()  # as the measurement does, once per shape
            inputs.call(torch.compile(driver.reference, dynamic=False, mode=mode))
    except Exception as error:  # noqa: BLE001  # memory, compiling: the measurement says it again
        return one_line(error)
    return ""


def take(path: Path) -> bool:
    """Whether this process is the first to take something."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def note(path: Path, job: Job, case: Case, fault: str) -> None:
    """Say that a shape is done."""
    line = json.dumps({"op": job.op, "workload": case.workload, "fault": fault})
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def compile_all(plan: Path, count: int, env: Mapping[str, str]) -> int:
    """Run so many processes on a plan until all is compiled, and say what came of it: 0, or 130 if interrupted."""
    start = time.monotonic()
    print(f"compiling with {count} process{'es' if count > 1 else ''}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "opspec.runtime.bench.compile_ahead", str(plan)]
    own = {**env, "TORCHINDUCTOR_COMPILE_THREADS": "1"}  # these processes are the threads
    children = [subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL) for _ in range(count)]

    def end(*_: object) -> None:
        for child in children:
            child.terminate()

    before = signal.signal(signal.SIGTERM, end)
    ended: list[int] = []
    try:
        while len(ended) < count:
            try:
                ended.append(children[len(ended)].wait())
            except KeyboardInterrupt:  # the terminal has told the children, too
                continue
    finally:
        signal.signal(signal.SIGTERM, before)
    print(summary(plan.parent / DONE, time.monotonic() - start), file=sys.stderr, flush=True)
    return INTERRUPTED if INTERRUPTED in ended else 0


def summary(path: Path, seconds: float) -> str:
    """What was compiled, and what wasn't."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    entries = [json.loads(line) for line in lines]
    faults = [f"  {e['op']} {e['workload']}: {e['fault']}" for e in entries if e["fault"]]
    counted = f"{len(entries) - len(faults)} shape{'' if len(entries) - len(faults) == 1 else 's'}"
    return "\n".join([f"compiled {counted} in {seconds:.1f} s", *faults])


if __name__ == "__main__":
    raise SystemExit(main())
