"""Puts the CUDA device, its roofs and the peers together for a session."""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opspec.runtime.bench.environment import record_gpu
from opspec.runtime.bench.gpu import Cuda, open_device
from opspec.runtime.bench.measure import Bench
from opspec.runtime.bench.model import Driver
from opspec.runtime.bench.peers import known_peers
from opspec.runtime.bench.roofs import measure_roofs, stream_candidate
from opspec.runtime.bench.statistics import Policy

SLACK = 64 << 20  # bytes that may be left over without a search for what holds them


@dataclass(slots=True)
class CudaBench:
    """An opened device and the surroundings of its measurements."""

    bench: Bench
    device: Cuda
    quick: bool
    progress: Callable[[str], None]
    held: int = 0  # bytes that the harness itself holds

    def measure_roofs(self, dtypes: Sequence[str]) -> dict[str, Any]:
        """The roofs of this run."""
        return measure_roofs(self.device, dtypes, quick=self.quick, progress=self.progress)

    def release(self) -> None:
        """Give memory back between shapes, also what only a cycle of references holds."""
        try:
            if torch.cuda.memory_allocated() > self.held + SLACK:
                gc.collect()
            torch.cuda.empty_cache()
        except Exception:  # noqa: BLE001  # a device that is lost: the next shape says so
            return


@dataclass(slots=True)
class Card:
    """The CUDA device of a process and its record, opened when the first driver asks for it.

    ``policy`` says when sampling stops, by the options of a driver.
    """

    policy: Callable[[argparse.Namespace], Policy]
    device: Cuda | None = None
    gpu: dict[str, Any] | None = None
    opened: bool = False
    held: int = 0

    def __call__(
        self, driver: Driver, options: argparse.Namespace, progress: Callable[[str], None]
    ) -> tuple[CudaBench | None, dict[str, Any] | None]:
        """The device for one driver, with its record; (None, None) where there is no CUDA device."""
        if not self.opened:
            self.device, self.opened = open_device(), True
            self.gpu = None if self.device is None else record_gpu(self.device)
            self.held = 0 if self.device is None else torch.cuda.memory_allocated()
        device = self.device
        if device is None:
            return None, None
        peers = "none" if options.no_peers else options.peers
        bench = Bench(
            device=device,
            place="cuda",
            free_bytes=lambda: int(torch.cuda.mem_get_info()[0]),
            synchronize=device.synchronize,
            stream=lambda kind, total: stream_candidate(device, kind, total),
            roofs=None,
            policy=self.policy(options),
            peers=() if peers == "none" else known_peers(driver, autotune=peers == "max"),
            warm=options.warm,
            graph=options.graph,
            properties=device.properties,
            seed=options.seed,
        )
        return CudaBench(bench, device, options.quick, progress, self.held), self.gpu

    def alive(self) -> bool:
        """Whether the device still answers: after an illegal access it never does in this process."""
        if self.device is None:
            return True
        try:
            self.device.synchronize()
        except Exception:  # noqa: BLE001  # whatever it says, it is lost
            return False
        return True
