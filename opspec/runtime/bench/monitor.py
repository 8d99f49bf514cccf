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
STATE = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
# The same field under its newer and its older name.
ACTIVE = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")


def reasons(mask: int) -> tuple[str, ...]:
    """The throttle reasons in NVML's bit mask; idle and application clocks are none."""
    return tuple(name for bit, name in REASONS.items() if mask & bit)


def parse_smi(line: str) -> Clocks:
    """One line of ``nvidia-smi``: the fields of ``STATE`` and one of ``ACTIVE``."""
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

    ``identity`` is the driver's index of the device, or its UUID (``GPU-…``). NVML answers at once;
    ``nvidia-smi`` is left to run beside the measurement and read when it is done, so that the device is not
    idle meanwhile.
    """

    identity: str = "0"
    every: float = 0.5
    source: str = ""
    next: float = 0.0
    seen: Clocks | None = None
    active: str = ACTIVE[0]
    pending: subprocess.Popen[str] | None = field(default=None, repr=False)
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
            self.ask_nvml()
            self.source = "nvml"
        except Exception:  # noqa: BLE001  # absent, or it does not answer: nvidia-smi is tried next
            self.library = None
            self.choose_smi()

    def choose_smi(self) -> None:
        """Find the name under which this ``nvidia-smi`` knows the throttle reasons; no source if it fails."""
        for name in ACTIVE if shutil.which("nvidia-smi") else ():
            try:
                parse_smi(ask_smi(self.identity, f"{STATE},{name}"))
            except (OSError, subprocess.SubprocessError, IndexError):
                continue
            self.source, self.active = "nvidia-smi", name
            return

    def look_soon(self) -> None:
        """Begin a look, if the last one is old enough."""
        if self.pending is not None or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + self.every
        match self.source:
            case "nvml":
                self.seen = self.look()
            case "nvidia-smi":
                self.pending = subprocess.Popen(
                    smi_command(self.identity, f"{STATE},{self.active}"),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            case _:
                return

    def take(self, *, wait: bool = False) -> Clocks | None:
        """The newest look, once. With ``wait``, one that has begun is waited for."""
        if self.pending is not None and (wait or self.pending.poll() is not None):
            pending, self.pending = self.pending, None
            try:
                output, _ = pending.communicate(timeout=10)
                self.seen = parse_smi(output.strip().splitlines()[0])
            except subprocess.TimeoutExpired:
                pending.kill()
                pending.communicate()
            except IndexError:
                pass
        seen, self.seen = self.seen, None
        return seen

    def look(self) -> Clocks | None:
        """Ask the driver now; None where it cannot be asked."""
        try:
            if self.library is not None:
                return self.ask_nvml()
            if self.source:
                return parse_smi(ask_smi(self.identity, f"{STATE},{self.active}"))
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


def smi_command(identity: str, query: str) -> list[str]:
    """The query of ``nvidia-smi`` for one device."""
    return ["nvidia-smi", f"--id={identity}", f"--query-gpu={query}", "--format=csv,noheader,nounits"]


def ask_smi(identity: str, query: str) -> str:
    """One line of values from ``nvidia-smi``."""
    command = smi_command(identity, query)
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    return done.stdout.strip().splitlines()[0]
