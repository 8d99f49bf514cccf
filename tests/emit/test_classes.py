"""The tiles of rows whose length varies."""

from __future__ import annotations

from opspec.emit.choice import SMALL, Sizes
from opspec.emit.classes import classes, varying
from opspec.ir.integers import dim
from opspec.ir.program import Workload

N = dim("N")


def shapes(*lengths: int) -> list[dict[str, int]]:
    return [{"M": 8, "N": n} for n in lengths]


def found(*lengths: int) -> tuple[int, ...]:
    return classes(N, shapes(*lengths), frozenset({"N"}), Sizes())


def test_a_length_varies_where_one_workload_has_several():
    one = Workload(name="a", op="f", cases=((1.0, (("M", 8), ("N", 64))),))
    two = Workload(name="b", op="f", cases=((0.5, (("M", 8), ("N", 64))), (0.5, (("M", 8), ("N", 512)))))
    assert varying([one]) == frozenset()
    assert varying([one, two]) == {"N"}


def test_two_tiles_hold_what_the_workloads_have_and_waste_least():
    assert found(512, 700, 2048) == (1024, 2048)
    assert found(100, 120, 4096) == (128, 4096)
    assert found(512, 512) == (512,)
    assert found(16, 40000) == (64,)  # one streams anyhow
    assert found(40000, 50000) == ()
    assert classes(N, shapes(512, 2048), frozenset({"M"}), Sizes()) == ()
    assert classes(N, shapes(512, 2048), frozenset({"N"}), SMALL) == ()
