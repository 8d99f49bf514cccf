"""Scans and places: how many sweeps they take, which way these run, and what stays whole."""

from __future__ import annotations

import pytest

from opspec.diagnostics import Failure
from opspec.schedule.tile import Locate, Loop, Scan, statements


def op(body: str, results: str = "y: f32[M, N]") -> str:
    return f"op f[M, N](x: f32[M, N]) -> {results} {{ require N >= 1; kernel k {{\n{body}\n}} }}\n"


def loops(variant) -> list[tuple[bool, int]]:
    return [(s.reverse, s.sweep) for s in statements(variant.program.body) if isinstance(s, Loop)]


def test_a_place_and_its_extreme_are_found_in_one_sweep(plan):
    made = plan(op("v[m] = max[n](x[m, n])\ni[m] = argmax[n](x[m, n])", "i: i64[M], v: f32[M]"))
    assert [loops(v) for v in made.variants] == [[], [(False, 1)]]
    folds = [n.monoid for n in made.graph.nodes if type(n).__name__ == "Fold"]
    assert sorted(folds) == ["argmax", "max"]
    # at every step, and once over the lanes
    found = [s for s in statements(made.variants[1].program.body) if isinstance(s, Locate)]
    assert [s.over for s in found] == [("n.step", "n.near"), ("n.lane",)]


def test_an_extreme_with_a_value_over_nothing_is_shared_too(plan):
    made = plan(
        op(
            "i[m] = argmin[n | n < m](x[m, n]) else -1\nv[m] = min[n | n < m](x[m, n]) else inf",
            "i: i64[M], v: f32[M]",
        )
    )
    assert sum(type(n).__name__ == "Fold" for n in made.graph.nodes) == 2


def test_scans_from_both_ends_take_a_sweep_each(plan):
    made = plan(
        op("y[m, n] = scan_sum[n](x[m, n])\nz[m, n] = scan_sum[-n](x[m, n])", "y: f32[M, N], z: f32[M, N]")
    )
    assert [loops(v) for v in made.variants] == [[], [(False, 1), (True, 2)]]


def test_scans_from_both_ends_that_meet_hold_the_axis_whole(plan):
    made = plan(op("y[m, n] = scan_sum[n](x[m, n]) + scan_sum[-n](x[m, n])"))
    assert [v.roles.tile for v in made.variants] == [("n",)]


def test_a_reduction_of_a_reverse_scan_shares_its_sweep(plan):
    made = plan(
        op(
            "s[m, n] = scan_sum[-n](x[m, n])\nt[m] = sum[n](abs(s[m, n]))\ny[m, n] = s[m, n] / t[m]",
            "y: f32[M, N], t: f32[M]",
        )
    )
    assert [loops(v) for v in made.variants] == [[], [(True, 1), (True, 2)]]


def test_a_place_is_found_upwards_beside_a_reverse_scan(plan):
    made = plan(op("y[m, n] = scan_sum[-n](x[m, n])\ni[m] = argmax[n](x[m, n])", "y: f32[M, N], i: i64[M]"))
    assert loops(made.variants[1]) == [(False, 1), (True, 2)]


def test_what_came_before_is_a_scan_without_its_point(plan):
    made = plan(op("s[m, n] = scan_sum[n](x[m, n])\ny[m, n] = s[m, n - 1] else 0"))
    for variant in made.variants:
        (scan,) = (s for s in statements(variant.program.body) if isinstance(s, Scan))
        assert scan.exclusive
        assert (scan.carry is not None) == bool(variant.roles.stream)


def test_a_scan_goes_through_chunks_of_one_dimension(plan):
    made = plan(op("y[m, n] = scan_max[n](x[m, n])"))
    assert made.variants[1].roles.laned is None


@pytest.mark.parametrize("read", ["s[m, n - 2] else 0", "s[m, n + 1] else 0"])
def test_other_points_of_a_scan_are_refused(plan, read: str):
    with pytest.raises(Failure, match="in the block that computes it"):
        plan(op(f"s[m, n] = scan_sum[n](x[m, n])\ny[m, n] = {read}"))


def test_no_law_takes_a_state_out_of_a_scan(plan):
    made = plan(
        op(
            "e[m, n] = exp(x[m, n] - max[n](x[m, n]))\ns[m, n] = scan_sum[n](e[m, n])\n"
            "t[m] = sum[n](s[m, n] * e[m, n])",
            "t: f32[M]",
        )
    )
    assert loops(made.variants[1]) == [(False, 1), (False, 2)]
