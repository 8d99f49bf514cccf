"""Launches of one op that overlap: what their kernels and their launcher say."""

from __future__ import annotations

import re

import torch

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load_text
from opspec.runtime.calls import Call
from opspec.runtime.launch import can_overlap

TWO = (
    "op f[M, N](x: bf16[M, N]) -> y: bf16[M, N] {\n"
    "kernel a { p: bf16[m, n] = softmax[n](x[m, n]) }\n"
    "kernel b { y[m, n] = 2 * p[m, n] } }\n"
)
WITH_A_PRODUCT = (
    "op f[M, N, K](x: bf16[M, K], w: bf16[N, K]) -> y: bf16[M, N] {\n"
    "kernel a { p: bf16[m, n] = sum[k](x[m, k] * w[n, k]) }\n"
    "kernel b { y[m, n] = 2 * p[m, n] } }\n"
)


def kernel_of(text: str) -> str:
    return build_package(load_text(text, "spec.op"), "spec.op", limits()).files["kernel.py"]


def test_a_kernel_waits_before_it_reads_and_the_one_before_lets_it_come():
    kernel = kernel_of(TWO)
    first, second = (
        re.search(rf"def _f_{name}\(.*?\n\n", kernel, re.DOTALL)[0] for name in ("a_resident", "b")
    )
    assert "let_next_come(OVERLAP)" in first
    assert "wait_for_earlier" not in first
    assert second.index("wait_for_earlier(OVERLAP)") < min(
        second.index("tl.load"), second.index("program_id")
    )
    assert "let_next_come" not in second
    assert [kernel.count(t) for t in ("OVERLAP=call.overlaps,", "**call.following,")] == [1, 1]


def test_what_the_next_launch_reads_stays_in_l2_and_leaves_it_there():
    kernel = kernel_of(TWO)
    assert 'tl.store(p_at, p, mask=mask, eviction_policy="evict_last")' in kernel
    assert re.search(r'p = tl.load\(.*eviction_policy="evict_first"\)', kernel)
    assert re.search(r"tl.store\(y_at, y.*, mask=mask\)", kernel)


def test_products_leave_no_room_for_others():
    assert "OVERLAP" not in kernel_of(WITH_A_PRODUCT)


def test_a_device_without_overlap_starts_one_after_the_other():
    assert not can_overlap(torch.device("cpu"))
    call = Call(device=torch.device("cpu"), tensors=[])
    assert not call.overlaps
    assert call.following == {"OVERLAP": False}
