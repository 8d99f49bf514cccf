"""From stages to an end-to-end time, and what a variant makes of it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opspec.diagnostics import Failure
from tests.analysis.pipeline.composing import report

ms = Fraction(1, 1000)


def test_a_share_of_wall_time_made_twice_as_fast():
    r = report("pipeline p { stage a = 3 ms; wall 10 ms }\nvariant v of p { stage a = 1.5 ms }")
    v = r.variant("v")
    assert float(v.gain) == pytest.approx(1.17647, abs=5e-6)
    assert float(v.ceiling) == pytest.approx(1.42857, abs=5e-6)
    assert r.base.rest == 7 * ms


SPANS = (
    "pipeline p {{ stage a = 0 ms .. 4 ms; stage b = 3 ms .. 6 ms; stage c = 8 ms .. 9 ms; wall 10 ms }}\n{}"
)


def test_recorded_spans_are_not_added_up():
    r = report(SPANS.format(""))
    assert (r.base.busy, r.base.added, r.base.total) == (7 * ms, 8 * ms, 10 * ms)
    assert r.base.rest / r.base.total == Fraction(3, 10)
    assert r.base.shared == 1 * ms
    assert [p.exposed for p in r.base.parts] == [3 * ms, 2 * ms, 1 * ms]


def test_a_kernel_of_two_in_a_wall_of_ten():
    text = "pipeline p { stage a = 0 ms .. 2 ms; stage b = 3 ms .. 6 ms; wall 10 ms }\nvariant v of p { stage a = 1 ms }"
    v = report(text).variant("v")
    assert float(v.gain) == pytest.approx(1.11111, abs=5e-6)


def test_a_shorter_span_saves_no_more_than_was_exposed():
    v = report(SPANS.format("variant v of p { stage b = 1 ms }")).variant("v")
    assert v.saved == 2 * ms


def test_a_wall_that_is_too_short_is_flagged():
    r = report("pipeline p { stage a = 6 ms; stage b = 6 ms; wall 10 ms }")
    assert "more than the wall time" in r.flags[0].text
    assert r.base.total == 12 * ms


def test_stages_overlap_only_where_it_is_said():
    apart = report("pipeline p { stage a = 4 ms; stage b = 6 ms }")
    beside = report("pipeline p { stage a = 4 ms; stage b = 6 ms; overlap a, b }")
    assert (apart.base.total, beside.base.total) == (10 * ms, 6 * ms)
    assert [p.exposed for p in beside.base.parts] == [0, 2 * ms]
    assert beside.base.shared == 4 * ms


def test_a_gain_that_another_stage_hides_reaches_nothing():
    text = "pipeline p { stage a = 4 ms; stage b = 6 ms; overlap a, b }\nvariant v of p { stage a = 1 ms }"
    v = report(text).variant("v")
    assert (v.kernel, v.gain, v.saved) == (4, 1, 0)


def test_a_stage_that_was_hidden_becomes_the_bottleneck():
    text = "pipeline p { stage a = 4 ms; stage b = 6 ms; overlap a, b }\nvariant v of p { stage b = 2 ms }"
    r = report(text)
    v = r.variant("v")
    assert v.after.total == 4 * ms
    assert (r.base.largest.timed.name, v.after.largest.timed.name) == ("b", "a")


def test_added_and_grown_stages_are_in_the_waterfall():
    text = "pipeline p { stage a = 8 ms; stage b = 2 ms }\nvariant v of p { stage a = 2 ms; stage b = 3 ms; new stage c = 1 ms }"
    v = report(text).variant("v")
    assert [(s.what, s.delta) for s in v.steps] == [("a", -6 * ms), ("b", 1 * ms), ("c", 1 * ms)]
    assert [x.why for x in v.losses] == ["grew", "added by the variant"]


def test_everything_free_has_no_ceiling():
    v = report("pipeline p { stage a = 8 ms }\nvariant v of p { stage a = 2 ms }").variant("v")
    assert v.ceiling is None
    assert v.gain == v.kernel == 4


def test_a_stage_of_no_time():
    v = report("pipeline p { stage a = 8 ms; stage b = 1 ms }\nvariant v of p { stage a = 0 ms }").variant(
        "v"
    )
    assert (v.gain, v.kernel, v.changes[0].stage) == (9, None, None)


@pytest.mark.parametrize(
    "text",
    ["pipeline p { stage a = 0 ms }", "pipeline p { stage a = 8 ms }\nvariant v of p { stage a = 0 ms }"],
)
def test_a_whole_of_no_time_is_refused(text):
    with pytest.raises(Failure) as e:
        report(text)
    assert "takes no time at all" in e.value.diagnostics[0].message


times = st.integers(min_value=1, max_value=1000)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=6), st.booleans(), st.integers(0, 500))
def test_steps_losses_and_shares_add_up(pairs, overlap, rest):
    names = [f"s{k}" for k in range(len(pairs))]
    lines = [f"stage {n} = {a} us" for n, (a, _) in zip(names, pairs, strict=True)]
    both = overlap and len(names) > 2
    busy = sum(a for a, _ in pairs) - (min(pairs[0][0], pairs[1][0]) if both else 0)
    lines += ["overlap s0, s1"] if both else []
    lines += [f"wall {busy + rest} us"]
    new = [f"stage {n} = {b} us" for n, (_, b) in zip(names, pairs, strict=True)]
    r = report(f"pipeline p {{ {'; '.join(lines)} }}\nvariant v of p {{ {'; '.join(new)} }}")
    v = r.variant("v")
    assert sum(s.delta for s in v.steps) == -v.saved
    assert sum(p.share for p in r.base.parts) + (r.base.shared + r.base.rest) / r.base.total == 1
    if v.losses:
        assert sum(x.seconds for x in v.losses) == v.after.total - r.base.total / v.kernel
    assert v.ceiling is None or v.gain <= v.ceiling or any(c.stage < 1 for c in v.changes)
