"""Which neighbouring axes a launch joins."""

import pytest
import torch

from opspec.runtime.adjacent import merge


def test_contiguous_axes_are_one():
    x, y = torch.empty(4, 3, 7, 9), torch.empty(4, 3, 7, 9)
    assert merge((4, 3, 7, 9), (x, 0), (y, 0)) == (1, 1, 1, 756)


def test_a_gap_in_any_tensor_keeps_its_axes_apart():
    x = torch.empty(4, 3, 7, 9)
    for other in (
        torch.empty(4, 3, 7, 10)[..., :9],
        torch.empty(4, 3, 9, 7).mT,
        torch.empty(4, 3, 1, 9).expand(4, 3, 7, 9),
        torch.empty(4, 3, 7, 18)[..., ::2].transpose(2, 3).contiguous().mT,
    ):
        assert merge((4, 3, 7, 9), (x, 0), (other, 0))[-1] == 9


def test_the_axes_on_either_side_of_a_gap_are_joined():
    x = torch.empty(4, 3, 8, 9)[:, :, :7]
    assert merge((4, 3, 7, 9), (x, 0)) == (1, 12, 1, 63)
    x = torch.empty(5, 4, 7, 9)[:, :3]
    assert merge((5, 3, 7, 9), (x, 0)) == (5, 1, 1, 189)


def test_a_group_may_begin_anywhere():
    x, w = torch.empty(4, 3, 7, 9), torch.empty(7, 9)
    assert merge((7, 9), (x, 2), (w, 0)) == (1, 63)


def test_an_axis_of_one_index_joins_whatever_its_stride():
    x = torch.empty(1, 5, 9).as_strided((1, 5, 9), (12345, 9, 1))
    assert merge((1, 5, 9), (x, 0)) == (1, 1, 45)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_no_elements_stay_none(shape: tuple[int, int]):
    a, b = merge(shape, (torch.empty(shape), 0))
    assert a * b == 0


@pytest.mark.parametrize("extent", [128, 256, 1024, 14336])
def test_rows_that_fill_their_tiles_stay_rows(extent: int):
    assert merge((6, extent), (torch.empty(6, extent, device="meta"), 0)) == (6, extent)


@pytest.mark.parametrize("extent", [1, 55, 56, 64, 200, 320, 1023, 1100, 4097])
def test_rows_that_leave_lanes_idle_or_are_odd_are_joined(extent: int):
    assert merge((6, extent), (torch.empty(6, extent, device="meta"), 0)) == (1, 6 * extent)


def test_folded_axes_are_joined_whatever_they_fill():
    x = torch.empty(2, 10, 4096, device="meta")
    assert merge((10, 4096), (x, 1), reduced=True) == (1, 40960)


def test_axes_beside_a_row_are_joined_where_they_are_short():
    short, long = torch.empty(6, 1, 64), torch.empty(6, 100, 64)
    assert merge((6, 1), (short, 0)) == (1, 6)
    assert merge((6, 100), (long, 0)) == (6, 100)
