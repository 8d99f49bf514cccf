"""Loads that go ahead of the stores of their program."""

from __future__ import annotations

from opspec.schedule.tile import Fetch, TileProgram, Write, statements

COPIES = """op f[M, D, S](k: f32[M, D], v: f32[M, D], slot: i64[M], inout a: f32[S, D], inout b: f32[S, D]) {
  assume distinct(slot)
  kernel k { a[slot[m], d] = k[m, d]
    b[slot[m], d] = v[m, d] }
}
"""


def order(program: TileProgram) -> list[str]:
    """Tensors that are loaded, in small letters, and stored, in capitals."""
    body = statements(program.body)
    return [
        s.tensor.upper() if isinstance(s, Write) else s.tensor for s in body if isinstance(s, Fetch | Write)
    ]


def test_tiles_are_loaded_before_the_first_is_stored(plan):
    found = order(plan(COPIES).variants[-1].program)
    first = found.index("A")
    assert {"k", "v", "slot"} <= set(found[:first])
    assert found[first:] == ["A", "B"]


def test_a_load_goes_ahead_with_what_says_where_it_is(plan):
    text = """op f[N](x: f32[N], at: i64[N], y: f32[N]) -> s: f32[N], z: f32[N] {
  kernel k { s[i] = exp(x[i])
    z[i] = y[at[i]] }
}
"""
    found = order(plan(text).variants[-1].program)
    assert found.index("at") < found.index("y") < found.index("S")


def test_what_is_smaller_than_a_tile_stays_beside_its_use(plan):
    text = """op f[M, N](x: f32[M, N], y: f32[M, N], w: f32[N]) -> s: f32[M, N], z: f32[M, N] {
  kernel k { s[m, n] = x[m, n] + y[m, n]
    z[m, n] = s[m, n] * w[n] }
}
"""
    found = order(plan(text).variants[-1].program)
    assert found.index("S") < found.index("w")
