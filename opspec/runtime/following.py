"""What a kernel says to the launches before and after it in its op: programmatic dependent launch, NVIDIA's from 9.0 on."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def wait_for_earlier(OVERLAP: tl.constexpr):
    """Wait until the launch before has ended and what it wrote can be read; stands before all that reads or writes."""
    if OVERLAP:
        tl.extra.cuda.gdc_wait()


@triton.jit
def let_next_come(OVERLAP: tl.constexpr):
    """From here on programs of the next launch may take the place of those of this one that have ended."""
    if OVERLAP:
        tl.extra.cuda.gdc_launch_dependents()
