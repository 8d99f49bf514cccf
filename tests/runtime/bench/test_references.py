"""The reference in parts where memory runs out."""

from __future__ import annotations

import pytest
import torch

from opspec.runtime.bench.inputs import make_set
from opspec.runtime.bench.model import cases
from opspec.runtime.bench.references import reference_of
from tests.runtime.bench.fakes import driver, scale


def limited(most, **changes):
    """A driver whose reference holds so many rows, and the rows that it was given."""
    seen = []

    def reference(x, eps):
        seen.append(len(x))
        if len(x) > most:
            raise torch.OutOfMemoryError("no room")
        return scale(x, eps)

    made = driver(reference=reference, **changes)
    return made, make_set(made, cases(made, "small")[0], seed=0, device="cpu"), seen


@pytest.mark.parametrize(("most", "rows"), [(64, [64]), (32, [64, 32, 32]), (20, [64, 32, 16, 16, 16, 16])])
def test_parts_get_smaller_until_they_fit(most, rows):
    made, inputs, seen = limited(most, rows={"x": 0, "y": 0})
    (found,) = reference_of(made, inputs)
    assert torch.equal(found, scale(inputs.arguments[0].double(), 0.5))
    assert seen == rows


def test_where_nothing_can_be_cut_the_error_gets_out():
    made, inputs, seen = limited(10)
    with pytest.raises(torch.OutOfMemoryError):
        reference_of(made, inputs)
    assert seen == [64]
    made, inputs, seen = limited(0, rows={"x": 0, "y": 0})
    with pytest.raises(torch.OutOfMemoryError):
        reference_of(made, inputs)
    assert seen == [64, 32, 16, 8, 4, 2, 1]
