"""How many programs a multiprocessor holds, and in how many waves they go."""

from __future__ import annotations

import types

import pytest

from opspec.runtime.bench.waves import Started, describe_launch, occupancy, unfilled
from tests.runtime.bench.fakes import PROPERTIES


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "held"),
    [
        (128, 0, 8, 2),  # 16 warps of 128 registers
        (255, 0, 8, 1),
        (32, 0, 4, 16),  # threads
        (16, 0, 1, 32),  # programs
        (64, 98304, 4, 2),  # shared memory, with what the driver takes
        (40, 231 * 1024, 4, 0),
        (168, 0, 4, 3),  # 12 warps: in each quarter 3 of 168 registers, given in multiples of 256 a warp
    ],
)
def test_what_a_multiprocessor_holds(registers, shared, warps, held):
    assert occupancy(registers, shared, warps, PROPERTIES) == held


def test_a_device_that_does_not_tell_has_no_occupancy():
    assert occupancy(32, 0, 4, types.SimpleNamespace(multi_processor_count=132)) is None
    assert occupancy(32, 0, 4, None) is None


def started(programs, compiled=None):
    return Started(kernel="k", programs=programs, compiled=compiled, go=lambda: None)


COMPILED = types.SimpleNamespace(n_regs=128, metadata=types.SimpleNamespace(shared=1024, num_warps=8))


def test_waves_are_programs_over_what_the_device_holds():
    found = describe_launch(started(396, COMPILED), PROPERTIES)
    assert found["per_multiprocessor"] == 2
    assert found["waves"] == pytest.approx(1.5)
    assert (found["registers"], found["shared_bytes"], found["warps"]) == (128, 1024, 8)


def test_without_a_compiled_kernel_only_the_grid_is_known():
    found = describe_launch(started(396), PROPERTIES)
    assert found["programs"] == 396
    assert found["waves"] is None


def test_the_emptiest_last_wave_counts():
    assert unfilled([]) == 0
    assert unfilled([{"waves": None}]) == 0
    assert unfilled([{"waves": 1.0}, {"waves": 1.5}, {"waves": 20.0}]) == pytest.approx(1 / 3)
    assert unfilled([{"waves": 0.25}]) == pytest.approx(3.0)
