"""What a kernel is compiled for, known while it is."""

from __future__ import annotations

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


def nvidia(_semantic=None):
    """Whether a kernel is compiled for an NVIDIA device; the interpreter is none."""
    options = getattr(getattr(_semantic, "builder", None), "options", None)
    return tl.constexpr(getattr(options, "backend_name", "") == "cuda")


def threads(_semantic=None):
    """How many threads a program has; 0 in the interpreter."""
    options = getattr(getattr(_semantic, "builder", None), "options", None)
    return tl.constexpr(32 * getattr(options, "num_warps", 0))


setattr(nvidia, tl.core.TRITON_BUILTIN, True)  # evaluated while a kernel is compiled
setattr(threads, tl.core.TRITON_BUILTIN, True)
