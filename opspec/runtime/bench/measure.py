"""One shape, measured: check, prepare peers, sample interleaved, check again, and say what was found.

The record of a shape is a JSON object that fills as the run goes; ``keep`` is called after each part, so that
whatever ends the run leaves what was measured until then.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opspec.runtime.bench.check import OutputCheck, as_tuple, check_outputs, poisoned
from opspec.runtime.bench.findings import conclude, timing
from opspec.runtime.bench.inputs import InputSet, count_sets, describe, make_set, total_bytes
from opspec.runtime.bench.launches import all_of, record
from opspec.runtime.bench.model import Case, Driver, Peer, TensorInput, Tolerance
from opspec.runtime.bench.peers import PeerRow, prepare_peers
from opspec.runtime.bench.references import reference_of
from opspec.runtime.bench.roofline import moved, stream_kind
from opspec.runtime.bench.sampling import (
    Candidate,
    Device,
    Sampling,
    Walls,
    graphs,
    hosts,
    interleave,
    one_line,
    walls,
)
from opspec.runtime.bench.seconds import Seconds
from opspec.runtime.bench.statistics import Policy, quantile
from opspec.runtime.bench.waves import describe_launches

SUSTAINED = Policy(least=20, seconds=1.0, spread=float("inf"), budget=3.0)
LONG = 0.1  # seconds of a run that needs no second one to be warm
CALLS = 20  # of each candidate, timed as a user sees them
REPLAYS = 25  # of each graph
SHARE = 0.05  # of the budget, that calls or replays of one candidate may take
LASTING = 5e-3  # seconds of work in a graph, about
SHORT = 20e-6  # under this, event windows read too long and a graph is timed as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The surroundings of a measurement. ``stream`` makes a plain stream to sample beside the operator; ``graph``
    asks for CUDA graphs beside events also where the operator is not short; ``properties`` are the card's."""

    device: Device
    place: str
    free_bytes: Callable[[], int]
    synchronize: Callable[[], None]
    stream: Callable[[str, int], tuple[Candidate, int]] | None
    roofs: Mapping[str, Any] | None
    policy: Policy
    peers: Sequence[Peer] = ()
    warm: bool = False
    graph: bool = False
    properties: Any = None
    seed: int = 0
    progress: Callable[[str], None] = lambda _: None


@dataclass(slots=True, kw_only=True)
class Run:
    """What one shape's measurement has gathered so far; ``findings.conclude`` turns it into the record."""

    cost: Mapping[str, float]
    ours: Candidate
    stream: Candidate | None = None
    stream_bytes: int = 0
    peers: list[PeerRow] = field(default_factory=list)
    cold: Sampling = field(default_factory=Sampling)
    warm: Sampling | None = None
    sustained: Sampling | None = None
    short: bool = False
    launches: list[dict[str, Any]] = field(default_factory=list)
    host: dict[str, float] = field(default_factory=dict)
    graph: dict[str, list[float]] = field(default_factory=dict)
    graph_refused: dict[str, str] = field(default_factory=dict)
    walls: dict[str, Walls] = field(default_factory=dict)

    @property
    def candidates(self) -> list[Candidate]:
        """All that is timed: ours, the plain stream, the peers that are right."""
        ready = [row.candidate for row in self.peers if row.candidate is not None]
        return [self.ours, *([self.stream] if self.stream is not None else []), *ready]


def measure_case(
    bench: Bench, driver: Driver, case: Case, record: dict[str, Any], keep: Callable[[], None]
) -> None:
    """Fill ``record["measured"]``. A failure of the operator is its status; only an interrupt gets out."""
    measured: dict[str, Any] = {
        "status": "running",
        "reason": "",
        "cache": "cold",
        "fallback": driver.fallback,
    }
    record["measured"] = measured
    run: Run | None = None
    spent = Seconds()
    try:
        tolerance = driver.tolerance(case.dims, case.dtypes) if driver.tolerance is not None else Tolerance()
        bench.progress("inputs")
        with spent.of("inputs"):
            sets = make_sets(bench, driver, case)
            bench.synchronize()
        record["tensors"] = describe(driver, case, sets[0].arguments)
        measured["sets"] = len(sets)
        bench.progress("checking")
        with spent.of("check"):
            references = reference_of(driver, sets[0])
            before = check_function(bench, driver, sets[0], references, tolerance)
        measured["checks"] = {"before": before, "after": None}
        keep()
        if not all(item.passed for item in before):
            measured["status"] = "incorrect"
            measured["reason"] = "; ".join(f"{item.name}: {item.reason}" for item in before if item.reason)
            return
        run = Run(cost=record["cost"], ours=our_candidate(driver, sets))
        with spent.of("peers"):
            run.peers = prepare_peers(
                driver,
                case,
                sets,
                references,
                tolerance,
                peers=bench.peers,
                synchronize=bench.synchronize,
                progress=bench.progress,
            )
        del references
        with spent.of("stream"):
            if bench.stream is not None and moved(run.cost) > 0:
                run.stream, run.stream_bytes = bench.stream(stream_kind(run.cost), round(moved(run.cost)))
        with spent.of("sampling"):
            sample_cold(bench, run, len(sets), lambda: save_samples(measured, run, keep))
        with spent.of("recheck"):
            after = recheck(bench, driver, sets, run, tolerance)
        measured["checks"]["after"] = after
        if not all(item.passed for item in after):
            measured["status"] = "incorrect"
            measured["reason"] = "after timing: " + "; ".join(
                f"{i.name}: {i.reason}" for i in after if i.reason
            )
            return
        try:
            sample_more(bench, run, len(sets), spent)
            with spent.of("host"):
                sample_launches(bench, driver, run, sets[0])
        except Exception as error:  # noqa: BLE001  # the cold samples stand without the rest
            measured["incomplete"] = one_line(error)
        conclude(bench, driver, run, record, case)
    except KeyboardInterrupt:
        if run is not None and run.cold.samples.get("ours"):
            conclude(bench, driver, run, record, case)
        measured["status"] = "interrupted"
        measured["reason"] = "interrupted; what was measured until then is kept"
        raise
    except Exception as error:  # noqa: BLE001  # compiling, launching, memory: the record says what
        measured["status"] = "error"
        measured["reason"] = one_line(error)
        measured["traceback"] = traceback.format_exception(error)
    finally:
        measured["seconds"] = spent.record()
        keep()


def make_sets(bench: Bench, driver: Driver, case: Case) -> list[InputSet]:
    """Sets of inputs with their own content, as many as are wanted and fit."""
    first = make_set(driver, case, seed=bench.seed, device=bench.place)
    count = count_sets(total_bytes(first.arguments), bench.free_bytes())
    rest = (make_set(driver, case, seed=bench.seed + i, device=bench.place) for i in range(1, count))
    return [first, *rest]


def check_function(
    bench: Bench, driver: Driver, inputs: InputSet, references: Sequence[Any], tolerance: Tolerance
) -> tuple[OutputCheck, ...]:
    """Run once into poisoned memory and compare; this run also compiles. In-place inputs are put back."""
    with poisoned():
        made = inputs.call(driver.function)
        outputs = as_tuple(made) if driver.outputs else ()
    bench.synchronize()
    checks = check_outputs(driver.results, [*outputs, *changed(driver, inputs)], references, tolerance)
    inputs.restore()
    return checks


def changed(driver: Driver, inputs: InputSet) -> list[Any]:
    """The tensors that the function changes in place."""
    return [
        value
        for item, value in zip(driver.inputs, inputs.arguments, strict=True)
        if isinstance(item, TensorInput) and item.inout
    ]


def our_candidate(driver: Driver, sets: Sequence[InputSet]) -> Candidate:
    """The generated function, over the sets of inputs."""
    in_place = bool(sets[0].pristine)
    return Candidate(
        name="ours",
        call=lambda index: sets[index].call(driver.function),
        prepare=(lambda index: sets[index].restore()) if in_place else None,
        repeatable=not in_place,
        keep=True,
    )


def sample_cold(bench: Bench, run: Run, sets: int, keep: Callable[[], None]) -> None:
    """Warm up on the timed path, then sample all candidates in turn with a cold L2."""
    warm_up = Policy(least=2, seconds=0.0, spread=float("inf"), budget=0.0)
    bench.progress("warming up")
    first = Sampling()
    interleave(bench.device, run.candidates, warm_up, first, sets=sets, wait=False)
    again = [c for c in run.candidates if first.samples[c.name][-1] < LONG]
    for _ in range(2 if again else 0):
        interleave(bench.device, again, warm_up, Sampling(), sets=sets, wait=False)
    interleave(
        bench.device,
        run.candidates,
        bench.policy,
        run.cold,
        sets=sets,
        progress=lambda text: bench.progress(f"timing: {text}"),
        keep=keep,
    )


def sample_more(bench: Bench, run: Run, sets: int, spent: Seconds) -> None:
    """Graphs for short kernels and host times; then, never before the cold runs, those without flushes.

    Matrix work back to back for a second shows what the power cap leaves of the rate. Each part scales with the
    budget.
    """
    device, candidates = bench.device, run.candidates
    medians = {name: quantile(sorted(found), 0.5) for name, found in run.cold.samples.items()}
    median = medians["ours"]
    run.short = median < SHORT
    if run.short or bench.graph:
        bench.progress("timing in graphs")
        with spent.of("graphs"):
            repeats = max(2, min(20, int(LASTING / median)))
            most = max(SHARE * bench.policy.budget / (REPLAYS * repeats), 2 * SHORT)
            held = [c for c in candidates if c.name == "ours" or medians[c.name] <= most]
            run.graph, run.graph_refused = graphs(device, held, count=REPLAYS, sets=sets, repeats=repeats)
            run.graph_refused |= {
                c.name: "takes too long to be repeated" for c in candidates if c not in held
            }
    bench.progress("timing calls")
    with spent.of("calls"):
        for candidate in candidates:
            fitting = int(SHARE * bench.policy.budget / max(medians[candidate.name], 1e-9))
            count = max(3 if candidate is run.ours else 1, min(CALLS, fitting))
            run.walls[candidate.name] = walls(device, candidate, count=count, sets=sets)
    if run.cost.get("flops.tensor"):
        bench.progress("timing back to back")
        run.sustained = Sampling()
        with spent.of("sustained"):
            interleave(device, [run.ours], lasting(bench.policy), run.sustained, sets=sets, cold=False)
    if bench.warm:
        bench.progress("timing with a warm L2")
        run.warm = Sampling()
        with spent.of("warm"):
            interleave(device, [run.ours], bench.policy, run.warm, sets=1, cold=False)


def lasting(policy: Policy) -> Policy:
    """How long matrix work runs back to back: no longer than the sampling may take."""
    budget = min(SUSTAINED.budget, policy.budget)
    return replace(SUSTAINED, budget=budget, seconds=min(SUSTAINED.seconds, budget))


def sample_launches(bench: Bench, driver: Driver, run: Run, inputs: InputSet) -> None:
    """What a call launches, and what it costs the host beside the same launches made by hand."""
    started = record(driver, inputs)
    if not started:
        return
    bench.progress("timing the host")
    run.launches = describe_launches(started, bench.properties)
    ways = {"call": lambda: inputs.call(driver.function), "by_hand": all_of(started)}
    seconds = quantile(sorted(run.cold.samples["ours"]), 0.5)
    run.host = hosts(bench.device, ways, seconds=seconds)
    inputs.restore()


def recheck(
    bench: Bench, driver: Driver, sets: Sequence[InputSet], run: Run, tolerance: Tolerance
) -> tuple[OutputCheck, ...]:
    """Check the output of the last timed run."""
    assert run.ours.last is not None
    index, output = run.ours.last
    run.ours.last, run.ours.keep = None, False
    bench.progress("checking the timed output")
    outputs = [
        *(as_tuple(output) if driver.outputs else ()),
        *(item.clone() for item in changed(driver, sets[index])),
    ]
    sets[index].restore()
    return check_outputs(driver.results, outputs, reference_of(driver, sets[index]), tolerance)


def save_samples(measured: dict[str, Any], run: Run, keep: Callable[[], None]) -> None:
    """Put the raw samples so far into the record, so that even a killed run leaves them."""
    measured["samples"] = {name: timing(samples) for name, samples in run.cold.samples.items()}
    keep()
