"""What a number depends on: card, driver, libraries, hashes. Without secrets, paths or host names."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

from opspec.runtime.bench.model import Driver

PACKAGES = ("opspec", "torch", "triton")
COUNTERS = "not collected: hardware counters need a separate profiler pass"


def record_software(driver: Driver) -> dict[str, Any]:
    """Versions and hashes; known without a GPU."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "packages": {name: version(name) for name in PACKAGES},
        "spec_hash": driver.spec_hash,
        "kernel_hash": driver.kernel_hash,
        "generated_by": driver.opspec_version,
        "counters": COUNTERS,
    }


def version(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def record_gpu(device: Any) -> dict[str, Any]:
    """The card, its driver and its state before the run."""
    import torch

    from opspec.runtime.bench.monitor import ask_smi

    properties = device.properties
    monitor = device.monitor
    driver_version = None
    try:
        driver_version = ask_smi(monitor.identity, "driver_version") if monitor.source else None
    except Exception:  # noqa: BLE001  # the record goes without
        driver_version = None
    look = monitor.look()
    return {
        "name": properties.name,
        "memory_bytes": int(properties.total_memory),
        "l2_bytes": device.l2_bytes,
        "multiprocessors": int(properties.multi_processor_count),
        "capability": f"{properties.major}.{properties.minor}",
        "driver": driver_version,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "clocks_source": monitor.source or "none: neither NVML nor nvidia-smi answers",
        "before": None if look is None else clocks_record(look),
        "flush_bytes": device.evicting.numel() * device.evicting.element_size(),
    }


def clocks_record(look: Any) -> dict[str, Any]:
    """One look at the card as a JSON object."""
    return {
        "sm_mhz": look.sm_mhz,
        "memory_mhz": look.memory_mhz,
        "power_w": look.power_w,
        "temperature_c": look.temperature_c,
        "throttle": list(look.throttle),
    }
