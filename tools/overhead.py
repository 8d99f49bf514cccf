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
from dataclasses import dataclass
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
    from opspec.runtime.bench.model import Case, TensorInput

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
    args = make_set(driver, case, seed=0, device="cuda" if gpu else "cpu").arguments
    operator = getattr(kernel, f"_{driver.function.__name__}__operator")
    if not gpu:
        stub(kernel)
    outs = driver.function(*args)
    given = {"out": outs} if outs is not None else {}
    tensors = tuple(a for a, i in zip(args, driver.inputs, strict=True) if isinstance(i, TensorInput))
    wanted_floats = {p.split()[-1] for p in operator.parameters if p.startswith("float")}
    numbers = [
        float(a) if i.name in wanted_floats else int(a)
        for a, i in zip(args, driver.inputs, strict=True)
        if not isinstance(i, TensorInput)
    ]
    ways = {
        "launched by hand (Triton's own entry)": by_hand(operator, tensors, numbers, outs),
        "generated function, out= given": lambda: driver.function(*args, **given),
        "generated function": lambda: driver.function(*args),
        "through torch's dispatcher": lambda: operator.functional(*tensors, *sorted(numbers, key=isfloat)),
    }
    if gpu:
        ways["replayed in a CUDA graph"] = captured(lambda: driver.function(*args, **given))
    return Prepared(op=driver.op, shapes=", ".join(f"{k} = {v}" for k, v in shape.items()), ways=ways)


def isfloat(number: float) -> bool:
    """Whether a scalar comes last in a sort that puts floats first."""
    return not isinstance(number, float)


def by_hand(operator: Any, tensors: tuple[Any, ...], numbers: list[Any], outs: Any) -> Callable[[], Any]:
    """The kernels of one call with all arguments at hand, as someone would write it for one shape."""
    import torch

    starts: list[Callable[[], Any]] = []

    def start(kernel: Any, grid: int, options: dict[str, Any], *args: Any, **more: Any) -> None:
        starts.append(lambda: kernel[(grid,)](*args, **options, **more))

    def workspace(shape: Any, dtype: Any, *, zeroed: bool = False) -> Any:
        del zeroed
        return torch.empty(shape, dtype=dtype, device=tensors[0].device)

    call = SimpleNamespace(start=start, workspace=workspace, tuned=lambda _: {})
    results = () if outs is None else outs if isinstance(outs, tuple) else (outs,)
    whole = [n for n in numbers if not isinstance(n, float)]
    dims, _ = operator.check(*tensors, *whole)
    operator.launch(call, dims, *tensors, *sorted(numbers, key=isfloat), *results)
    return lambda: [go() for go in starts]


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
