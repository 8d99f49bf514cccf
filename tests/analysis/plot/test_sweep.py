"""What a plot shows: points, the places where something flips, levels; and what can't be plotted."""

from __future__ import annotations

import json

import pytest

from opspec.analysis.plot.sweep import read_range, samples, sweep
from opspec.diagnostics import Failure
from tests.analysis.conftest import module


def plotted(text, over, spec="decode", op=None, **more):
    from opspec.analysis.query.question import prepare

    m = module(spec)
    return sweep(prepare(m, m.op(op or spec), text, **more), text, read_range(over))


def refused(*arguments, **more):
    with pytest.raises(Failure) as caught:
        plotted(*arguments, **more)
    (found,) = caught.value.diagnostics
    assert found.help
    return found


AT = {"workload": "decode_8k"}


def test_points_are_the_answers_of_queries(ask):
    (curve,) = plotted("ai.tensor", "T=1..65536", **AT).curves
    assert curve.points[0] == (1, 0.5)
    assert curve.points[-1][0] == 65536
    for x, y in curve.points[::20]:
        assert y == pytest.approx(ask("decode", "ai.tensor", workload="decode_8k", settings={"T": x}).value)


def test_the_ridge_is_a_level_and_where_the_bound_flips_is_marked():
    plot = plotted("ai.tensor", "G=1..4096", machine="h200", **AT)
    assert [(v.name, v.value) for v in plot.levels] == [("ridge of h200", 206.125)]
    (mark,) = plot.marks
    assert (mark.at, mark.kind) == (212, "bound")
    assert mark.text == "bound by tensor instead of memory; ai.tensor reaches the ridge of h200"
    assert (plot.log_x, plot.log_y) == (True, True)


def test_a_machine_in_the_expression_counts_too():
    plot = plotted("time on h200", "T=1..65536", **AT)
    assert [(m.at, m.text) for m in plot.marks] == [(146, "bound by memory instead of launch")]
    below, above = (
        plotted("time on h200", f"T={t}..{t + 1}", **AT).curves[0].points[0][1] for t in (145, 146)
    )
    assert below < 8e-6 < above + 1e-7


def test_a_comparison_is_two_curves_and_where_they_meet():
    plot = plotted("flops.tensor[s] == flops.vector", "D=1..64", **AT)
    assert [c.name for c in plot.curves] == ["flops.tensor[s]", "flops.vector"]
    (mark,) = plot.marks
    assert mark.text == "flops.tensor[s] meets flops.vector"
    at = dict(plot.curves[0].points)[mark.at], dict(plot.curves[1].points)[mark.at]
    before = dict(plot.curves[0].points)[mark.at - 1], dict(plot.curves[1].points)[mark.at - 1]
    assert before[0] < before[1]
    assert at[0] >= at[1]


def test_extents_that_break_a_requirement_are_left_out():
    (curve,) = plotted("ai.tensor", "Hkv=1..32", **AT).curves
    assert [x for x, _ in curve.points] == [1, 2, 4, 8, 16, 32]
    assert "satisfies the op's `require`" in refused("ai", "Hkv=33..63", **AT).message


def test_a_mark_is_an_extent_that_the_op_takes():
    plot = plotted("ai.tensor", "Hq=32..16384", machine="h200", workload="decode_8k")
    assert [m.at for m in plot.marks] == [212 * 32]


def test_over_a_distribution(ask):
    (curve,) = plotted("time on h200", "B=1..64", workload="served").curves
    for x, y in curve.points[::9]:
        assert y == pytest.approx(ask("decode", "time on h200", workload="served", settings={"B": x}).value)
    (free,) = plotted("ai.tensor", "T=64..128", workload="served").curves
    assert free.points[0][1] == ask("decode", "ai.tensor", workload="served", settings={"T": 64}).value


def test_points_without_a_value_are_left_out():
    (curve,) = plotted("1 / (T - 2)", "T=1..5", **AT).curves
    assert [x for x, _ in curve.points] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "over", "code", "words"),
    [
        ("ai", "T", "OP725", "no range"), ("ai", "T=1,5", "OP725", "no range"), ("ai", "T=5..1", "OP725", "larger"),
        ("ai", "T=0..4", "OP725", "positive"), ("ai", "T=-3..4", "OP725", "no range"), ("ai", "T=1..1.5", "OP725", "no range"),
        ("ai", "T=1.." + "9" * 40, "OP725", "larger"), ("ai", "X=1..4", "OP722", "no dim `X`"),
        ("bound on h200", "T=1..4", "OP721", "word"), ("bound", "T=1..4", "OP721", "word"),
        ("sensitivity(ai)", "T=1..4", "OP721", "word"), ("flops == bytes", "T=1..4", "OP723", "compare"),
    ],
)  # fmt: skip
def test_what_is_no_plot(text, over, code, words):
    found = refused(text, over, **AT)
    assert found.code.code == code
    assert words in found.message


def test_open_dims_are_named():
    assert refused("bytes", "T=1..4").message == "the curve depends on dims that are open: B, D, Hkv, Hq"
    assert plotted("ai.tensor", "T=1..4", settings={"Hq": 8, "Hkv": 2}, machine="h200").marks == ()


def test_data_as_json():
    data = json.loads(json.dumps(plotted("ai.tensor", "T=1..4", machine="h200", **AT).to_json()))
    assert data["unit"] == "FLOP/B"
    assert data["curves"][0]["points"][0] == [1, 0.5]
    assert data["levels"] == [{"name": "ridge of h200", "value": 206.125}]


@pytest.mark.parametrize(("low", "high"), [(1, 65536), (1, 7), (100, 900), (3, 2**40), (5, 6)])
def test_samples_begin_and_end_where_they_should(low, high):
    found = samples(low, high)
    assert (found[0], found[-1]) == (low, high)
    assert found == sorted(set(found))
    assert len(found) <= 260
    assert {x for x in (2**k for k in range(41)) if low <= x <= high} <= set(found) or high < 20 * low
