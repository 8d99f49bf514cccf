"""Rows of a group in registers: which kernels get such a variant, and what its loops load."""

from __future__ import annotations

import pytest

from opspec.frontend import load_text
from opspec.schedule.plan import schedule_kernel
from opspec.schedule.tile import Fetch, Loop, Take, Unroll, Write
from opspec.schedule.totals import typical_of

NORM = (
    "op f[N, K, S](x: bf16[N, K, S], w: f32[K]) -> y: bf16[N, K, S] {\n"
    "  kernel k { y[n, k, s] = layernorm[k, s](x[n, k, s], 1e-5) * w[k] }\n}\n"
    "workload w for f { N = 256, K = 10, S = 4096 }\n"
)


def variants(text: str):
    module = load_text(text)
    op = module.ops[0]
    boundary = op.boundaries[0]
    return schedule_kernel(
        op, boundary, boundary.kernels[0], typical=typical_of(module.workloads_of(op.name))
    ).variants


def test_later_sweeps_take_what_the_first_one_loaded():
    kept = variants(NORM)[0]
    assert (kept.roles.kept, kept.roles.tile, kept.program.variant) == ("k", ("s",), "kept")
    assert not any(isinstance(s, Loop) for s in kept.program.body)
    first, *later = (s for s in kept.program.body if isinstance(s, Unroll))
    assert [s.tensor for s in first.body if isinstance(s, Fetch)] == ["x"]
    assert len(later) == 2
    for sweep in later:
        assert [s.kept for s in sweep.body if isinstance(s, Take)] == [first.kept[0][1]]
    # what only the last needs it loads itself
    assert [s.tensor for s in later[-1].body if isinstance(s, Fetch)] == ["w"]
    assert any(isinstance(s, Write) for s in later[-1].body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("K = 10", "K = 3"),  # one tile holds all
        ("K = 10", "K = 40"),  # more than registers hold
        ("S = 4096", "S = 512"),  # rows too short for all threads
        ("workload w for f { N = 256, K = 10, S = 4096 }\n", ""),
        ("layernorm[k, s](x[n, k, s], 1e-5)", "exp(x[n, k, s])"),  # nothing is swept
    ],
    ids=["few", "many", "short", "unknown", "map"],
)
def test_other_kernels_have_no_such_variant(old: str, new: str):
    assert old in NORM
    assert not any(v.roles.kept for v in variants(NORM.replace(old, new)))
