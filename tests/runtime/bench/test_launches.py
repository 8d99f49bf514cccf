"""Launches recorded from a generated function, and made again by hand."""

from __future__ import annotations

import math
import types

import pytest
import torch

from opspec.runtime import bench
from opspec.runtime.bench.inputs import make_set
from opspec.runtime.bench.launches import all_of, operator_of, record
from opspec.runtime.bench.model import cases
from tests.runtime.bench.fakes import driver

COMPILED = types.SimpleNamespace(n_regs=128, metadata=types.SimpleNamespace(shared=1024, num_warps=8))


class Kernel:
    """A kernel that writes down how it was launched, and does what it is told."""

    def __init__(self, log, work):
        self.log, self.work = log, work
        self.fn = types.SimpleNamespace(__name__="_rows")

    def __getitem__(self, grid):
        def launch(*args, **options):
            self.log.append((grid, args, options))
            self.work(*args)
            return COMPILED

        return launch


class FakeOperator:
    """What stands behind a generated ``scaled(x, eps, *, W, bool_)``."""

    parameters = ("Tensor x", "float eps", "int class_", "int W")

    def __init__(self, kernel, *, in_place=False):
        self.kernel, self.in_place = kernel, in_place

    def _tunings(self, dims, device):
        return {}

    def check(self, x, whole, width):
        assert (whole, width) == (1, 32)
        return (len(x),), ()

    def launch(self, call, dims, x, eps, whole, width, *outs):
        call.start(self.kernel, (3, 4), {"num_warps": 8}, x, *outs, eps, dims[0], BLOCK=width)


def generated(work, **options):
    """A function that an operator stands behind, and the log of its kernel."""
    log = []
    operator = FakeOperator(Kernel(log, work), **options)
    scope = {"_scaled__operator": operator, "torch": torch}
    exec("def scaled(x, eps, class_, *, W):\n    return None if W == 0 else x * 2 + eps", scope)
    return scope["scaled"], log


def declared(function):
    return driver(
        function=function,
        inputs=(
            bench.TensorInput("x", dtype="X", extents=lambda d: (d["M"], d["N"])),
            bench.ScalarInput("eps", 0.5),
            bench.ScalarInput("class", True),
        ),
        keywords=lambda d: {"W": d["N"]},
    )


def test_a_launch_is_recorded_with_its_arguments_and_repeated_by_hand():
    def work(x, y, eps, m):
        y.copy_(x * 2 + eps)

    function, log = generated(work)
    made = declared(function)
    inputs = make_set(made, cases(made, "small")[0], seed=0, device="cpu")
    started = record(made, inputs)
    assert [(s.kernel, s.programs, s.compiled) for s in started] == [("_rows", 12, COMPILED)]
    grid, args, options = log[0]
    assert (math.prod(grid), args[2], args[3], options) == (12, 0.5, 64, {"num_warps": 8, "BLOCK": 32})
    args[1].zero_()
    all_of(started)()
    assert len(log) == 2
    assert log[1][1][1].data_ptr() == args[1].data_ptr()
    assert torch.equal(args[1], args[0] * 2 + 0.5)


def test_what_a_call_changes_in_place_is_put_back():
    function, _ = generated(lambda x, *_: x.zero_())
    made = declared(function)
    made = bench.Driver(
        **{f: getattr(made, f) for f in made.__dataclass_fields__}
        | {"inputs": (bench.TensorInput("x", "X", made.inputs[0].extents, inout=True), *made.inputs[1:])}
    )
    inputs = make_set(made, cases(made, "small")[0], seed=0, device="cpu")
    before = inputs.arguments[0].clone()
    record(made, inputs)
    assert torch.equal(inputs.arguments[0], before)


def test_a_function_of_another_kind_has_no_launches():
    made = driver()
    inputs = make_set(made, cases(made, "small")[0], seed=0, device="cpu")
    assert operator_of(made.function) is None
    assert operator_of(torch.softmax) is None
    assert record(made, inputs) == ()


def test_a_missing_number_is_an_error():
    function, _ = generated(lambda *_: None)
    made = bench.Driver(**{f: getattr(declared(function), f) for f in made_fields()} | {"keywords": None})
    inputs = make_set(made, cases(made, "small")[0], seed=0, device="cpu")
    with pytest.raises((KeyError, TypeError)):
        record(made, inputs)


def made_fields():
    return bench.Driver.__dataclass_fields__
