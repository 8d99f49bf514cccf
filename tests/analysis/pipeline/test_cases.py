"""The numbers of the two rollouts, exactly."""

from fractions import Fraction

import pytest

from tests.analysis.pipeline.composing import shipped

ms = Fraction(1, 1000)
DECODE, BLOCK = "attention/decode.op", "world_model/latent_block.op"


def part(breakdown, name):
    return next(p for p in breakdown.parts if p.timed.name == name)


def test_the_decode_step_before_and_after():
    r = shipped(DECODE)
    v = r.variant("fp8_kv")
    assert part(r.base, "attention").timed.seconds == Fraction("17.6") * ms
    assert (r.base.total, v.after.total) == (58 * ms, Fraction("50.96") * ms)
    assert v.saved == Fraction("7.04") * ms
    assert float(v.gain) == pytest.approx(1.1381, abs=5e-5)
    assert float(v.kernel) == pytest.approx(1.6667, abs=5e-5)
    assert float(v.ceiling) == pytest.approx(1.4356, abs=5e-5)
    assert float(part(r.base, "attention").share) == pytest.approx(0.3034, abs=5e-5)
    assert r.flags == ()


def test_the_decode_kernel_beside_its_roof():
    bound = part(shipped(DECODE).base, "attention").timed.bound
    assert (bound.machine, bound.resource) == ("effective", "memory")
    assert float(bound.floor / ms) == pytest.approx(0.42955, abs=5e-6)
    each = Fraction("0.55") * ms
    assert float(bound.bytes / each) == pytest.approx(1.9525e12, rel=3e-5)
    assert float(bound.flops / each) == pytest.approx(1.9523e12, rel=3e-5)
    assert float(bound.floor / each) == pytest.approx(0.781, abs=5e-4)


def test_half_the_time_and_the_roof_are_two_things():
    r = shipped(DECODE)
    half = r.variant("half").changes[0].after
    roof = r.variant("roof").changes[0].after
    assert (half.provenance, roof.provenance) == ("asserted", "derived")
    assert half.each == Fraction("0.275") * ms
    without_scales = Fraction(2**29, 25 * 10**11)
    assert float(without_scales / ms) == pytest.approx(0.2147, abs=5e-5)
    assert roof.bound.floor == Fraction(2**29 + 2**23 + 2**17, 25 * 10**11)
    measured = r.variant("fp8_kv").changes[0].after
    assert measured.each - half.each == Fraction("0.055") * ms


def test_the_rollout_before_and_after():
    r = shipped(BLOCK)
    v = r.variant("compressed")
    assert (r.base.total, v.after.total) == (38 * ms, 29 * ms)
    assert float(v.gain) == pytest.approx(1.3103, abs=5e-5)
    blocks = v.changes[0]
    assert float(blocks.stage) == pytest.approx(2.571, abs=5e-4)
    assert float(blocks.kernel) == pytest.approx(3.037, abs=5e-4)
    assert [float(s.total / ms) for s in v.steps] == pytest.approx([25.93, 27, 29], abs=5e-3)
    assert v.after.largest.timed.name == "blocks"
    assert part(v.after, "memory").exposed == v.after.largest.exposed


def test_the_block_gains_less_than_its_flops():
    v = shipped(BLOCK).variant("compressed")
    before, after = v.changes[0].before, v.changes[0].after
    assert float(before.bound.flops / after.bound.flops) == pytest.approx(3.879, abs=5e-4)
    rates = [float(t.bound.flops / t.each) / 1e12 for t in (before, after)]
    assert rates == pytest.approx([134.1, 105.0], abs=0.05)
    assert rates[1] / rates[0] - 1 == pytest.approx(-0.217, abs=5e-4)


def test_counts_that_disagree_are_flagged():
    flags = {f.where: f.text for f in shipped(BLOCK).flags}
    assert "4.39 runs" in flags["blocks"]
    both = [f.text for f in shipped(BLOCK).flags if f.where == "compressed: blocks"]
    assert any("5.19 runs, no whole number" in t for t in both)
    assert any("count × latency disagrees" in t and "4.39" in t and "5.19" in t for t in both)


def test_tokens_that_do_not_add_up_are_flagged():
    r = shipped(BLOCK)
    raw, compressed = r.ledgers
    assert (raw.stated, raw.extent, raw.flag) == (2048, 2048, None)
    assert compressed.extent == 768
    assert "contact 3 * 16 * 16 = 768 already" in compressed.flag.text
    assert "nothing is left for history and layout" in compressed.flag.text
