"""Short commands spend most of their time importing, where the garbage collector only gets in the way."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_POLYHEDRA = "sympy.combinatorics.polyhedron"
_SOLIDS = ("Polyhedron", "tetrahedron", "cube", "octahedron", "dodecahedron", "icosahedron")


@contextmanager
def without_collector() -> Iterator[None]:
    """No garbage collection inside, and no polyhedra in SymPy; for commands that are done in a second."""
    was, finder = gc.isenabled(), _NoPolyhedra()
    gc.disable()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if finder.used:
            sys.modules.pop(_POLYHEDRA, None)
        if was:
            gc.enable()


class _NoPolyhedra:
    """Stands in for SymPy's polyhedra while it is imported.

    The first sum of three terms imports SymPy's tensors, these all of combinatorics, and that works out the symmetry
    groups of five solids, which takes as long as a good part of a short command and which nothing here uses.
    """

    def __init__(self) -> None:
        self.used = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A spec for that one module, none for any other."""
        del path, target
        if name != _POLYHEDRA:
            return None
        self.used = True
        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty module with the names that are imported from it."""
        module = ModuleType(spec.name)
        for name in _SOLIDS:
            setattr(module, name, None)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""
