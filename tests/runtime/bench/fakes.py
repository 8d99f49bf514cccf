"""A GPU made of a script, and a small driver to run on it."""

from __future__ import annotations

import itertools
import types

import torch

from opspec.runtime import bench
from opspec.runtime.bench.measure import Bench
from opspec.runtime.bench.sampling import Candidate, Clocks
from opspec.runtime.bench.statistics import Policy

MACHINES = {
    "fake9": {
        "title": "Fake 9",
        "memory": {"bandwidth": 4.8e12},
        "tensor": {"bf16": 989.4e12},
        "vector": {"f32": 60e12},
        "sfu": {"per_clock_sm": 16},
        "sm": {"count": 132},
        "clock": {"boost": {"value": 1830e6}},
        "launch": {"plain": 15e-6, "graph": 0.5e-6},
    }
}
ROOFS = {
    "bandwidth_bytes_per_s": {"read": 4.7e12, "write": 4.6e12, "copy": 4.3e12, "mix21": 4.4e12},
    "matmul_flops_per_s": {"bf16": 820e12},
    "exp_per_s": 4.1e12,
    "launch_s": {"host": 15e-6, "graph": 0.5e-6, "event_floor": 3.4e-6},
    "missing": {"f8e4m3": "RuntimeError: no"},
    "stream_bytes": 2**30,
}


PROPERTIES = types.SimpleNamespace(
    multi_processor_count=132,
    regs_per_multiprocessor=65536,
    shared_memory_per_multiprocessor=233472,
    max_threads_per_multi_processor=2048,
)


class FakeDevice:
    """Runs the work for real and takes its times from ``times``: what ran -> an iterator of seconds."""

    def __init__(self, times, *, clocks=(), interrupt_after=None, capture=True):
        self.times = {name: itertools.cycle(values) for name, values in times.items()}
        self.elapsed = 0.0
        self.looks = list(clocks)
        self.log = []
        self.batches = 0
        self.interrupt_after = interrupt_after
        self.capture = capture

    def take(self, what):
        return next(self.times[what])

    def spans(self, work, *, cold):
        self.batches += 1
        if self.interrupt_after is not None and self.batches > self.interrupt_after:
            raise KeyboardInterrupt
        found = []
        for prepare, run in work:
            if prepare is not None:
                self.log.append("prepare")
                prepare()
            self.running = ""
            run()
            self.log.append(("cold" if cold else "warm", self.running))
            seconds = self.take(self.running if cold else f"warm {self.running}")
            self.elapsed += seconds + 1e-3
            found.append(seconds)
        return found

    def wall(self, prepare, run, *, cold):
        if prepare is not None:
            prepare()
        run()
        return 5e-6, self.take(self.running) + 20e-6

    def host(self, run, *, batch):
        for _ in range(batch):
            run()
        self.batches += 1
        return self.take(f"host {self.running}")

    def graph(self, run, sets, *, cold, repeats=20):
        if not self.capture:
            raise RuntimeError("operation not permitted when stream is capturing")
        run(0)
        name = self.running
        return lambda: self.take(name) * 2 / 3

    def clocks(self, *, wait=False):
        return self.looks.pop(0) if self.looks else None

    def now(self):
        return self.elapsed


class FakeBench:
    """What a session opens: a device, roofs, peers of its own."""

    def __init__(self, device, driver, options, progress, *, policy=None, stream=True, peers=None):
        self.device = device
        self.bench = Bench(
            device=device,
            place="cpu",
            free_bytes=lambda: 1 << 30,
            synchronize=lambda: None,
            stream=self.stream if stream else None,
            roofs=None,
            policy=policy or Policy(least=10, seconds=0.0, spread=0.5, budget=5.0),
            peers=() if options.no_peers else (driver.peers if peers is None else peers),
            warm=options.warm,
            graph=options.graph,
            properties=PROPERTIES,
            seed=options.seed,
        )

    def stream(self, kind, total):
        return Candidate(name=f"stream {kind}", call=lambda _index: self.device_runs("stream")), total

    def device_runs(self, what):
        self.device.running = what

    def measure_roofs(self, dtypes):
        return ROOFS

    def release(self):
        pass


GPU = {"name": "NVIDIA Fake9", "memory_bytes": 2**37, "driver": "1.2", "l2_bytes": 2**25}


def opener(device, **kwargs):
    """What ``bench.main`` takes as ``open_bench``."""
    return lambda driver, options, progress: (FakeBench(device, driver, options, progress, **kwargs), GPU)


def nothing(driver, options, progress):
    """No GPU."""
    return None, None


def runs(device, name, function):
    """``function``, telling the device what ran."""

    def call(*arguments):
        device.running = name
        return function(*arguments)

    return call


def scale(x, eps):
    """The operator: y = 2 x + eps."""
    return x * 2 + eps


def cost(dims, dtypes):
    size = {"bf16": 2, "f32": 4}[dtypes["X"]]
    points = dims["M"] * dims["N"]
    return {
        "flops": 2 * points,
        "flops.vector": 2 * points,
        "bytes.read": size * points,
        "bytes.write": size * points,
        "launches": 1,
    }


def driver(device=None, **changes):
    """A driver of ``scale``; on a device it tells what runs."""
    function = scale if device is None else runs(device, "ours", scale)
    fields = {
        "op": "scale",
        "spec": "specs/map/scale.op",
        "spec_hash": "a1",
        "kernel_hash": "b2",
        "opspec_version": "0.1.0",
        "function": function,
        "reference": scale,
        "cost": cost,
        "inputs": (
            bench.TensorInput("x", dtype="X", extents=lambda d: (d["M"], d["N"])),
            bench.ScalarInput("eps", 0.5),
        ),
        "outputs": ("y",),
        "dtypes": {"X": ("bf16", "f32")},
        "workloads": {
            "small": bench.Workload({"M": 64, "N": 32}),
            "wide": bench.Workload({"M": 8, "N": 512}),
        },
        "machines": MACHINES,
    } | changes
    return bench.Driver(**fields)


def peer(device, name, function=scale, version="lib 1.0"):
    return bench.Peer(name, lambda dims, dtypes: runs(device, name, function), version)


LOOK = Clocks(sm_mhz=1980.0, memory_mhz=3201.0, power_w=300.0, temperature_c=40.0)
CAPPED = Clocks(sm_mhz=1400.0, memory_mhz=3201.0, power_w=700.0, temperature_c=60.0, throttle=("power cap",))
torch.manual_seed(0)


class FakeCard:
    """What a run of several drivers opens: one device for all of them."""

    def __init__(self, device, *, lost_after=None, **options):
        self.device = device
        self.options = options
        self.asked = []  # the dtypes of each measurement of roofs
        self.opened = 0
        self.lost_after = lost_after

    def __call__(self, driver, options, progress):
        self.opened += 1
        made = FakeBench(self.device, driver, options, progress, **self.options)
        made.measure_roofs = self.measure_roofs
        return made, GPU

    def measure_roofs(self, dtypes):
        self.asked.append(tuple(dtypes))
        return ROOFS

    def alive(self):
        return self.lost_after is None or self.opened < self.lost_after


class NoCard:
    """A machine without a GPU."""

    def __call__(self, driver, options, progress):
        return None, None

    def alive(self):
        return True


DEVICE = []  # the device that the functions of fake packages tell what runs

KERNEL = """from tests.runtime.bench.fakes import DEVICE

NAME = {name!r}


def function(x, eps):
    DEVICE[-1].running = "ours"
    {body}
    return x * 2 + eps
"""
BENCH = """import kernel

from tests.runtime.bench.fakes import driver

{names} = (
    driver(op={op!r}, spec="specs/map/" + kernel.NAME + ".op", **(dict(function=kernel.function) | dict({changes}))),
    {more}
)
"""


def package(folder, name, *, op=None, body="pass", changes="", more=""):
    """A generated package, made up: an op called as its folder, ``more`` beside it."""
    path = folder / name
    path.mkdir(parents=True)
    path.joinpath("kernel.py").write_text(KERNEL.format(name=name, body=body))
    names = ", ".join(f"D{k}" for k in range(1 + more.count("driver("))) + ","
    text = BENCH.format(op=op or name, changes=changes, more=more, names=names)
    path.joinpath("bench.py").write_text(text)
    return path
