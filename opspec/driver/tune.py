"""``opspec tune``: measure the configurations that the model ranks first, and keep what is faster.

Right before fast: every configuration is checked against the reference before it is timed, and the winner
again after it. Configurations are timed interleaved, with a cold L2; tensors that an op changes in place are
put back outside of the timed span. What is not faster beyond the noise is not kept.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opspec.driver.files import write_atomically
from opspec.driver.subjects import Subject
from opspec.emit.kernel_launch import KernelLaunch, streamed_tensors
from opspec.emit.tuning import Candidate, candidates, variant_of
from opspec.ir.dtypes import DType, DTypeParam
from opspec.version import VERSION

if TYPE_CHECKING:
    from opspec.runtime.bench.inputs import InputSet
    from opspec.runtime.bench.measure import Bench
    from opspec.runtime.bench.model import Case, Driver

FINALISTS = 4


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One kernel block at one shape. Times in seconds; ``best`` is None where the untuned choice stays."""

    op: str
    kernel: str
    case: Case
    device: str
    bucket: str
    untuned: float = 0.0
    tuned: float = 0.0
    best: Candidate | None = None
    tried: int = 0
    refused: list[str] = field(default_factory=list)
    fault: str = ""

    @property
    def entry(self) -> dict[str, Any]:
        """The outcome as an entry of ``tuned.json``."""
        assert self.best is not None
        return {
            "op": self.op,
            "kernel": self.kernel,
            "device": self.device,
            "bucket": self.bucket,
            "variant": self.best.variant,
            "options": dict(self.best.changes),
            "shape": {**self.case.dims, **self.case.dtypes},
            "untuned_s": self.untuned,
            "tuned_s": self.tuned,
        }


def tune(
    subject: Subject,
    case: Case,
    bench: Bench,
    *,
    device: str,
    count: int,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Tune every kernel block of an op at one shape, one after the other; each with what was found before."""
    from opspec.runtime.bench.measure import make_sets
    from opspec.runtime.bench.references import reference_of

    sets = make_sets(bench, subject.driver, case)
    references: Any
    try:
        references = [reference_of(subject.driver, s) for s in (sets[0], sets[-1])]
    except NotImplementedError:
        references = [_untuned(subject, bench, s) for s in (sets[0], sets[-1])]
    found: dict[Any, Any] = {}
    outcomes = []
    for launch in subject.launches:
        bucket, choices = _choices(subject, sets[0], case, launch, device, count)
        block = launch.plan.block.name
        outcome = Outcome(op=subject.name, kernel=block, case=case, device=device, bucket=bucket)
        key = (subject.name, block, device, bucket)
        if not choices:
            outcomes.append(outcome)
            continue
        _race(subject, outcome, choices, key, found, bench, sets, references, progress)
        if outcome.best is not None:
            found[key] = {outcome.best.variant: outcome.best.changes}
        outcomes.append(outcome)
    return outcomes


def compile_ahead(subject: Subject, case: Case, *, device: str, count: int, place: str = "cuda") -> int:
    """Launch what `tune` tries at one shape once, unchecked, for the compiler's cache; how many were launched.

    What fails is left to `tune`, which says so. Choices of a later kernel block are those beside untuned earlier ones.
    """
    import torch

    from opspec.runtime.bench.inputs import make_set

    inputs = make_set(subject.driver, case, seed=0, device=place)
    launched = 0
    for launch in subject.launches:
        bucket, choices = _choices(subject, inputs, case, launch, device, count)
        key = (subject.name, launch.plan.block.name, device, bucket)
        for candidate in choices:
            with suppress(Exception):
                inputs.call(subject.function({key: {candidate.variant: candidate.changes}}))
                if place == "cuda":
                    torch.cuda.synchronize()
                launched += 1
    return launched


def _untuned(subject: Subject, bench: Bench, inputs: Any) -> tuple[Any, ...]:
    """Results of the untuned kernels, where plain torch has no line for the op."""
    from opspec.runtime.bench.check import as_tuple
    from opspec.runtime.bench.measure import changed

    outputs = inputs.call(subject.function({}))
    bench.synchronize()
    made = as_tuple(outputs) if subject.driver.outputs else ()
    results = (*made, *(t.clone() for t in changed(subject.driver, inputs)))
    inputs.restore()
    return results


def _choices(
    subject: Subject, inputs: InputSet, case: Case, launch: KernelLaunch, device: str, count: int
) -> tuple[str, list[Candidate]]:
    """The bucket of the call, and what to try for one kernel block; the untuned choice first."""
    dtypes = {
        p.name: next(c for c in p.choices if c.name == case.dtypes[p.name]) for p in subject.op.dtype_params
    }
    full = case.dims | {k: v.evaluate(case.dims) for k, v in subject.op.derived}
    extents = {a.name: a.extent.evaluate(full) for a in launch.plan.variants[0].program.axes}
    bits = max((_concrete(t.dtype, dtypes).bits for t in streamed_tensors(launch.plan)), default=32)
    block = launch.plan.block.name
    bucket, chosen, options = probe(subject, inputs, launch, {})
    if not chosen:
        return bucket, []  # no element, no launch
    several = [candidates(launch, chosen, options, extents, bits, subject.limits)]
    names = [t.name for t in launch.texts]
    place = names.index(chosen) + 1 if chosen in names else 0
    for text in launch.texts[place:]:
        forced: dict[Any, Any] = {(subject.name, block, device, bucket): {text.name: {}}}
        _, variant, options = probe(subject, inputs, launch, forced)
        if variant == text.name:
            several.append(candidates(launch, variant, options, extents, bits, subject.limits))
    mixed: list[Candidate] = []
    for k in range(max(len(s) for s in several)):
        mixed += [s[k] for s in several if k < len(s)]
    return bucket, mixed[: count + 1]


def _concrete(dtype: DType | DTypeParam, dtypes: Mapping[str, DType]) -> DType:
    return dtypes[dtype.name] if isinstance(dtype, DTypeParam) else dtype


def probe(
    subject: Subject, inputs: InputSet, kernel_launch: KernelLaunch, tunings: Mapping[Any, Any]
) -> tuple[str, str, dict[str, int]]:
    """The bucket of a call, and which variant of a kernel block it would launch with which options."""
    from opspec.runtime.calls import Call
    from opspec.runtime.tuned import bucket

    seen: list[tuple[str, dict[str, int]]] = []

    class Probe(Call):
        """Writes down what would be launched."""

        def start(
            self, kernel: Any, grid: Any, options: dict[str, Any], *args: Any, **constants: Any
        ) -> None:
            del args, constants
            if 0 in (grid if isinstance(grid, tuple) else (grid,)):
                return
            variant = variant_of(kernel_launch, kernel.fn.__name__)
            if variant is not None:  # and not what copies operands, or joins parts
                kept = {k: v for k, v in options.items() if isinstance(v, int) and not isinstance(v, bool)}
                seen.append((variant, kept))

    operator = subject.operator.trial({})
    shapes: list[str] = []

    def launch(call: Any, dims: Any, *rest: Any) -> None:
        shapes.append(bucket(dims))
        known = {k[1]: v for k, v in tunings.items()}
        subject.operator.launch(Probe(call.device, call.tensors, tunings=known), dims, *rest)

    operator.launch = launch
    names = {**subject.driver.function.__globals__, f"_{subject.name}__operator": operator}
    made = subject.driver.function
    function = types.FunctionType(made.__code__, names, made.__name__, made.__defaults__)
    function.__kwdefaults__ = made.__kwdefaults__
    inputs.call(function)
    variant, options = seen[0] if seen else ("", {})
    return shapes[0], variant, options


def _race(
    subject: Subject,
    outcome: Outcome,
    choices: Sequence[Candidate],
    key: Any,
    found: Mapping[Any, Any],
    bench: Bench,
    sets: Sequence[Any],
    references: Sequence[Any],
    progress: Callable[[str], None],
) -> None:
    """Check all, time all, time the best again beside the untuned, check the best again."""
    from opspec.runtime.bench.measure import check_function, our_candidate
    from opspec.runtime.bench.model import Tolerance
    from opspec.runtime.bench.sampling import Sampling, interleave
    from opspec.runtime.bench.statistics import Policy, compare, summarise

    driver = subject.driver
    tolerance = driver.tolerance(outcome.case.dims, outcome.case.dtypes) if driver.tolerance else Tolerance()
    runners: dict[str, Any] = {}
    named: dict[str, tuple[Candidate, Driver]] = {}
    for candidate in choices:
        label = f"{candidate.variant}: {candidate.words}"
        progress(f"checking {label}")
        function = subject.function({**found, key: {candidate.variant: candidate.changes}})
        own = replace(driver, function=function)
        outcome.tried += 1
        fault = _fault(partial(check_function, bench, own, sets[0], references[0], tolerance))
        if fault:
            outcome.refused.append(f"{label}: {fault}")
            sets[0].restore()
            if not runners:
                outcome.fault = fault
                return
            continue
        named[label] = (candidate, own)
        runners[label] = replace(our_candidate(own, sets), name=label, keep=False)
    untuned = next(iter(runners))
    warm = Policy(least=1, seconds=0.0, spread=float("inf"), budget=0.0)
    quick = Policy(least=7, seconds=0.0, spread=float("inf"), budget=10.0)
    first = Sampling()
    interleave(bench.device, list(runners.values()), warm, Sampling(), sets=len(sets))
    interleave(bench.device, list(runners.values()), quick, first, sets=len(sets))
    order = sorted(runners, key=lambda n: summarise(first.samples[n]).median)
    finalists = [untuned, *[n for n in order if n != untuned][:FINALISTS]]
    progress(f"timing the {len(finalists)} fastest")
    last = Sampling()
    interleave(bench.device, [runners[n] for n in finalists], bench.policy, last, sets=len(sets))
    times = {n: summarise(last.samples[n]) for n in finalists}
    outcome.untuned = outcome.tuned = times[untuned].median
    for name in sorted(finalists, key=lambda n: times[n].median):
        if name == untuned or compare(times[name], times[untuned])[0] != "FASTER":
            break
        candidate, own = named[name]
        sets[-1].restore()  # timing went through it again and again
        fault = _fault(partial(check_function, bench, own, sets[-1], references[1], tolerance))
        if not fault:
            outcome.best, outcome.tuned = candidate, times[name].median
            break
        outcome.refused.append(f"{name}: after timing: {fault}")
    for each in sets:
        each.restore()


def _fault(check: Callable[[], Any]) -> str:
    """What is wrong with a configuration; empty if nothing."""
    from opspec.runtime.bench.sampling import one_line

    try:
        checks = check()
    except Exception as error:  # noqa: BLE001 - whatever compiling or launching raises, it is not a choice
        return one_line(error)
    return "; ".join(f"{c.name}: {c.reason}" for c in checks if not c.passed)


def store(path: Path, kernel_text: str, spec: str, outcomes: Sequence[Outcome]) -> None:
    """Write what was found, whole or not at all, over what was known of the same calls; the rest of the file
    stays while it is for the same kernels."""
    import hashlib

    from opspec.runtime.tuned import SCHEMA, key_of

    digest = hashlib.sha256(kernel_text.encode()).hexdigest()
    known: dict[Any, Any] = {}
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
        if old["schema"] == SCHEMA and old["kernel"] == digest:
            known = {key_of(e): e for e in old["entries"]}
    except (OSError, ValueError, KeyError, TypeError):
        known = {}
    for o in outcomes:
        known.pop((o.op, o.kernel, o.device, o.bucket), None)
        if o.best is not None:
            known[o.op, o.kernel, o.device, o.bucket] = o.entry
    document = {
        "schema": SCHEMA,
        "spec": spec,
        "version": VERSION,
        "kernel": digest,
        "entries": [known[k] for k in sorted(known)],
    }
    write_atomically(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
