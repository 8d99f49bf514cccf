"""Generated packages, loaded side by side into one process."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from opspec.runtime.bench.model import Driver, UsageError

FILE = "bench.py"
KERNEL = "kernel"  # what a driver imports its functions from


def find_packages(paths: list[Path]) -> list[Path]:
    """Every folder with a driver that the paths name, or that lies below them; UsageError for a path without one."""
    found: dict[Path, None] = {}
    for path in paths:
        place = path.parent if path.name == FILE and path.is_file() else path
        folders = [place] if (place / FILE).is_file() else sorted(p.parent for p in place.rglob(FILE))
        if not folders:
            raise UsageError(f"`{path}` holds no generated package: there is no {FILE} in it")
        found |= dict.fromkeys(folder.resolve() for folder in folders)
    return list(found)


def load_drivers(folder: Path) -> tuple[Driver, ...]:
    """The drivers of a package, in their order, over the ``kernel.py`` that lies beside them.

    Raises: whatever importing them raises.
    """
    name = f"opspec_package_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    before = sys.modules.pop(KERNEL, None)
    try:
        sys.modules[KERNEL] = load(f"{name}_{KERNEL}", folder / f"{KERNEL}.py")
        module = load(name, folder / FILE)
    finally:
        sys.modules.pop(KERNEL, None)
        if before is not None:
            sys.modules[KERNEL] = before
    return tuple(value for value in vars(module).values() if isinstance(value, Driver))


def load(name: str, path: Path) -> ModuleType:
    """A file as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
