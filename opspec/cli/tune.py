"""``opspec tune``: find faster launch options on the GPU that is there."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opspec.cli.bench import check_names
from opspec.cli.chosen import Chosen, load_chosen, refuse, targets_of
from opspec.diagnostics import Failure
from opspec.driver.files import Spec

if TYPE_CHECKING:
    from opspec.driver.subjects import Subject
    from opspec.driver.tune import Outcome
    from opspec.runtime.bench.measure import Bench
    from opspec.schedule.resources import Limits


def run(options: argparse.Namespace) -> int:
    """0 tuned (or nothing is faster), 1 if an untuned kernel is wrong, 2 without a GPU or for bad input."""
    from opspec.driver.subjects import subjects_of
    from opspec.driver.verify import prepare

    chosen, refused = load_chosen(targets_of(options.targets), [])
    check_names([w.name for c in chosen for op in c.ops for w in c.module.workloads_of(op.name)], options.at)
    prepare("cuda")
    bench, device, own = _open(options.budget)
    if options.jobs is not None:
        _compile(chosen, options, device, own)
    found: list[Outcome] = []
    for c in chosen:
        try:
            package, subjects = subjects_of(c.module, c.ops, c.spec.shown, own)
        except Failure as failure:
            refused = refuse(failure)
            continue
        outcomes = [o for subject in subjects for o in _tune(subject, options, bench, device)]
        if outcomes:
            _keep(c.spec, options.out, package.files["kernel.py"], outcomes)
        found += outcomes
    for text in summary(found):
        print(text)
    return max(refused, int(any(o.fault for o in found)))


def _tune(subject: Subject, options: argparse.Namespace, bench: Bench, device: str) -> list[Outcome]:
    """Each kernel of an op at each shape that is asked for, with a line for each."""
    from opspec.driver.tune import tune

    outcomes: list[Outcome] = []
    for case in subject.cases(options.at):
        print(f"{subject.op.name} {case.workload}  {_shape(case)}", flush=True)
        for outcome in tune(
            subject, case, bench, device=device, count=options.candidates, progress=_progress
        ):
            _progress("")
            print(line(outcome), flush=True)
            outcomes.append(outcome)
    return outcomes


def _keep(spec: Spec, out: str, text: str, outcomes: Sequence[Outcome]) -> None:
    """Write the file of a package, and say so if its kernels are others than those tuned."""
    from opspec.driver.tune import store

    path = Path(out) / spec.package / "tuned.json"
    store(path, text, spec.shown, outcomes)
    kernel = path.with_name("kernel.py")
    if not kernel.is_file() or kernel.read_text(encoding="utf-8") != text:
        print(f"{kernel} is not what was tuned; `opspec build {spec.shown}` makes it so", file=sys.stderr)
    print(f"wrote {path}")


def _compile(chosen: Sequence[Chosen], options: argparse.Namespace, device: str, own: Limits) -> None:
    """Compile what will be tried, by several processes, before anything is timed."""
    from opspec.driver.tune_ahead import Task, compile_all

    tasks = [
        Task(
            path=str(c.spec.path),
            op=op.name,
            workload=w.name,
            device=device,
            count=options.candidates,
            own=own,
        )
        for c in chosen
        for op in c.ops
        for w in c.module.workloads_of(op.name)
        if not options.at or w.name in options.at
    ]
    launched, seconds = compile_all(tasks, options.jobs)
    print(
        f"compiled {launched} choices of {len(tasks)} workloads in {seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """How far the untuned choices are behind the tuned ones, of several kernels: mean and worst."""
    known = [o for o in outcomes if o.tuned > 0.0]
    if len(known) < 2:
        return
    ratios = [o.untuned / o.tuned for o in known]
    worst = known[max(range(len(known)), key=ratios.__getitem__)]
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    yield (
        f"untuned against tuned, {len(known)} kernels: {mean - 1:+.1%} (geometric mean), "
        f"at most {max(ratios) - 1:+.1%} ({worst.kernel}, {worst.case.workload})"
    )


def line(outcome: Outcome) -> str:
    """One kernel block's outcome as a person reads it."""
    refused = f", {len(outcome.refused)} refused" if outcome.refused else ""
    counts = f"{outcome.tried} tried{refused}"
    if outcome.fault:
        return f"  {outcome.kernel:24} WRONG untuned: {outcome.fault}"
    if outcome.best is None:
        return f"  {outcome.kernel:24} {outcome.untuned * 1e6:9.1f} µs, nothing is faster   {counts}"
    gain = outcome.tuned / outcome.untuned - 1
    return (
        f"  {outcome.kernel:24} {outcome.untuned * 1e6:9.1f} µs → {outcome.tuned * 1e6:.1f} µs ({gain:+.1%})"
        f"   {outcome.best.variant}: {outcome.best.words}   {counts}"
    )


def _open(budget: float) -> tuple[Bench, str, Limits]:
    """The device with what measuring needs, its name, and the limits of its multiprocessors."""
    import torch

    from opspec.runtime.bench.gpu import open_device
    from opspec.runtime.bench.measure import Bench
    from opspec.runtime.bench.statistics import Policy
    from opspec.schedule.resources import Limits

    device = open_device()
    assert device is not None
    properties = device.properties
    bench = Bench(
        device=device,
        place="cuda",
        free_bytes=lambda: int(torch.cuda.mem_get_info()[0]),
        synchronize=device.synchronize,
        stream=None,
        roofs=None,
        policy=Policy(least=20, seconds=0.3, spread=0.005, budget=budget),
    )
    shared = int(getattr(properties, "shared_memory_per_block_optin", 232448))
    own = Limits(shared_memory=shared, multiprocessors=int(properties.multi_processor_count))
    return bench, str(properties.name), own


def _shape(case: Any) -> str:
    return ", ".join(f"{k} = {v}" for k, v in {**case.dims, **case.dtypes}.items())


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[2K  {text[:100]}", end="", file=sys.stderr, flush=True)
