"""Scans across memory whose steps a thread takes in registers, and scans that stay blocks."""

from __future__ import annotations

import pytest

from opspec.driver.traffic import program_traffic
from opspec.schedule.tile import Fetch, Loop, Scan, Take, TileProgram, Unroll, Write, statements

DECAYED = """op f[B, T, C](x: bf16[B, T, C], keep: bf16[B, T, C], z: f32[B, T, C]) -> s: f32[B, T, C] {
  kernel k { s[b, t, c] = scan_sum[t](exp(x[b, t, c]), keep[b, t, c]) * z[b, t, c] }
}
"""


def streamed(plan, text: str) -> TileProgram:
    return plan(text).variants[-1].program


def test_a_part_is_summed_and_then_walked_from_what_came_before(plan):
    found = streamed(plan, DECAYED)
    assert [a.name for a in found.axes if a.rows] == ["t"]
    (loop,) = (s for s in found.body if isinstance(s, Loop))
    first, second = (s for s in loop.body if isinstance(s, Unroll))
    (between,) = (s for s in loop.body if isinstance(s, Scan))
    order = [loop.body.index(s) for s in (first, between, second)]
    assert order == sorted(order)
    assert {str(s.count) for s in (first, second)} == {"t.step"}
    # all that a chunk reads is loaded one chunk ahead, as it is stored, and nothing is loaded twice
    assert loop.ahead is not None
    loaded = [s for s in statements((loop.ahead.loads,)) if isinstance(s, Fetch)]
    assert sorted(s.tensor for s in loaded) == ["keep", "x"]
    assert [s.tensor for s in statements(loop.body) if isinstance(s, Fetch)] == ["z"]
    taken = [s for s in statements((second,)) if isinstance(s, Take)]
    assert {s.kept for s in taken} <= {*loop.ahead.now, *(n for _, n in first.kept)}
    assert "keep" in {s.stored for s in taken}
    assert any(isinstance(s, Write) for s in second.body)
    # the short scan leaves its own part out, and moves the state of the chunk on
    assert (between.exclusive, between.along, between.carry is not None) == (True, "t", True)
    assert (between.value.name, between.decay.name) == ("scan_sum_part", "scan_sum_factor")


def test_without_decay_a_part_is_combined_as_the_scan_says(plan):
    text = "op f[T, C](x: f32[T, C]) -> y: f32[T, C] { kernel k { y[t, c] = scan_max[t](x[t, c]) } }\n"
    (between,) = (s for s in statements(streamed(plan, text).body) if isinstance(s, Scan))
    assert (between.monoid, between.decay) == ("max", None)


@pytest.mark.parametrize(
    "text",
    [
        "op f[T, C](x: f32[C, T]) -> y: f32[C, T] { kernel k { y[c, t] = scan_sum[t](x[c, t]) } }\n",
        "op f[T, C](x: f32[T, C]) -> y: f32[T, C] { kernel k { y[t, c] = scan_sum[-t](x[t, c]) } }\n",
        "op f[T, C](x: i32[T, C]) -> y: i32[T, C] { kernel k { y[t, c] = scan_sum[t](x[t, c]) } }\n",
        (
            "op f[T, C](x: f32[T, C]) -> y: f32[T, C], m: f32[C] {\n"
            "  kernel k { y[t, c] = scan_sum[t](x[t, c])\n    m[c] = max[t](x[t, c]) }\n}\n"
        ),
    ],
    ids=["along memory", "backwards", "integers", "beside a fold"],
)
def test_other_scans_are_of_whole_chunks(plan, text: str):
    found = streamed(plan, text)
    assert any(isinstance(s, Scan) for s in statements(found.body))
    assert not any(isinstance(s, Unroll) for s in statements(found.body))


def test_what_is_loaded_a_chunk_ahead_is_traffic_like_all_else(plan):
    found = plan(DECAYED)
    op = found.block.op
    form = program_traffic(op, op.boundaries[0], found.variants[-1].program, {})
    sizes = {"B": 2, "T": 256, "C": 64}
    # x and keep in bf16, z and the result in f32
    assert form.subs({s: sizes[str(s)] for s in form.free_symbols}) == 2 * 256 * 64 * (2 + 2 + 4 + 4)
