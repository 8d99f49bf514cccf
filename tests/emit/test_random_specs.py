"""Random specs: what is generated is right, and what can't be generated is refused in words."""

from __future__ import annotations

import pytest
from checking import ask, faults
from random_specs import spec

KEPT = (16, 23, 29, 50, 56, 81, 96)  # each once showed a fault


def check(seed: int, *, running: bool = False) -> None:
    text = spec(seed, running=running)
    answer = ask(text, 2, seed=seed, limit=200)
    assert not faults(answer), text + "\n".join(faults(answer))


@pytest.mark.parametrize("seed", [*KEPT, *range(1000, 1020)])
def test_a_random_spec_is_right_or_refused(seed: int):
    check(seed)


@pytest.mark.parametrize("seed", range(12))
def test_scans_and_places_are_right_or_refused(seed: int):
    check(seed, running=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_scans_and_places_are_right_or_refused(seed: int):
    check(seed, running=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2300))
def test_many_random_specs_are_right_or_refused(seed: int):
    check(seed)


def test_most_random_specs_are_built():
    built = [s for s in range(1000, 1040) if "verdicts" in ask(spec(s), 0)]
    assert len(built) > 30
