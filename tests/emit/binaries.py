"""How many binaries calls of many shapes would compile, counted without a GPU.

Runs what the launcher runs, up to the launch; there Triton's own rule turns the arguments into the key of
a binary.
"""

from __future__ import annotations

from typing import Any, ClassVar
from unittest import mock

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.jit import create_function_from_signature

from opspec.runtime import descriptors, launch

BACKEND = make_backend(GPUTarget("cuda", 90, 32))


class Counting:
    """Takes the place of a first call and keeps the keys of what it would launch."""

    overlaps = True
    following: ClassVar = {"OVERLAP": True, "launch_pdl": True}

    def __init__(self) -> None:
        self.keys: set[tuple[str, str]] = set()
        self.binders: dict[Any, Any] = {}

    def tuned(self, kernel: str) -> dict[str, Any]:
        return {}

    def workspace(self, shape: Any, dtype: Any, *, zeroed: bool = False) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    def start(self, kernel: Any, grid: Any, options: dict[str, Any], *args: Any, **constants: Any) -> None:
        if kernel not in self.binders:
            self.binders[kernel] = create_function_from_signature(kernel.signature, kernel.params, BACKEND)
        _, specialization, extra = self.binders[kernel](*args, **options, **constants, debug=False)
        self.keys.add((kernel.__name__, f"{specialization} {extra}"))


def binaries(operator: Any, inputs: list[tuple[Any, ...]], whole: tuple[int, ...] = ()) -> int:
    """Distinct binaries over calls with the tensors of ``inputs`` (and floats of 1), on a device of capability 9.0.

    Shapes that the op refuses need none.
    """
    counting = Counting()
    # where tiles are described, and where odd rows are copied so that they can be
    both = [mock.patch.object(m, "has_tensor_memory", lambda _: True) for m in (launch, descriptors)]
    with both[0], both[1]:
        for tensors in inputs:
            try:
                dims, results = operator.check(*tensors, *whole)
            except launch.LaunchError:
                continue
            outs = [torch.empty(r.shape, dtype=r.dtype, device="meta") for r in results]
            operator.launch(counting, dims, *tensors, *[1.5] * operator.floats, *whole, *outs)
    return len(counting.keys)
