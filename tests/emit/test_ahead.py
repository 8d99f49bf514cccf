"""Scans and windows that load a step ahead: no masks where all chunks are full, and what L2 is told."""

from __future__ import annotations

import re

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load_text

ACROSS = "op f[T, C](x: bf16[T, C], a: bf16[T, C]) -> s: bf16[T, C] { kernel k { s[t, c] = scan_sum[t](x[t, c], a[t, c]) } }\n"
ALONG = "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = scan_sum[n](x[m, n]) } }\n"


def kernel_of(text: str) -> str:
    return build_package(load_text(text, "spec.op"), "spec.op", limits()).files["kernel.py"]


def test_a_scan_says_where_its_chunks_are_full():
    kernel = kernel_of(ACROSS)
    said = re.sub(r"\s+", " ", kernel[kernel.index('options["FULL"] = ') :])
    assert said.startswith(
        'options["FULL"] = all( (T > 0, T % (options["BLOCK_T"] * options["ROWS_T"]) == 0, C % options["BLOCK_C"] == 0)'
    )
    # all accesses go without masks there, and the last chunk is loaded twice rather than one behind it
    assert kernel.count("unless_full((t[:, None] < T) & (c[None, :] < C), FULL)") == 3
    assert "tl.minimum(t_start, T - 2 * BLOCK_T * ROWS_T) + BLOCK_T * ROWS_T" in kernel


def test_elements_wait_as_they_are_stored_and_are_widened_where_they_are_used():
    kernel = kernel_of(ACROSS)
    assert kernel.count("x_stored = tl.load(x_stored_at, mask=mask") == 2
    assert kernel.count("x = x_now[t_row].to(tl.float32)") == 2


def test_what_is_scanned_beside_its_result_is_not_first_to_leave_l2():
    assert "eviction_policy" not in kernel_of(ACROSS) + kernel_of(ALONG)
    folded = ALONG.replace("y: f32[M, N]", "y: f32[M]").replace("y[m, n] = scan_sum", "y[m] = sum")
    assert 'eviction_policy="evict_first"' in kernel_of(folded)


WINDOW = """op f[T, C, K](x: bf16[{0}T + K, C], w: bf16[K, C]) -> y: bf16[T, C] {{
  require 1 <= K, K <= 8
  kernel k {{ y[t, c] = sum[r](w[r, c] * x[{0}t + r, c]) }}
}}
"""


def test_a_window_is_walked_and_keeps_what_the_next_rows_share():
    kernel = kernel_of(WINDOW.format(""))
    walk = kernel[kernel.index("for t_step in range(0, ROWS_T, ONCE_T):") :]
    assert "x_rows = x_rows_before + x_rows_next" in walk
    assert "x_rows_before += (x_rows[ONCE_T + t_at],)" in walk
    assert "x = x_rows[r + t_row].to(tl.float32)" in walk
    assert "ROWS_T = ONCE_T * launch.rows(" in kernel


def test_windows_that_share_other_rows_are_taken_at_once():
    kernel = kernel_of(WINDOW.format("2 * "))
    assert "ONCE_T" not in kernel
    assert "ROWS_T" in kernel
