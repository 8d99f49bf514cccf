"""Ops of a spec as they run: generated, loaded, and launched with options of one's own."""

from __future__ import annotations

import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opspec.driver.files import write_atomically
from opspec.driver.targets import limits
from opspec.emit.kernel_launch import KernelLaunch
from opspec.emit.launcher import function_name
from opspec.emit.package import Package, build_package
from opspec.ir.program import Module, Op
from opspec.schedule.resources import Limits

if TYPE_CHECKING:
    from opspec.runtime.bench.model import Case, Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is tuned: an op of a generated package, loaded. ``name`` is its function's."""

    op: Op
    driver: Driver
    launches: tuple[KernelLaunch, ...]
    name: str
    limits: Limits

    @property
    def operator(self) -> Any:
        """The operator behind the generated function."""
        return self.driver.function.__globals__[f"_{self.name}__operator"]

    def cases(self, wanted: Sequence[str]) -> tuple[Case, ...]:
        """The shapes of its workloads, or of those that are wanted."""
        from opspec.runtime.bench.model import cases

        names = [n for n in wanted or self.driver.workloads if n in self.driver.workloads]
        return tuple(case for name in names for case in cases(self.driver, name))

    def function(self, tunings: Mapping[Any, Any]) -> Callable[..., Any]:
        """The generated function with other tunings, and a memory of its own."""
        made = self.driver.function
        names = {**made.__globals__, f"_{self.name}__operator": self.operator.trial(dict(tunings))}
        copy = types.FunctionType(made.__code__, names, made.__name__, made.__defaults__)
        copy.__kwdefaults__ = made.__kwdefaults__
        return copy


def subjects_of(
    module: Module, ops: Sequence[Op], shown: str, own: Limits
) -> tuple[Package, tuple[Subject, ...]]:
    """The package of a spec, and those of its ops that have a driver, loaded.

    ``shown``: the spec's path as its kernels state it. ``own``: what a multiprocessor of the device holds.
    Raises: Failure where an op can't be generated.
    """
    from opspec.runtime.bench.packages import load_drivers

    package = build_package(module, shown, limits())
    with tempfile.TemporaryDirectory(prefix="opspec-subjects-") as folder:
        for name in ("kernel.py", "bench.py"):
            write_atomically(Path(folder) / name, package.files[name])
        drivers = {driver.op: driver for driver in load_drivers(Path(folder))}
    found = (
        Subject(
            op=op,
            driver=drivers[op.name],
            launches=package.launches[op.name, ""],
            name=function_name(op, ""),
            limits=own,
        )
        for op in ops
        if op.name in drivers
    )
    return package, tuple(found)
