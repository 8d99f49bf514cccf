"""What a launcher chooses: parts of a stream, tiles of a chain, descriptors and aligned copies."""

from __future__ import annotations

import pytest
import torch

from opspec.runtime import copying, launch
from opspec.runtime.calls import Call


@pytest.mark.parametrize(
    ("extent", "programs", "parts"), [(65536, 8, 32), (65536, 132, 1), (512, 8, 1), (8192, 100, 2), (1, 1, 1)]
)
def test_parts_fill_a_device_and_cover_the_stream(extent, programs, parts):
    found, span = launch.split(extent, 128, programs)
    assert found == parts
    if found > 1:
        assert span % 128 == 0
        assert (found - 1) * span < extent <= found * span


@pytest.mark.parametrize(
    ("extent", "programs", "warps", "parts"),
    [
        (128256, 64, 8, 8),
        (128256, 1, 8, 126),
        (128256, 8, 8, 16),
        (512, 64, 8, 2),
        (256, 1, 8, 1),
        (0, 4, 8, 1),
        (8192, 4, 4, 32),
    ],
)
def test_parts_whose_steps_are_products_end_together(extent, programs, warps, parts):
    found, span = launch.spread(extent, 256, programs, warps)
    assert found == parts
    if found > 1:
        assert span % 256 == 0
        assert (found - 1) * span < extent <= found * span


def test_a_chain_takes_what_registers_and_memory_hold():
    block, chunk, warps, stages = launch.pick_chain(4096, 128, 128, 256, 2, 232448, 128)
    assert (block, chunk) == (128, 64)
    assert launch.pick_chain(4096, 128, 128, 256, 2, 232448, 128, edged=True)[0] == 64
    assert launch.pick_chain(1, 128, 128, 256, 2, 232448, 256)[0] == 16
    block, chunk, warps, stages = launch.pick_chain(128, 512, 576, 576, 2, 232448, 32)
    assert 2 * (block * 576 + stages * chunk * 576) <= 232448
    assert block * (512 + chunk) / (32 * warps) <= launch.CHAIN_REGISTERS


def test_a_chain_in_f32_is_one_of_small_tiles_and_many_threads():
    assert launch.pick_chain(4096, 128, 128, 256, 4, 232448, 128) == launch.IN_F32[0]
    assert launch.pick_chain(16, 128, 128, 256, 4, 232448, 128) == launch.IN_F32[-1]
    assert launch.pick_chain(4096, 1024, 1024, 2048, 4, 232448, 128) == launch.IN_F32[-1]
    assert launch.pick_chain(4096, 128, 128, 256, 4, 232448, 128, tf32=True)[0] > launch.IN_F32[0][0]


def test_a_chain_without_a_stream_takes_rows_that_leave_room_for_two():
    assert launch.whole_rows(64, 320, 64, 20480, 2, 232448) == 64
    assert launch.whole_rows(256, 384, 64, 20480, 2, 232448) == 128
    assert launch.whole_rows(4096, 256, 256, 65536, 2, 232448) == 0
    assert launch.whole_rows(64, 320, 64, 20480, 4, 232448) == 0
    assert launch.whole_rows(5, 48, 16, 512, 4, 232448) == 16


def test_whole_columns_leave_room_for_their_rows():
    assert launch.pick_rows(8192, 512, 1, 32768, 2, 232448) == (64, 8, 3)
    assert launch.pick_rows(8192, 256, 256, 32768, 2, 232448) == (128, 8, 4)
    assert launch.pick_rows(1024, 256, 1, 32768, 2, 232448) == (16, 4, 4)
    assert launch.pick_rows(8192, 256, 1, 32768, 4, 232448) == (16, 4, 2)
    assert launch.pick_rows(5, 16, 1, 16384, 2, 232448) == (16, 4, 4)


def test_descriptors_need_unit_stride_and_alignment():
    x = torch.zeros(8, 32, dtype=torch.bfloat16)
    assert launch.describable(x)
    assert not launch.describable(x.T)
    assert not launch.describable(torch.zeros(8, 33, dtype=torch.bfloat16))
    assert not launch.describable(x[:, 1:])
    assert not launch.describable(x[:1].expand(8, 32))
    assert not launch.describable(torch.zeros(0, 32, dtype=torch.bfloat16))


def test_descriptors_need_offsets_of_31_bits_beside_them_too():
    x, large = torch.zeros(8, 32, dtype=torch.bfloat16), torch.empty(1 << 16, 1 << 15 | 8, device="meta")
    assert launch.describable(x, beside=(x,))
    assert not launch.describable(x, beside=(x, large))


def test_descriptors_stand_where_a_tile_is_given():
    x, y = torch.zeros(8, 32, dtype=torch.bfloat16), torch.zeros(3)
    found = launch.describe((x, y), ((8, 16), None))
    assert found[0].block_shape == [8, 16]
    assert found[1] is y


def test_copies_pay_for_large_products_of_rows_only():
    odd = torch.zeros(600, 601, dtype=torch.bfloat16)
    assert copying.copies_pay(600, 600, odd)
    assert not copying.copies_pay(600, 100, odd)
    assert not copying.copies_pay(600, 600, odd.T)
    assert not copying.copies_pay(600, 600, odd.float())


def test_an_aligned_operand_is_not_copied():
    x = torch.zeros(8, 32, dtype=torch.bfloat16)
    call = Call(torch.device("cpu"), [x])
    assert copying.aligned_rows(call, x) is x
    assert call.workspaces == []


def test_a_device_that_is_all_but_full_keeps_the_larger_tile():
    tiles = ((64, 16, 128, 4, 4), (16, 16, 128, 2, 4))
    assert launch.pick_tile(tiles, 8192, 16) == tiles[0]  # 128 programs of 132
    assert launch.pick_tile(tiles, 7168, 16) == tiles[1]  # 112


TILES = (
    (128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 64, 64, 4, 3), (64, 128, 64, 4, 4), (64, 64, 128, 4, 3),
    (64, 64, 64, 4, 4), (32, 64, 128, 4, 4), (16, 128, 64, 4, 4), (16, 64, 128, 4, 4), (16, 32, 128, 2, 4),
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "tile"),
    [
        (1, 14336, 4096, (16, 64)),
        (17, 14336, 4096, (64, 64)),
        (64, 14336, 4096, (64, 64)),
        (65, 14336, 4096, (128, 256)),
        (8192, 14336, 4096, (128, 256)),
        (64, 1024, 4096, (64, 64)),
        (100, 1024, 4096, (128, 128)),  # four tiles of the widest kind would leave parts too many
        (100, 4096, 4096, (128, 256)),
        (100, 4096, 2048, (128, 128)),  # a shorter sum has fewer parts
        (100, 4096, 1024, (64, 64)),  # and one shorter still none
        (8192, 64, 4096, (128, 64)),
        (8192, 16, 4096, (16, 32)),
    ],
)
def test_a_deep_sum_keeps_to_few_tiles(rows: int, columns: int, depth: int, tile: tuple[int, int]):
    assert launch.pick_tile(TILES, rows, max(columns, 32), depth=depth)[:2] == tile


@pytest.mark.parametrize("columns", [512, 1024, 4096, 8192, 14336, 28672])
def test_few_tiles_serve_every_number_of_rows(columns: int):
    found = {launch.pick_tile(TILES, rows, columns, depth=4096) for rows in range(1, 70000, 7)}
    assert len(found) <= (3 if columns >= 4096 else 4)
    assert len({launch.pick_tile(TILES, rows, columns) for rows in range(1, 70000, 7)}) > len(found)


def test_a_few_rows_take_the_tile_that_reads_no_more():
    assert launch.pick_tile(TILES, 20, 1408, 64)[0] == 64
    floats = ((64, 64, 16, 4, 2), (32, 32, 32, 4, 2), (16, 32, 32, 2, 2))
    assert launch.pick_tile(floats, 20, 1408, 64)[0] == 32  # multiplied by the vector unit, which is busy


@pytest.mark.parametrize(
    ("programs", "warps", "parts"),
    [(64, 8, 2), (64, 4, 4), (128, 8, 1), (128, 4, 2), (112, 8, 1), (80, 8, 3), (16, 8, 8), (1, 8, 16)],
)
def test_parts_of_wide_programs_fill_whole_rounds(programs: int, warps: int, parts: int):
    assert launch.split(4096, 64, programs, warps=warps)[0] == parts


@pytest.mark.parametrize(
    ("extent", "programs", "parts"),
    [(8192, 256, 4), (8192, 8, 16), (8192, 600, 1), (512, 256, 1), (0, 256, 1)],
)
def test_parts_of_streams_that_end_by_data_are_short(extent: int, programs: int, parts: int):
    found, span = launch.split(extent, 128, programs, ragged=True)
    assert found == parts
    if found > 1:
        assert span % 128 == 0
        assert (found - 1) * span < extent <= found * span


@pytest.mark.parametrize(("extent", "parts"), [(512, 4), (1, 4), (500, 3)])
def test_a_further_stream_has_as_many_parts(extent: int, parts: int):
    span = launch.span(extent, 4, parts)
    assert span % 16 == 0  # or a part would take another binary
    assert parts * span >= extent
    assert span < extent / parts + 16


def test_the_longest_of_several_streams_says_how_many_parts():
    assert launch.split_all(64, (8192, 64), (512, 8)) == (4, 2048)
    assert launch.split_all(64, (16, 64), (8192, 8)) == (4, 64)
    assert launch.split_all(64, (16, 64), (8, 8)) == (1, 0)


def test_rows_of_a_chain_fill_a_tile_where_its_stream_can_be_cut():
    def chosen(stream: int) -> int:
        return launch.pick_chain(128, 512, 576, 576, 2, 232448, 32, stream=stream)[0]

    assert chosen(8192) == 64
    assert chosen(0) < 64


def test_a_chain_that_can_be_cut_keeps_to_few_choices():
    def chosen(rows: int, others: int, stream: int = 4096, *, edged: bool = False) -> int:
        return launch.pick_chain(rows, 128, 128, 256, 2, 232448, others, edged, stream=stream)[0]

    for others in (8, 32, 128):
        rows = [chosen(n, others) for n in (1, 16, 17, 64)]
        assert rows == [16, 16, 64, 64]
        assert {chosen(n, others) for n in range(65, 20000, 13)} <= {64, 128}
        assert {chosen(n, others, edged=True) for n in range(17, 20000, 13)} == {64}
    assert chosen(100, 32) == 64  # of two rounds of tiles
    assert chosen(4096, 32) == 128
    assert chosen(24, 4, 64) == 16  # nothing to cut: as many programs as there are


def test_a_block_lies_in_one_group_where_the_group_allows_it():
    assert launch.dividing(256, 128) == 128
    assert launch.dividing(128, 384) == 128
    assert launch.dividing(128, 48) == 128  # a block of 16 would cost more than the groups


@pytest.mark.parametrize(
    ("columns", "first"), [(1408, 1), (1536, 0), (1400, 1), (2176, 0), (4096, 0), (128, 1)]
)
def test_a_tile_that_pads_a_sixteenth_more_gives_way(columns: int, first: int):
    tiles = ((128, 256, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 8, 4), (64, 64, 64, 4, 4))
    assert launch.less_padded(tiles, columns) == tiles[first:]


@pytest.mark.parametrize(
    ("rows", "extent", "warps", "programs"),
    [
        (32, 256, 8, 128),
        (32, 256, 4, 256),
        (1, 7, 8, 7),
        (300, 4, 8, 300),
        (300, 64, 8, 900),
        (132, 64, 8, 132),
        (32, 1, 8, 32),
    ],
)
def test_programs_that_walk_end_together(rows: int, extent: int, warps: int, programs: int):
    assert launch.walks(rows, extent, warps) == programs


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ((True, 4096, 128, 64, 16, 1), 2),
        ((True, 4096, 128, 64, 64, 1), 2),
        ((True, 4096, 128, 64, 128, 1), 1),  # more columns: the unit has enough to do
        ((True, 4096 + 128, 128, 64, 16, 1), 1),  # the last step would have no other
        ((True, 4096, 256, 64, 16, 1), 1),  # more than registers hold
        ((True, 4096, 512, 16, 1, 4), 1),  # each warp has a part already
        ((False, 4096, 128, 64, 16, 1), 1),
    ],
)
def test_two_steps_go_together_where_they_fit_and_end_together(given, steps):
    assert launch.turns(*given) == steps


def test_two_steps_have_so_many_stages_that_two_programs_share_a_multiprocessor():
    assert launch.turn_stages(1, 5, 64) == 5
    for columns in (16, 32, 64):
        stages = launch.turn_stages(2, 5, columns)
        # columns of 16 bits, rows of four in words, one stage of which is in registers
        assert 256 * (2 * columns * stages + 64 // 2 * (stages - 1)) <= 113 * 1024
