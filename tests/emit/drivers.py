"""Generated drivers, loaded without their kernels, and small shapes for them."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import types
from pathlib import Path

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.reference.cases import cases
from opspec.runtime.bench.model import Case


class NoKernels(types.ModuleType):
    """Stands in for ``kernel.py``: every function is there and none does anything."""

    def __getattr__(self, name):
        return lambda *_args, **_named: {}


def drivers(path):
    """Pairs of op and driver of a spec file."""
    module = load(path)
    text = build_package(module, path.name, limits()).files["bench.py"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.py"
        file.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("driver_under_test", file)
        made = importlib.util.module_from_spec(spec)
        sys.modules["kernel"] = NoKernels("kernel")
        try:
            spec.loader.exec_module(made)
        finally:
            del sys.modules["kernel"]
    found = {d.op: d for name, d in vars(made).items() if name.startswith("DRIVER")}
    return [(op, found[op.name]) for op in module.ops if op.name in found]


def shapes(op, driver, count, workloads=()):
    """Cases of the driver at small shapes that the op allows."""
    for case in cases(op, {}, count, 3, workloads=workloads, limit=4000):
        if all(case.dims.values()):
            dtypes = {name: allowed[0] for name, allowed in driver.dtypes.items()}
            yield Case(workload="w", weight=None, dims=dict(case.dims), dtypes=dtypes)
