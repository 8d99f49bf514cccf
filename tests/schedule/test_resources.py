"""What a tile needs is known before it is compiled, and one that doesn't fit is not offered."""

from __future__ import annotations

import pytest

from opspec.schedule.resources import Limits, ProductTile, offered_tiles

SMALL, BIG = Limits(shared_memory=101376), Limits(shared_memory=232448)


def tile(stages: int) -> ProductTile:
    return ProductTile(rows=128, columns=256, depth=64, warps=8, stages=stages)


def test_the_bytes_of_a_pipelined_product():
    assert tile(4).shared_memory(16) == 196608
    assert tile(2).shared_memory(16) == 98304


def test_descriptors_stage_the_epilogue_and_need_barriers():
    plain, more = tile(2).shared_memory(16), tile(2).shared_memory(16, descriptors=True)
    assert more == plain + 128 * 256 * 2 + 3 * 8


def test_a_profile_drops_what_it_cannot_hold():
    assert not tile(4).fits(SMALL, 16)
    assert tile(2).fits(SMALL, 16)
    assert tile(4).fits(BIG, 16)
    assert tile(2).fits(BIG, 16)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize(
    "limits", [SMALL, BIG, Limits(shared_memory=65536)], ids=["101376", "232448", "65536"]
)
def test_every_offer_fits(limits: Limits, bits: int):
    offers = offered_tiles(limits, str(bits))
    assert offers
    for rows, columns, depth, warps, stages in offers:
        made = ProductTile(rows=rows, columns=columns, depth=depth, warps=warps, stages=stages)
        assert made.shared_memory(bits) <= limits.shared_memory
        assert made.accumulator_registers() < 255


def test_a_smaller_profile_offers_no_more():
    wide = {o[:3]: o[4] for o in offered_tiles(BIG, "16")}
    for o in offered_tiles(SMALL, "16"):
        assert o[4] <= wide[o[:3]]


def test_what_waits_for_the_end_of_a_sum_takes_registers():
    widest = offered_tiles(BIG, "16", descriptors=True)[0]
    assert widest[:2] == (128, 256)
    assert offered_tiles(BIG, "16", descriptors=True, columns=1)[0][:2] == (128, 128)


def test_an_epilogue_takes_registers():
    assert len(offered_tiles(BIG, "16", epilogue=1)) <= len(offered_tiles(BIG, "16"))
    assert not ProductTile(rows=256, columns=256, depth=64, warps=4, stages=2).fits(BIG, 16)
