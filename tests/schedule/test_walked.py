"""Axes over which a program walks with the rows that it keeps."""

from __future__ import annotations

import pytest

from opspec.schedule.tile import Fetch, Loop, Write
from opspec.schedule.walked import around_walk, walked_axis

FORM = """op f[M, O, I, J](x: bf16[{x}], w: bf16[O, I, J], z: bf16[{z}], u: f32[O]) -> y: f32[M, O] {{
  kernel k {{
    t[m, o, j] = sum[i](x[{at}] * w[o, i, j])
    y[m, o] = sum[j](t[m, o, j] * z[{beside}]) + u[o]
  }}
}}
workload large for f {{ M = 4096, O = 256, I = 512, J = 256 }}
"""
OWN = {"x": "M, I", "z": "M, J", "at": "m, i", "beside": "m, j"}


def test_rows_that_meet_many_matrices_stay(plan):
    found = {v.roles.stream: walked_axis(v.program) for v in plan(FORM.format(**OWN)).variants}
    assert {stream: axis and axis.name for stream, axis in found.items()} == {("i",): "o", ("j", "i"): None}


def test_what_the_axis_does_not_change_stands_outside(plan):
    program = plan(FORM.format(**OWN)).variants[0].program
    before, inside = around_walk(program, "o")
    assert [s.tensor for s in before if isinstance(s, Fetch)] == ["z"]
    assert [s.tensor for s in inside if isinstance(s, Fetch | Write)] == ["u", "y"]
    assert any(isinstance(s, Loop) for s in inside)


@pytest.mark.parametrize(
    "changed",
    [
        {"x": "M, O, I", "at": "m, o, i"},
        {"z": "M, O, J", "beside": "m, o, j"},
        {"z": "O, J", "beside": "o, j"},  # no tile of rows is loaded outside of the stream
    ],
)
def test_rows_that_the_axis_changes_are_loaded_for_each(plan, changed: dict[str, str]):
    assert not any(walked_axis(v.program) for v in plan(FORM.format(**(OWN | changed))).variants)
