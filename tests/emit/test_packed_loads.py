"""When two packed elements are loaded as the byte that holds them."""

from __future__ import annotations

import pytest

from opspec.emit.accesses import ends
from opspec.ir.dtypes import BOOL, I64
from opspec.ir.integers import dim, index
from opspec.ir.values import Compare, Extent

K = index("k")


@pytest.mark.parametrize(
    ("op", "a", "b", "whole"),
    [
        ("lt", K, dim("K"), True),
        ("le", K + 1, dim("K") - index("n"), True),
        ("lt", index("n"), dim("N"), True),
        ("le", dim("K"), K, False),  # a byte whose first element lies outside may hold one inside
        ("eq", K, dim("K"), False),
    ],
)
def test_a_byte_is_loaded_for_its_first_element_where_the_mask_only_ends(op, a, b, whole):
    mask = Compare(op=op, a=Extent(value=a, dtype=I64), b=Extent(value=b, dtype=I64), dtype=BOOL)
    assert ends(mask, "k") is whole
