"""Loads of a program without loops: where they stand, what L2 does with them, and what is made of them again."""

from __future__ import annotations

import pytest

from opspec.schedule.tile import Collapse, Fetch, Let, Write

STEP = (
    "op f[N](inout p: f32[N], inout v: f32[N], g: bf16[N]) {\n"
    "  kernel k { v[i] = v[i] + g[i]; p[i] = p[i] - v[i] }\n}\n"
    "workload w for f { N = %d }\n"
)
NORM = (
    "op f[M, N](x: bf16[M, N], r: bf16[M, N], w: bf16[N]) -> h: bf16[M, N], y: bf16[M, N] {\n"
    "  kernel k { h[m, n] = x[m, n] + r[m, n]; y[m, n] = rmsnorm[n](h[m, n], 0) * w[n] }\n}\n"
    "workload w for f { M = %d, N = 4096 }\n"
)
SOFTMAX = (
    "dtype X in {bf16, f32}\n"
    "op f[M, N](x: X[M, N]) -> y: X[M, N] {\n"
    "  kernel k { y[m, n] = softmax[n](x[m, n]) }\n}\n"
    "workload w for f { M = 4096, N = 32768, X = bf16 }\n"
)


@pytest.fixture
def resident(plan):
    """The program of the first variant of a spec."""
    return lambda text: plan(text).variants[0].program


def hints(program) -> dict[str, str | None]:
    return {s.tensor: s.hint for s in program.body if isinstance(s, Fetch)}


def test_a_map_loads_all_before_it_stores(resident):
    program = resident(STEP % 1024)
    kinds = [type(s) for s in program.body if isinstance(s, Fetch | Write)]
    assert kinds == [Fetch] * 3 + [Write] * 2


def test_what_is_loaded_from_where_the_map_stores_is_not_moved_over_that_store(resident):
    text = "op f[N](x: f32[N], inout y: f32[N]) -> z: f32[N] { kernel k { z[i] = x[i]; y[i] = y[i] + 1 } }"
    body = [(type(s).__name__, s.tensor) for s in resident(text).body if isinstance(s, Fetch | Write)]
    assert body == [("Fetch", "x"), ("Fetch", "y"), ("Write", "z"), ("Write", "y")]


def test_a_row_that_is_folded_is_loaded_where_it_is_used(resident):
    body = [s for s in resident(NORM % 16).body if isinstance(s, Fetch | Collapse)]
    assert [s.tensor if isinstance(s, Fetch) else "fold" for s in body] == ["x", "r", "fold", "w"]


@pytest.mark.parametrize(("n", "hint"), [(1 << 20, None), (1 << 30, "evict_last")])
def test_loads_beside_several_stores_stay_where_a_launch_moves_much(resident, n: int, hint: str | None):
    assert set(hints(resident(STEP % n)).values()) == {hint}


def test_only_what_one_program_reads_has_a_hint(resident):
    assert hints(resident(NORM % 65536)) == {"x": "evict_last", "r": "evict_last", "w": None}


@pytest.mark.parametrize(
    ("y", "value", "hint"),
    [
        ("f32[M]", "y[m] = logsumexp[n](x[m, n])", "evict_first"),
        ("f32[M, N]", "y[m, n] = softmax[n](x[m, n])", None),
        ("f32[M]", "y[m] = logsumexp[n](x[m, n]) - x[m, at[m]]", None),  # looks at one later
        ("f32[M]", "y[m] = sum[n](x[m, n] * z[m, n])", None),  # two rows
    ],
    ids=["read", "stored", "looked at", "two"],
)
def test_a_row_of_which_nothing_is_written_may_go(resident, y: str, value: str, hint: str | None):
    text = f"op f[M, N](x: bf16[M, N], z: bf16[M, N], at: i64[M]) -> y: {y} {{ kernel k {{ {value} }} }}"
    if "z[" not in value:
        text = text.replace(" z: bf16[M, N],", "")
    if "at[" not in value:
        text = text.replace(", at: i64[M]", "")
    assert hints(resident(text))["x"] == hint


def test_a_long_row_stays_packed_and_its_exponentials_are_made_again(resident):
    program = resident(SOFTMAX)
    loads = [s for s in program.body if isinstance(s, Fetch)]
    assert [(s.packed, s.again) for s in loads] == [(True, None), (False, ("x", 1)), (False, ("x", 2))]
    assert [s.var.name for s in program.body if isinstance(s, Let)].count("e_2") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("N = 32768", "N = 4096"),  # registers hold it in f32
        ("{bf16, f32}", "{f32}"),
        ("softmax[n](x[m, n])", "log_softmax[n](x[m, n])"),  # a stream only loads it once more
        ("softmax[n](x[m, n])", "x[m, n] * rsqrt(sum[n](x[m, n] * x[m, n]))"),  # one fold
    ],
    ids=["short", "wide", "plain", "once"],
)
def test_other_rows_are_held_as_they_were(resident, old: str, new: str):
    assert old in SOFTMAX
    text = SOFTMAX.replace(old, new).replace("X = bf16", "X = f32" if "{f32}" in new else "X = bf16")
    assert not any(isinstance(s, Fetch) and (s.packed or s.again) for s in resident(text).body)
