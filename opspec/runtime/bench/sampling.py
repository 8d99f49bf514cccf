"""How samples are taken: interleaved, cold unless said otherwise, until the noise allows a statement.

The GPU is behind the small ``Device`` protocol, so that all of this is tested without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opspec.runtime.bench.statistics import Policy, summarise, unreached

Progress = Callable[[str], None]
KEPT = 2.0  # seconds after which samples are written again
HOSTS = 0.3  # seconds that timing the host takes, about


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """One look at the card. Clocks in MHz, power in W, temperature in °C; None where it does not tell."""

    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Candidate:
    """Something timed. ``call(i)`` runs it on the i-th set of inputs and returns its outputs.

    ``prepare(i)`` restores what an earlier call changed in place; it runs outside the timed span. ``repeatable``
    says that it may run several times without being prepared in between. ``replays``: it runs in a CUDA graph of
    its own. ``keep`` holds on to the last output.
    """

    name: str
    call: Callable[[int], Any]
    prepare: Callable[[int], None] | None = None
    repeatable: bool = True
    replays: bool = False
    keep: bool = False
    last: tuple[int, Any] | None = None

    def run(self, index: int) -> None:
        """Run once, keeping the output if it will be checked again."""
        output = self.call(index)
        if self.keep:
            self.last = (index, output)


class Device(Protocol):
    """What sampling asks of a GPU. All times are seconds."""

    def spans(
        self, work: Sequence[tuple[Callable[[], None] | None, Callable[[], None]]], *, cold: bool
    ) -> list[float]:
        """Device time of each (prepare, run): prepare and the flush of the L2 before, outside the span."""
        ...

    def wall(
        self, prepare: Callable[[], None] | None, run: Callable[[], None], *, cold: bool
    ) -> tuple[float, float]:
        """Host time until ``run`` returned, and until the device was done, on an idle device."""
        ...

    def host(self, run: Callable[[], Any], *, batch: int) -> float:
        """Host time until ``run`` returned, per run of a batch that begins on an idle device and waits for none."""
        ...

    def graph(
        self, run: Callable[[int], None], sets: int, *, cold: bool, repeats: int = ...
    ) -> Callable[[], float]:
        """Capture ``repeats`` runs in a CUDA graph; each call of the result gives the device time of one run."""
        ...

    def clocks(self, *, wait: bool = False) -> Clocks | None:
        """A look at clocks and throttle reasons, if there is a new one; ``wait`` for one that has begun."""
        ...

    def now(self) -> float:
        """Host seconds."""
        ...


@dataclass(slots=True, kw_only=True)
class Sampling:
    """Raw samples in time order, by candidate, in seconds, and how the sampling ended.

    ``throttled`` marks, for each round, whether the card reported a throttle reason around it. Nothing is
    discarded. ``unreached`` names, by candidate, what the policy still wanted when the budget ran out.
    """

    samples: dict[str, list[float]] = field(default_factory=dict)
    clocks: list[Clocks] = field(default_factory=list)
    throttled: list[bool] = field(default_factory=list)
    elapsed: float = 0.0
    stopped: str = ""
    unreached: dict[str, str] = field(default_factory=dict)


def interleave(
    device: Device,
    candidates: Sequence[Candidate],
    policy: Policy,
    into: Sampling,
    *,
    sets: int,
    cold: bool = True,
    wait: bool = True,
    progress: Progress = lambda _: None,
    keep: Callable[[], None] = lambda: None,
) -> None:
    """Sample all candidates in turn by device time until the policy is content or the budget is spent.

    Each round runs every candidate once, beginning one further each time, over ``sets`` sets of inputs in
    rotation. A candidate other than the first that has used up its share of the budget, or twice that before it has
    the least number of samples, sits out from then on: what it lacks is said, and the others get the time that is left. Fills ``into`` batch by batch, and calls ``keep``
    every few seconds, so that an interrupt loses nothing. ``wait`` for a last look at the card.
    """
    for candidate in candidates:
        into.samples.setdefault(candidate.name, [])
    used = dict.fromkeys(into.samples, 0.0)
    left = list(candidates)
    start, rounds, batch = device.now(), 0, 1
    kept = start
    while True:
        before = device.now()
        order, work = schedule(left, rounds, batch, sets)
        times = device.spans(work, cold=cold)
        lasted = device.now() - before
        for candidate, seconds in zip(order, times, strict=True):
            into.samples[candidate.name].append(seconds)
            used[candidate.name] += seconds
        rounds += batch
        note_clocks(device.clocks(), into)
        into.throttled.extend([bool(into.clocks and into.clocks[-1].throttle)] * batch)
        into.elapsed = device.now() - start
        lacking = {c.name: unreached(policy, into.samples[c.name], into.elapsed) for c in candidates}
        into.unreached = {name: text for name, text in lacking.items() if text}
        progress(f"{bar(done(policy, into))} {rounds} rounds of {len(left)}, {into.elapsed:.1f} s")
        if into.elapsed >= policy.budget or not any(lacking[c.name] for c in left):
            into.stopped = "budget" if into.unreached else "noise"
            if wait:
                note_clocks(device.clocks(wait=True), into)
            keep()
            return
        if device.now() - kept >= KEPT:
            keep()
            kept = device.now()
        share = policy.budget / len(candidates)
        left = [
            c
            for c in left
            if c is candidates[0]
            or used[c.name] < (share if len(into.samples[c.name]) >= policy.least else 2 * share)
        ]
        batch = next_batch(batch, lasted)


def done(policy: Policy, into: Sampling) -> float:
    """How far sampling is, 0 to 1: by what is least of count, time and narrowness, or by the budget."""
    least = min(len(samples) for samples in into.samples.values())
    spread = max(summarise(samples).spread for samples in into.samples.values())
    parts = [least / policy.least, into.elapsed / policy.seconds if policy.seconds else 1.0]
    parts.append((policy.spread / spread) ** 2 if spread > 0 else 1.0)
    return min(1.0, max(min(parts), into.elapsed / policy.budget if policy.budget else 1.0))


def bar(share: float, width: int = 20) -> str:
    """A progress bar."""
    full = round(share * width)
    return "█" * full + "░" * (width - full)


def note_clocks(look: Clocks | None, into: Sampling) -> None:
    """Add a look at the card, if there was one."""
    if look is not None:
        into.clocks.append(look)


def schedule(
    candidates: Sequence[Candidate], first: int, rounds: int, sets: int
) -> tuple[list[Candidate], list[tuple[Callable[[], None] | None, Callable[[], None]]]]:
    """The order of a batch, and its work as (prepare, run) pairs."""
    order: list[Candidate] = []
    work: list[tuple[Callable[[], None] | None, Callable[[], None]]] = []
    for turn in range(first, first + rounds):
        index = turn % sets
        for place in range(len(candidates)):
            candidate = candidates[(place + turn) % len(candidates)]
            order.append(candidate)
            work.append(bind(candidate, index))
    return order, work


def bind(candidate: Candidate, index: int) -> tuple[Callable[[], None] | None, Callable[[], None]]:
    """(prepare, run) of a candidate on one set of inputs."""
    prepare = candidate.prepare
    return (None if prepare is None else lambda: prepare(index)), lambda: candidate.run(index)


def next_batch(batch: int, seconds: float) -> int:
    """Rounds in the next batch: about a tenth of a second of work, so that an interrupt is answered soon."""
    each = seconds / batch
    return max(1, min(64, 2 * batch, int(0.1 / each) if each > 0 else 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """Host times of one candidate, in seconds: until the call returned, and until the device was done."""

    enqueue: list[float]
    wall: list[float]


def walls(device: Device, candidate: Candidate, *, count: int, sets: int, cold: bool = True) -> Walls:
    """Sample the call as a user sees it, on an idle device."""
    pairs = [device.wall(*bind(candidate, turn % sets), cold=cold) for turn in range(count)]
    return Walls(enqueue=[pair[0] for pair in pairs], wall=[pair[1] for pair in pairs])


def graphs(
    device: Device,
    candidates: Sequence[Candidate],
    *,
    count: int,
    sets: int,
    repeats: int,
    cold: bool = True,
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Time per run inside a CUDA graph of ``repeats``, interleaved; and why, for those that cannot be captured."""
    replays: dict[str, Callable[[], float]] = {}
    refused: dict[str, str] = {}
    for candidate in candidates:
        if not candidate.repeatable:
            refused[candidate.name] = "changes its inputs in place"
            continue
        if candidate.replays:
            refused[candidate.name] = "replays graphs of its own"
            continue
        try:
            replays[candidate.name] = device.graph(candidate.run, sets, cold=cold, repeats=repeats)
        except Exception as error:  # noqa: BLE001  # whatever a peer does that a graph cannot hold
            refused[candidate.name] = one_line(error)
    samples: dict[str, list[float]] = {name: [] for name in replays}
    for _ in range(count):
        for name, replay in replays.items():
            samples[name].append(replay())
    return samples, refused


def hosts(device: Device, calls: Mapping[str, Callable[[], Any]], *, seconds: float) -> dict[str, float]:
    """Median host time per call of each, by short batches in turn; ``seconds``: what one call takes the device,
    for batches that it can queue in a few thousandths of a second."""
    each = HOSTS / (33 * max(len(calls), 1))
    batch = max(1, min(32, int(each / seconds) if seconds > 0 else 32))
    turns = max(11, min(33, int(HOSTS / (len(calls) * batch * seconds)) if seconds > 0 and calls else 33))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(turns):
        for name, call in calls.items():
            spent = device.host(call, batch=batch)
            if turn > 2:
                samples[name].append(spent)
    return {name: summarise(found).median for name, found in samples.items()}


def one_line(error: BaseException) -> str:
    """An error as one short line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def named(candidates: Sequence[Candidate]) -> Mapping[str, Candidate]:
    """Candidates by name."""
    return {candidate.name: candidate for candidate in candidates}
