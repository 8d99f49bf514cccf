"""Windows of a few taps: what a thread loads once for several places, and where a window is left as it is."""

from __future__ import annotations

import pytest

from opspec.schedule.tile import Fetch, Loop, Take, TileProgram, Unroll, Write, statements

CAUSAL = """op f[B, T, C, K](x: bf16[B, T, C], w: f32[K, C], b: f32[C]) -> y: bf16[B, T, C] {
  require K <= 8
  kernel k { y[n, t, c] = sum[r](w[r, c] * (x[n, t + r - K + 1, c] else 0)) + b[c] }
}
"""


def program(plan, text: str) -> TileProgram:
    return plan(text).variants[-1].program


def unrolled(found: TileProgram) -> dict[str, Unroll]:
    return {values: s for s in statements(found.body) if isinstance(s, Unroll) for _, values in s.kept}


def test_what_taps_share_is_loaded_before_the_rows(plan):
    found = program(plan, CAUSAL)
    assert [a.name for a in found.axes if a.rows] == ["t"]
    assert not any(isinstance(s, Loop) for s in statements(found.body))
    kept = unrolled(found)
    assert {values: str(s.count) for values, s in kept.items()} == {
        "w_taps": "r.count",
        "x_rows": "r.count + t.step - 1",
    }
    last = found.body[-1]
    assert isinstance(last, Unroll)
    assert (last.index, str(last.count), str(last.place[1])) == ("t.row", "t.step", "t.place + t.row")
    takes = {s.kept: str(s.at) for s in statements((last,)) if isinstance(s, Take)}
    assert takes == {"w_taps": "r", "x_rows": "r + t.row"}
    assert not any(isinstance(s, Fetch) for s in statements((last,)))
    assert any(isinstance(s, Write) for s in last.body)


def test_a_row_is_masked_by_the_tensor_and_not_by_its_place(plan):
    (row,) = (s for s in unrolled(program(plan, CAUSAL))["x_rows"].body if isinstance(s, Fetch))
    asked = {str(m.a.value) for m in row.masks}
    assert asked == {"c", "t.at + t.place - K + 1"}
    assert len(row.masks) == 3
    # where no `else` says so, rows behind the last place are outside all the same
    text = CAUSAL.replace("x: bf16[B, T, C]", "x: bf16[B, T + K, C]").replace(
        "(x[n, t + r - K + 1, c] else 0)", "x[n, t + r, c]"
    )
    (row,) = (s for s in unrolled(program(plan, text))["x_rows"].body if isinstance(s, Fetch))
    assert [(m.op, str(m.a.value), str(m.b.value)) for m in row.masks] == [
        ("lt", "c", "C"),
        ("lt", "t.at + t.place", "K + T"),
    ]
    assert row.other is not None


def test_places_and_taps_may_stand_apart(plan):
    text = CAUSAL.replace("x: bf16[B, T, C]", "x: bf16[B, 2 * T + 3 * K, C]").replace(
        "(x[n, t + r - K + 1, c] else 0)", "x[n, 2 * t + 3 * r, c]"
    )
    found = program(plan, text)
    assert str(unrolled(found)["x_rows"].count) == "3*r.count + 2*t.step - 4"
    takes = {s.kept: str(s.at) for s in statements(found.body) if isinstance(s, Take)}
    assert takes["x_rows"] == "3*r + 2*t.row"


def test_a_number_of_taps_that_the_text_says_is_written_out(plan):
    text = CAUSAL.replace(", K](", "](").replace("w: f32[K, C]", "w: f32[4, C]").replace("K", "4")
    text = text.replace("  require 4 <= 8\n", "")
    assert str(unrolled(program(plan, text))["x_rows"].count) == "t.step + 3"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  require K <= 8\n", ""),
        ("require K <= 8", "require K <= 9"),
        # what a tap adds depends on which one it is, or on the place
        ("w[r, c] * (x", "w[r, c] * r * (x"),
        ("sum[r](", "sum[r | r <= t]("),
        ("t + r - K + 1", "t - r"),
        ("t + r - K + 1", "(t + r) // 2"),
        # neighbours along memory are a thread's already
        ("x[n, t + r - K + 1, c]", "x[n, c, t + r - K + 1]"),
    ],
    ids=["unbounded", "many", "by tap", "by place", "backwards", "quotient", "along memory"],
)
def test_other_windows_stay_loops(plan, old: str, new: str):
    text = CAUSAL.replace(old, new)
    assert text != CAUSAL
    if "c, t" in new:
        text = text.replace("x: bf16[B, T, C]", "x: bf16[B, C, T]").replace("y[n, t, c]", "y[n, c, t]")
        text = text.replace("y: bf16[B, T, C]", "y: bf16[B, C, T]")
    found = program(plan, text)
    assert not any(isinstance(s, Unroll) for s in statements(found.body))
    assert any(isinstance(s, Loop) for s in statements(found.body))
