"""Interleaving, cold before warm, stopping, budget, in-place inputs, graphs."""

from __future__ import annotations

import pytest

from opspec.runtime.bench.sampling import (
    Candidate,
    Sampling,
    graphs,
    hosts,
    interleave,
    next_batch,
    schedule,
    walls,
)
from opspec.runtime.bench.statistics import Policy
from tests.runtime.bench.fakes import CAPPED, LOOK, FakeDevice


def candidate(device, name, **kwargs):
    seen = []

    def call(index):
        device.running = name
        seen.append(index)

    made = Candidate(name=name, call=call, **kwargs)
    return made, seen


def test_each_round_runs_every_candidate_beginning_one_further():
    device = FakeDevice({})
    a, _ = candidate(device, "a")
    b, _ = candidate(device, "b")
    order, _ = schedule([a, b], 0, 3, 2)
    assert [c.name for c in order] == ["a", "b", "b", "a", "a", "b"]


def test_sets_of_inputs_are_used_in_rotation():
    device = FakeDevice({"a": [1e-5]})
    a, seen = candidate(device, "a")
    interleave(device, [a], Policy(least=6, seconds=0.0), Sampling(), sets=3)
    assert seen[:6] == [0, 1, 2, 0, 1, 2]


def test_sampling_stops_on_noise_and_keeps_every_raw_sample_in_order():
    device = FakeDevice({"a": [1e-3, 2e-3], "b": [4e-3]})
    pair = [candidate(device, name)[0] for name in "ab"]
    into = Sampling()
    interleave(device, pair, Policy(least=10, seconds=0.0, spread=1.0), into, sets=1)
    assert into.stopped == "noise"
    assert len(into.samples["a"]) == len(into.samples["b"]) >= 10
    assert into.samples["a"][:4] == [1e-3, 2e-3, 1e-3, 2e-3]


def test_the_budget_ends_it_and_names_what_was_not_reached():
    device = FakeDevice({"a": [1e-2, 3e-2]})
    a, _ = candidate(device, "a")
    into = Sampling()
    interleave(device, [a], Policy(least=10, seconds=0.5, spread=0.001, budget=0.4), into, sets=1)
    assert into.stopped == "budget"
    assert "s" in into.unreached["a"]


def test_in_place_inputs_are_restored_before_each_run_outside_the_span():
    device = FakeDevice({"a": [1e-3]})
    a, _ = candidate(device, "a", prepare=lambda index: None)
    interleave(device, [a], Policy(least=4, seconds=0.0), Sampling(), sets=1)
    assert device.log[:4] == ["prepare", ("cold", "a"), "prepare", ("cold", "a")]


def test_throttled_rounds_are_marked_and_nothing_is_discarded():
    device = FakeDevice({"a": [1e-3]}, clocks=[LOOK, CAPPED])
    a, _ = candidate(device, "a")
    into = Sampling()
    interleave(device, [a], Policy(least=40, seconds=0.0), into, sets=1)
    assert into.clocks == [LOOK, CAPPED]
    assert len(into.throttled) == len(into.samples["a"])
    assert not into.throttled[0]
    assert into.throttled[-1]


def test_every_batch_is_kept():
    device = FakeDevice({"a": [1e-3]})
    a, _ = candidate(device, "a")
    kept = []
    into = Sampling()
    interleave(
        device,
        [a],
        Policy(least=20, seconds=0.0),
        into,
        sets=1,
        keep=lambda: kept.append(len(into.samples["a"])),
    )
    assert kept == sorted(set(kept))
    assert kept[-1] == len(into.samples["a"])


def test_batches_grow_to_about_a_tenth_of_a_second():
    assert next_batch(1, 1e-4) == 2
    assert next_batch(32, 32e-2) == 10
    assert next_batch(64, 64e-9) == 64
    assert next_batch(8, 8.0) == 1


def test_what_a_graph_cannot_hold_says_why():
    device = FakeDevice({"a": [1e-5]}, capture=False)
    a, _ = candidate(device, "a")
    b, _ = candidate(device, "b", repeatable=False)
    c, _ = candidate(device, "c", replays=True)
    samples, refused = graphs(device, [a, b, c], count=3, sets=1, repeats=20)
    assert samples == {}
    assert "capturing" in refused["a"]
    assert "in place" in refused["b"]
    assert "graphs of its own" in refused["c"]


def test_host_times_are_of_short_batches_in_turn():
    device = FakeDevice({"host a": [2e-6], "host b": [1e-6]})
    log = []

    def call(name):
        device.running = name
        log.append(name)

    ways = {"a": lambda: call("a"), "b": lambda: call("b")}
    assert hosts(device, ways, seconds=2e-3) == {"a": 2e-6, "b": 1e-6}
    assert log[:4] == ["a", "a", "b", "b"]  # two runs of 2 ms in each of 2 x 33 batches are about 0.3 s


@pytest.mark.parametrize(("seconds", "most"), [(1e-6, 32 * 33), (1e-4, 32 * 33), (1e-3, 150), (0.1, 11)])
def test_host_times_of_long_runs_take_fewer_of_them(seconds, most):
    device = FakeDevice({"host a": [2e-6], "host b": [1e-6]})
    log = []

    def call(name):
        device.running = name
        log.append(name)

    hosts(device, {"a": lambda: call("a"), "b": lambda: call("b")}, seconds=seconds)
    assert 11 <= log.count("a") == log.count("b") <= most


def test_a_candidate_that_has_used_its_share_of_the_budget_sits_out():
    device = FakeDevice({"ours": [1e-3], "fast": [1e-3], "slow": [1.0]})
    ours, fast, slow = (candidate(device, name)[0] for name in ("ours", "fast", "slow"))
    into = Sampling()
    policy = Policy(least=10, seconds=0.5, spread=1.0, budget=6.0)
    interleave(device, [ours, fast, slow], policy, into, sets=1)
    assert len(into.samples["slow"]) == 4  # twice its share of 2 s, since it lacks samples
    assert len(into.samples["ours"]) == len(into.samples["fast"]) >= 10
    assert set(into.unreached) == {"slow"}
    assert "of 10 samples" in into.unreached["slow"]
    assert (into.stopped, into.elapsed < 6.0) == ("budget", True)
    patient = Policy(least=2, seconds=0.5, spread=1.0, budget=6.0)
    interleave(device, [ours, fast, slow], patient, again := Sampling(), sets=1)
    assert len(again.samples["slow"]) == 2


def test_the_first_candidate_never_sits_out():
    device = FakeDevice({"ours": [1.0], "fast": [1e-3]})
    pair = [candidate(device, name)[0] for name in ("ours", "fast")]
    into = Sampling()
    interleave(device, pair, Policy(least=3, seconds=0.0, spread=1.0, budget=4.0), into, sets=1)
    assert len(into.samples["ours"]) >= 3
    assert into.stopped == "noise"


def test_samples_are_written_every_few_seconds_and_at_the_end():
    device = FakeDevice({"a": [1e-3]})
    a, _ = candidate(device, "a")
    kept = []
    policy = Policy(least=10, seconds=5.0, spread=1.0)
    interleave(device, [a], policy, Sampling(), sets=1, keep=lambda: kept.append(device.elapsed))
    assert len(kept) == 3
    assert kept[-1] == device.elapsed


def test_a_warm_up_waits_for_no_look_at_the_card():
    device = FakeDevice({"a": [1e-3]})
    a, _ = candidate(device, "a")
    waited = []
    device.clocks = lambda *, wait=False: waited.append(wait)
    policy = Policy(least=2, seconds=0.0, budget=0.0)
    interleave(device, [a], policy, Sampling(), sets=1, wait=False)
    assert not any(waited)
    interleave(device, [a], policy, Sampling(), sets=1)
    assert any(waited)


def test_two_host_clocks_per_call():
    device = FakeDevice({"a": [1e-5]})
    a, _ = candidate(device, "a")
    found = walls(device, a, count=3, sets=1)
    assert found.enqueue == [5e-6] * 3
    assert found.wall == pytest.approx([3e-5] * 3)
