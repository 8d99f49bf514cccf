"""What a kernel is compiled for, known while it is."""

from __future__ import annotations

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


def nvidia(_semantic=None):
    """Whether a kernel is compiled for an NVIDIA device; the interpreter is none."""
    options = getattr(getattr(_semantic, "builder", None), "options", None)
    return tl.constexpr(getattr(options, "backend_name", "") == "cuda")


setattr(nvidia, tl.core.TRITON_BUILTIN, True)  # evaluated while a kernel is compiled
