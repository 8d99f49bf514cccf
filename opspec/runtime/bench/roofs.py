"""What this card can do, measured in the same run and through the same harness as the operator.

Plain streams of GiB size (read, write, copy, two reads to one write), matrix products per type, base-2
exponentials, and the cost of a launch: on the host, in a graph, and as this harness sees an empty kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from opspec.runtime.bench import streams
from opspec.runtime.bench.gpu import Cuda
from opspec.runtime.bench.inputs import TORCH_DTYPES
from opspec.runtime.bench.sampling import Candidate, one_line
from opspec.runtime.bench.statistics import quantile

STREAM = torch.bfloat16
# (tile, warps) tried for each stream; the fastest at the given size is the roof.
TILES = {
    "read": ((1024, 4), (4096, 8), (16384, 8)),
    "write": ((1024, 4), (4096, 8)),
    "copy": ((1024, 4), (4096, 8)),
    "mix21": ((1024, 4), (4096, 8)),
}
PARTS = {"read": 1, "write": 1, "copy": 2, "mix21": 3}
LARGE = 1 << 30
EXPONENTIALS = 256  # chained on each element


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A plain stream of a given kind: what it moves and how to run it."""

    kind: str
    bytes: int
    tile: int
    call: Callable[[], None]


def make_streams(kind: str, total: int) -> list[Stream]:
    """A stream of about ``total`` bytes, read and written together, in each tile shape."""
    largest = max(tile for tile, _ in TILES[kind])
    each = max(total // (PARTS[kind] * STREAM.itemsize), 1)
    room = -(-each // largest) * largest
    buffers = [torch.empty(room, dtype=STREAM, device="cuda").normal_() for _ in range(PARTS[kind])]
    sums = torch.empty(room // 1024, dtype=torch.float32, device="cuda")
    return [stream(kind, each, tile, warps, buffers, sums) for tile, warps in TILES[kind]]


def stream(kind: str, each: int, tile: int, warps: int, buffers: list[Any], sums: Any) -> Stream:
    """One stream over ``each`` elements of each buffer, rounded to whole tiles."""
    tiles = max(round(each / tile), 1)
    grid = (tiles,)
    match kind:
        case "read":

            def call() -> None:
                streams.read_kernel[grid](buffers[0], sums, BLOCK=tile, num_warps=warps)
        case "write":

            def call() -> None:
                streams.write_kernel[grid](buffers[0], 3, BLOCK=tile, num_warps=warps)
        case "copy":

            def call() -> None:
                streams.copy_kernel[grid](buffers[0], buffers[1], BLOCK=tile, num_warps=warps)
        case _:

            def call() -> None:
                streams.mix_kernel[grid](buffers[0], buffers[1], buffers[2], BLOCK=tile, num_warps=warps)

    return Stream(kind=kind, bytes=tiles * tile * STREAM.itemsize * PARTS[kind], tile=tile, call=call)


def best_stream(device: Cuda, kind: str, total: int) -> Stream:
    """The fastest tile shape at this size, by a short trial."""
    found = make_streams(kind, total)
    return min(found, key=lambda item: median_span(device, item.call, 7) / item.bytes)


def stream_candidate(device: Cuda, kind: str, total: int) -> tuple[Candidate, int]:
    """A stream to be sampled beside the operator, and the bytes that it moves."""
    chosen = best_stream(device, kind, total)
    return Candidate(name=f"stream {kind}", call=lambda _index: chosen.call()), chosen.bytes


def median_span(device: Cuda, call: Callable[[], Any], count: int) -> float:
    """Median device seconds of ``count`` cold runs after two that are not counted."""
    for _ in range(2):
        call()
    return quantile(sorted(device.spans([(None, call)] * count, cold=True)), 0.5)


def measure_roofs(
    device: Cuda, dtypes: Sequence[str], *, quick: bool, progress: Callable[[str], None]
) -> dict[str, Any]:
    """All roofs as a JSON object; a roof that cannot be measured says why under ``missing``."""
    roofs: dict[str, Any] = {"bandwidth_bytes_per_s": {}, "matmul_flops_per_s": {}, "missing": {}}
    count = 9 if quick else 21
    progress("launch latency")
    roofs["launch_s"] = launch_latency(device)
    for kind in TILES:
        progress(f"{kind} bandwidth")
        attempt(roofs, kind, partial(large_stream, device, kind, count), "bandwidth_bytes_per_s")
    progress("exponentials")
    attempt(roofs, "exp", partial(exp_rate, device, count))
    for dtype in dict.fromkeys(dtypes):
        progress(f"{dtype} matrix product")
        attempt(roofs, dtype, partial(matmul_rate, device, dtype, count), "matmul_flops_per_s")
    roofs["stream_bytes"] = LARGE
    torch.cuda.empty_cache()
    return roofs


def attempt(roofs: dict[str, Any], name: str, measure: Callable[[], float], group: str = "") -> None:
    """Put a measured rate in its place, or the reason why there is none."""
    try:
        rate = measure()
    except Exception as error:  # noqa: BLE001  # a type this card cannot multiply, memory, …
        roofs["missing"][name] = one_line(error)
        return
    if group:
        roofs[group][name] = rate
    else:
        roofs[f"{name}_per_s"] = rate


def large_stream(device: Cuda, kind: str, count: int) -> float:
    """Bytes per second of a stream of ``LARGE`` bytes."""
    chosen = best_stream(device, kind, LARGE)
    return chosen.bytes / median_span(device, chosen.call, count)


def exp_rate(device: Cuda, count: int) -> float:
    """Base-2 exponentials per second."""
    block, repeats = 2048, EXPONENTIALS
    programs = device.properties.multi_processor_count * 16
    values = torch.rand(programs * block, device="cuda")

    def call() -> None:
        streams.exp_kernel[(programs,)](values, REPEATS=repeats, BLOCK=block, num_warps=8)

    return float(programs * block * repeats) / median_span(device, call, count)


def matmul_rate(device: Cuda, dtype: str, count: int) -> float:
    """FLOP per second of an 8192³ product by the vendor's library; f32 without tf32, ``tf32`` with it."""
    size = 8192 if dtype != "f32" else 4096
    stored = TORCH_DTYPES["f32" if dtype == "tf32" else dtype]
    left = torch.randn(size, size, device="cuda")
    right = torch.randn(size, size, device="cuda").t()
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    try:
        return 2.0 * size**3 / median_span(device, product(dtype, left, right, stored), max(count // 2, 5))
    finally:
        torch.set_float32_matmul_precision(precision)


def product(dtype: str, left: Any, right: Any, stored: Any) -> Callable[[], Any]:
    """The library call that multiplies matrices of this type."""
    match dtype:
        case "f8e4m3" | "f8e5m2":
            a, b = left.to(stored), right.to(torch.float8_e4m3fn)
            one = torch.ones((), device="cuda")
            return lambda: torch._scaled_mm(  # noqa: SLF001  # torch offers these products under no other name
                a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        case "i8":
            a, b = (left * 40).to(stored), (right * 40).to(stored)
            return lambda: torch._int_mm(a, b)  # noqa: SLF001
        case "bf16" | "f16":
            a, b = left.to(stored), right.to(stored)
            flat = b.contiguous()
            return lambda: torch.mm(a, flat)
        case _:
            return lambda: torch.mm(left, right)


def launch_latency(device: Cuda) -> dict[str, float]:
    """Seconds of an empty Triton kernel: on the host, as a graph node, and in this harness's event window."""

    def call() -> None:
        streams.empty_kernel[(1,)]()

    call()
    device.synchronize()
    hosts = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(200):
            call()
        hosts.append((time.perf_counter() - start) / 200)
        device.synchronize()
    replay = device.graph(lambda _index: call(), 1, cold=False, repeats=400)
    return {
        "host": min(hosts),
        "graph": quantile(sorted(replay() for _ in range(9)), 0.5),
        "event_floor": median_span(device, call, 15),
    }
