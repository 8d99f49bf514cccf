"""What a call costs on the host: ``python -m tools.overhead [SPEC[:OP]] [--set M=16]``.

Times one op's generated function beside the same kernels launched by hand with their arguments at hand, and
beside the way through torch's dispatcher and a replayed CUDA graph. The device is idle before each batch of
calls and the batch is short, so that the host never waits. Without a GPU the kernels are stubs, and what is
left is the Python of each way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from opspec.driver.targets import limits
from opspec.frontend import load

BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An op ready to be called: ``ways`` by name, each a call without arguments."""

    op: str
    shapes: str
    ways: dict[str, Callable[[], Any]]


def main() -> int:
    """Print a table of microseconds per call; the median of many batches, and the fastest."""
    options = parsed()
    import torch

    gpu = torch.cuda.is_available()
    if not gpu:
        os.environ["TRITON_INTERPRET"] = "1"
    prepared = prepare(options.spec, settings(options.set), gpu=gpu)
    wait = torch.cuda.synchronize if gpu else lambda: None
    print(f"{prepared.op}, {prepared.shapes}" + ("" if gpu else ", with stubs in place of kernels"))
    for name, call in prepared.ways.items():
        for _ in range(20):
            call()
        times = [batch(call, wait) for _ in range(options.batches)]
        print(f"  {name:<44} {statistics.median(times) * 1e6:8.2f} µs   fastest {min(times) * 1e6:8.2f} µs")
    return 0


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.overhead", description=__doc__)
    parser.add_argument("spec", nargs="?", default="specs/norm/add_rmsnorm.op", metavar="SPEC[:OP]")
    parser.add_argument(
        "--set", action="append", default=[], metavar="M=16", help="dims; 16 and 1024 if left out"
    )
    parser.add_argument("--batches", type=int, default=300)
    return parser.parse_args()


def settings(texts: list[str]) -> dict[str, int]:
    """``M=16,N=1024`` as a mapping."""
    parts = [part.partition("=") for text in texts for part in text.split(",")]
    return {name: int(value) for name, _, value in parts}


def batch(call: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Seconds per call of one batch."""
    wait()
    start = time.perf_counter()
    for _ in range(BATCH):
        call()
    seconds = (time.perf_counter() - start) / BATCH
    wait()
    return seconds


def prepare(target: str, dims: dict[str, int], *, gpu: bool) -> Prepared:
    """Generate the op and make its ways to be called."""
    from opspec.emit.package import build_package
    from opspec.runtime.bench.inputs import make_set
    from opspec.runtime.bench.launches import all_of, arguments, operator_of, record
    from opspec.runtime.bench.model import Case

    path, _, wanted = target.partition(":")
    package = build_package(load(path), path, limits())
    with tempfile.TemporaryDirectory(prefix="opspec-overhead-") as folder:
        sys.path.insert(0, folder)
        for name in ("kernel.py", "bench.py"):
            (Path(folder) / name).write_text(package.files[name], encoding="utf-8")
        drivers, kernel = import_module("bench"), import_module("kernel")
        sys.path.pop(0)
    found = [d for name, d in vars(drivers).items() if name.startswith("DRIVER")]
    driver = next(d for d in found if wanted in {"", d.op})
    first = next(iter(driver.workloads.values()))
    base = dict(getattr(first, "dims", None) or first.shapes[0][1])
    shape = {d: dims.get(d, min(v, 16 if k == 0 else 1024)) for k, (d, v) in enumerate(base.items())}
    case = Case(workload="", weight=None, dims=shape, dtypes={k: v[0] for k, v in driver.dtypes.items()})
    inputs = make_set(driver, case, seed=0, device="cuda" if gpu else "cpu")
    operator = operator_of(driver.function)
    if not gpu:
        stub(kernel)
    outs = inputs.call(driver.function)
    into = replace(inputs, named={**inputs.named, "out": outs} if outs is not None else inputs.named)
    given = tuple(n for part in arguments(driver, inputs, operator.parameters) for n in part)
    ways: dict[str, Callable[[], Any]] = {
        "launched by hand (Triton's own entry)": all_of(record(driver, inputs)),
        "generated function, out= given": lambda: into.call(driver.function),
        "generated function": lambda: inputs.call(driver.function),
        "through torch's dispatcher": lambda: operator.functional(*given),
    }
    if gpu:
        ways["replayed in a CUDA graph"] = captured(lambda: into.call(driver.function))
    return Prepared(op=driver.op, shapes=", ".join(f"{k} = {v}" for k, v in shape.items()), ways=ways)


def captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call in a graph, as a replay."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay  # type: ignore[no-any-return,unused-ignore]


def stub(kernel: ModuleType) -> None:
    """Put stubs in place of a module's kernels and of Triton's driver, so that all but the launch is run."""
    from opspec.runtime import calls

    class Kernel:
        def __init__(self, original: Any) -> None:
            self.arg_names = original.arg_names
            self.compiled = SimpleNamespace(run=lambda *_: None, function=1, packed_metadata=())

        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            return lambda *_, **__: self.compiled

    for name, value in list(vars(kernel).items()):
        if hasattr(value, "arg_names"):
            setattr(kernel, name, Kernel(value))
    active = SimpleNamespace(get_current_device=lambda: -1, get_current_stream=lambda _: 0)
    vars(calls)["driver"] = SimpleNamespace(active=active)


if __name__ == "__main__":
    raise SystemExit(main())
