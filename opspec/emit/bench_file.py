"""``bench.py`` of a package: its drivers, and what starts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opspec.emit.bench import DriverModel, driver_model
from opspec.emit.kernel_launch import KernelLaunch
from opspec.emit.launcher import function_name
from opspec.emit.layout import WIDTH
from opspec.emit.rendering import render
from opspec.ir.program import Module
from opspec.version import VERSION

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _BenchFile:
    ops_text: str
    origin: str
    example: str
    spec: str
    spec_hash: str
    kernel_hash: str
    version: str
    runtime: str
    torch: bool
    ops: tuple[DriverModel, ...]
    drivers: str


def bench_file(
    module: Module,
    spec: str,
    digest: str,
    kernel_hash: str,
    origin: str,
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]],
    costs: dict[str, dict[str, Any]],
) -> str:
    """The text of the file; ``digest`` and ``kernel_hash``: SHA-256 of the sources and of ``kernel.py``."""
    models = tuple(
        driver_model(module, op, function_name(op, ""), len(launches[op.name, ""]), costs[op.name])
        for op in module.ops
        if (op.name, "") in launches
    )
    first = next((w.name for w in module.workloads), None)
    model = _BenchFile(
        ops_text=", ".join(f"`{m.name}`" for m in models),
        origin=origin,
        example=f"--at {first}" if first else "--set",
        spec=spec,
        spec_hash=digest,
        kernel_hash=kernel_hash,
        version=VERSION,
        runtime="bench, launch" if any("launch." in m.cost for m in models) else "bench",
        torch=any("torch." in line for m in models for line in m.reference.lines),
        ops=models,
        drivers=_main([m.driver_name for m in models]),
    )
    return render("bench.py.j2", model)


def _main(drivers: list[str]) -> str:
    """The last statement of a driver file."""
    names = ", ".join(drivers)
    line = f"    raise SystemExit(bench.main({names}))"
    if len(line) <= WIDTH:
        return line
    single = f"        bench.main({names})"
    if len(single) <= WIDTH:
        return f"    raise SystemExit(\n{single}\n    )"
    inner = [f"            {names}"] if len(names) <= WIDTH - 12 else [f"            {d}," for d in drivers]
    return "\n".join(["    raise SystemExit(", "        bench.main(", *inner, "        )", "    )"])
