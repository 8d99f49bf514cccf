"""Clocks, power, temperature and throttle reasons, read through NVML or ``nvidia-smi``; nothing is ever set."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

from opspec.runtime.bench.sampling import Clocks

# Bits of NVML's clocks-event reasons that mean the card holds itself back.
REASONS = {
    0x0000000000000004: "power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "power brake",
}
QUERY = "clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active"


def reasons(mask: int) -> tuple[str, ...]:
    """The throttle reasons in NVML's bit mask; idle and application clocks are none."""
    return tuple(name for bit, name in REASONS.items() if mask & bit)


def parse_smi(line: str) -> Clocks:
    """One line of ``nvidia-smi --query-gpu=QUERY --format=csv,noheader,nounits``."""
    parts = [part.strip() for part in line.split(",")]
    numbers = [number(part) for part in parts[:4]] + [None] * (4 - len(parts[:4]))
    try:
        mask = int(parts[4], 16)
    except (IndexError, ValueError):
        mask = 0
    return Clocks(
        sm_mhz=numbers[0],
        memory_mhz=numbers[1],
        power_w=numbers[2],
        temperature_c=numbers[3],
        throttle=reasons(mask),
    )


def number(text: str) -> float | None:
    """A number, or None for ``[N/A]`` and the like."""
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(slots=True)
class Monitor:
    """Looks at one device at most once in ``every`` seconds, while work is queued on it.

    ``identity`` is the driver's index of the device, or its UUID (``GPU-…``).
    """

    identity: str = "0"
    every: float = 0.5
    next: float = 0.0
    seen: Clocks | None = None
    source: str = ""
    handle: Any = field(default=None, repr=False)
    library: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        try:
            self.library = importlib.import_module("pynvml")
            self.library.nvmlInit()
            self.handle = (
                self.library.nvmlDeviceGetHandleByIndex(int(self.identity))
                if self.identity.isdigit()
                else self.library.nvmlDeviceGetHandleByUUID(self.identity)
            )
            self.source = "nvml"
        except Exception:  # noqa: BLE001  # absent, or no driver: nvidia-smi is tried next
            self.library = None
            self.source = "nvidia-smi" if shutil.which("nvidia-smi") else ""

    def look_soon(self) -> None:
        """Look now, if the last look is old enough."""
        if time.monotonic() >= self.next:
            self.seen = self.look()
            self.next = time.monotonic() + self.every

    def take(self) -> Clocks | None:
        """The newest look, once."""
        seen, self.seen = self.seen, None
        return seen

    def look(self) -> Clocks | None:
        """Ask the driver; None where it cannot be asked."""
        try:
            if self.library is not None:
                return self.ask_nvml()
            if self.source:
                return parse_smi(ask_smi(self.identity, QUERY))
        except Exception:  # noqa: BLE001  # a monitor that fails must not end a measurement
            return None
        return None

    def ask_nvml(self) -> Clocks:
        """One look through NVML."""
        nvml = self.library
        return Clocks(
            sm_mhz=float(nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_SM)),
            memory_mhz=float(nvml.nvmlDeviceGetClockInfo(self.handle, nvml.NVML_CLOCK_MEM)),
            power_w=nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000,
            temperature_c=float(nvml.nvmlDeviceGetTemperature(self.handle, nvml.NVML_TEMPERATURE_GPU)),
            throttle=reasons(int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle))),
        )


def ask_smi(identity: str, query: str) -> str:
    """One line of values from ``nvidia-smi``."""
    command = ["nvidia-smi", f"--id={identity}", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip().splitlines()[0]
