"""Launches that take parts of a block, join them and go through the data again: what their kernels say."""

from __future__ import annotations

import re

import pytest
from checking import compiled, compiler, interpreter
from test_parted import BEHIND, text_of

LENGTHS = (1, 3, 16, 63, 64, 65, 500, 512, 513, 600, 1000, 4096, 4100, 20000, 65536)


def kernel_of(name: str) -> str:
    return text_of(BEHIND).partition(f"def _f_k{name}(")[2].partition("\n@triton")[0]


def test_any_length_takes_three_binaries():
    assert compiler().ask({"text": BEHIND, "binaries": [{"S": n} for n in LENGTHS]}) == {"binaries": 3}


@pytest.mark.parametrize("points", [16, 512])
def test_a_small_shape_is_a_branch_of_the_join(points: int):
    assert compiler().ask({"text": BEHIND, "binaries": [{"S": points}, {"S": 4096}]}) == {"binaries": 3}


def test_a_join_that_was_tuned_otherwise_takes_no_small_shapes():
    text = text_of(BEHIND)
    assert re.search(
        r'if S <= BLOCK_S and .*launch\.chosen\(call\.tuned\("k_totals"\), "_f_k_totals"\)', text
    )


def test_the_branches_of_a_join_are_apart():
    own = kernel_of("_totals")
    heads = [line.strip() for line in own.splitlines() if re.match(r"    (if|elif|else)\b", line)]
    assert [h.split()[0].rstrip(":") for h in heads] == ["if", "elif", "else"]
    assert "S <= BLOCK_S_WHOLE" in heads[0]
    # it may be here before the launch in front of it has ended
    assert own.index("wait_for_earlier(OVERLAP)") < own.index("_f_k_whole_resident(")


def test_what_no_launch_writes_is_on_its_way_before_others_end():
    own = kernel_of("")
    wait = own.index("wait_for_earlier(OVERLAP)")
    assert own.index("tl.load(x_at") < wait < own.index("_sum_1_ptr +")
    assert "let_next_come(OVERLAP)" in kernel_of("_parts_resident")
    # what the parts have read last, L2 still holds, and nobody reads it again
    assert "tl.num_programs(0) - 1 - tl.program_id(0)" in own
    assert re.search(r'x = tl\.load\(x_at, .*eviction_policy="evict_first"\)', own)


def test_a_part_is_held_in_16_bits_and_masked_once():
    own = kernel_of("_parts_resident")
    assert own.count("widened(") == 2
    assert own.count("tl.where(") == 1  # a sum of what was loaded as 0 needs none
    assert "s[None, :] < 64" not in own
    (row,) = (
        r
        for r in compiled(BEHIND, {"N": 8, "G": 32, "C": 320, "S": 4096})["compiled"]
        if "_parts" in r["kernel"]
    )
    assert row["registers"] <= 96
    assert row["spills"] <= 32


def test_places_of_groups_are_found_by_one_division():
    assert "quotients_near(c_first, c, C // G)" in kernel_of("")
    assert interpreter().ask({"exact": "quotients_of_a_tile_are_exact", "module": "large_cases"}) == {
        "right": True
    }
