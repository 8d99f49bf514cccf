"""The CUDA device behind sampling: events, flushes of the L2, graphs, and a look at the clocks.

Changes no setting of the card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opspec.runtime.bench import streams
from opspec.runtime.bench.monitor import Monitor
from opspec.runtime.bench.sampling import Clocks

MEBIBYTE = 1 << 20
TILE = 4096
REPEATS = 20


@dataclass(slots=True)
class Cuda:
    """The current CUDA device, as ``sampling.Device``."""

    properties: Any
    monitor: Monitor
    evicting: Any
    sums: Any
    graph_flush_tiles: int
    pool: list[Any] = field(default_factory=list)

    @property
    def l2_bytes(self) -> int:
        """Size of the L2 as the device tells it."""
        return int(self.properties.L2_cache_size)

    def flush(self, tiles: int | None = None) -> None:
        """Evict the L2 by reading other memory, which leaves clean lines; also keeps the stream busy.

        While it runs the host gets ahead, so that the cost of launching stays out of the span.
        """
        grid = (tiles or self.evicting.numel() // TILE,)
        streams.read_kernel[grid](self.evicting, self.sums, BLOCK=TILE, num_warps=4)

    def synchronize(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize()

    def spans(
        self, work: Sequence[tuple[Callable[[], None] | None, Callable[[], None]]], *, cold: bool
    ) -> list[float]:
        """Device seconds of each run, between two events on the stream."""
        while len(self.pool) < 2 * len(work):
            self.pool.append(torch.cuda.Event(enable_timing=True))
        for place, (prepare, run) in enumerate(work):
            if prepare is not None:
                prepare()
            if cold:
                self.flush()
            self.pool[2 * place].record()
            run()
            self.pool[2 * place + 1].record()
        self.monitor.look_soon()
        torch.cuda.synchronize()
        return [self.pool[2 * i].elapsed_time(self.pool[2 * i + 1]) * 1e-3 for i in range(len(work))]

    def wall(
        self, prepare: Callable[[], None] | None, run: Callable[[], None], *, cold: bool
    ) -> tuple[float, float]:
        """Host seconds until ``run`` returned and until the device was done."""
        if prepare is not None:
            prepare()
        if cold:
            self.flush()
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        returned = time.perf_counter()
        torch.cuda.synchronize()
        return returned - start, time.perf_counter() - start

    def host(self, run: Callable[[], Any], *, batch: int) -> float:
        """Host seconds per run of a batch, which begins on an idle device."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(batch):
            run()
        seconds = (time.perf_counter() - start) / batch
        torch.cuda.synchronize()
        return seconds

    def graph(
        self, run: Callable[[int], None], sets: int, *, cold: bool, repeats: int = REPEATS
    ) -> Callable[[], float]:
        """Seconds per run inside a graph of ``repeats`` runs.

        Cold: each run follows a flush of the L2 in the graph, and a graph of the flushes alone is subtracted.
        """
        whole = self.capture(run, sets, repeats, cold=cold)
        alone = self.capture(None, sets, repeats, cold=True) if cold else None

        def sample() -> float:
            total = self.replay(whole)
            return (total - (self.replay(alone) if alone is not None else 0.0)) / repeats

        return sample

    def capture(self, run: Callable[[int], None] | None, sets: int, repeats: int, *, cold: bool) -> Any:
        """A graph of ``repeats`` runs over the sets of inputs in turn, each after a flush if ``cold``."""

        def body() -> None:
            for turn in range(repeats):
                if cold:
                    self.flush(self.graph_flush_tiles)
                if run is not None:
                    run(turn % sets)

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for turn in range(min(2, sets)):
                if run is not None:
                    run(turn)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            body()
        self.replay(graph)
        return graph

    def replay(self, graph: Any) -> float:
        """Seconds of one replay, behind a flush that hides its launch."""
        while len(self.pool) < 2:
            self.pool.append(torch.cuda.Event(enable_timing=True))
        start, end = self.pool[:2]
        self.flush()
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) * 1e-3

    def clocks(self, *, wait: bool = False) -> Clocks | None:
        """The newest look at the card, once."""
        return self.monitor.take(wait=wait)

    def now(self) -> float:
        """Host seconds."""
        return time.perf_counter()


def identity(properties: Any) -> str:
    """How the driver's own tools name this device: its UUID, which no variable renumbers."""
    uuid = str(getattr(properties, "uuid", ""))
    if not uuid:
        return str(torch.cuda.current_device())
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"


def open_device() -> Cuda | None:
    """The current CUDA device, or None where there is none."""
    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    l2 = int(properties.L2_cache_size)
    least = 2 * l2
    wanted = max(least, min(1024 * MEBIBYTE, int(properties.total_memory) // 16))
    tiles = -(-wanted // (2 * TILE))
    evicting = torch.empty(tiles * TILE, dtype=torch.bfloat16, device="cuda").normal_()
    return Cuda(
        properties=properties,
        monitor=Monitor(identity=identity(properties)),
        evicting=evicting,
        sums=torch.empty(tiles, dtype=torch.float32, device="cuda"),
        graph_flush_tiles=-(-least // (2 * TILE)),
    )
