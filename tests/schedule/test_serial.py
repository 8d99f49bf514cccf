"""Axes that few programs walk, since a value of the block does not have them, are said with what keeps them there."""

from __future__ import annotations

from opspec.frontend import load_text
from opspec.schedule.plan import schedule_kernel
from opspec.schedule.serial import reduced, serial, serial_axes
from opspec.schedule.totals import typical_of

FILM = """op film[B, T, D, C](x: bf16[B, T, D], e: bf16[B, C], w: bf16[C, D]) -> y: bf16[B, T, D] {{
  kernel k {{
    s[b, d] = sum[c](e[b, c] * w[c, d])
{split}    y[b, t, d] = layernorm[d](x[b, t, d], 1e-5) * s[b, d]
  }}
}}
workload w for film {{ B = {b}, T = 1024, D = 1024, C = 256 }}
"""


def warned(b: int = 16, split: str = ""):
    module = load_text(FILM.format(split=split, b=b))
    op = module.ops[0]
    typical = typical_of(module.workloads)
    kernels = op.boundaries[0].kernels
    graphs = [schedule_kernel(op, op.boundaries[0], k, typical=typical).graph for k in kernels]
    return [serial_axes(g) for g in graphs], [w for g in graphs if (w := serial(g, typical)) is not None]


def test_a_value_without_an_axis_keeps_it_out_of_the_grid():
    axes, (warning,) = warned()
    assert axes == [{"t": ("s",)}]
    assert warning.message == "at most 16 programs walk `t` in kernel `k`, since `s` has no `t`"
    assert warning.help == "put `s` into a kernel of its own: this one has programs along `t` then"
    assert warning.span.text.startswith("y[b, t, d]")


def test_in_a_kernel_of_its_own_nothing_is_kept_out():
    axes, warnings = warned(split="  }\n  kernel n {\n")
    assert axes == [{}, {}]
    assert not warnings


def test_where_other_axes_make_programs_enough_nothing_is_said():
    assert not warned(b=64)[1]


def few(text: str):
    module = load_text(text)
    op = module.ops[0]
    typical = typical_of(module.workloads)
    (kernel,) = op.boundaries[0].kernels
    return reduced(schedule_kernel(op, op.boundaries[0], kernel, typical=typical).graph, typical)


def test_a_large_reduction_to_few_results_is_told():
    text = (
        "op f[N, D, S](x: bf16[N, D], offs: i32[S + 1]) -> y: f32[S] {{\n"
        "  kernel k {{ y[s] = sum[n, d | offs[s] <= n < offs[s + 1]](x[n, d])  for s < S }}\n}}\n"
        "workload w for f {{ N = 65536, D = 1024, S = {s} }}\n"
    )
    warning = few(text.format(s=32))
    assert warning is not None
    assert warning.message == "at most 32 programs reduce 2,147,483,648 points in kernel `k`"
    assert warning.help == "take the sum over `d` in a kernel before it, which has programs along the rest"
    assert few(text.format(s=64)) is None
