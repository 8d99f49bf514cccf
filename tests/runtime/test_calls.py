"""What a repeated call passes on to a compiled kernel, with a kernel made of a script; and on a GPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from opspec.runtime import calls
from opspec.runtime.calls import Call, Float, Replay
from opspec.runtime.launch import LaunchError, Result

OPTIONS = {"BLOCK": 64, "num_warps": 4}


class Compiled:
    """A compiled kernel that writes down how it is run."""

    function, packed_metadata = "handle", "metadata"

    def __init__(self):
        self.runs = []

    def run(self, *args):
        self.runs.append(args)


class Kernel:
    """A kernel that gives its compiled form when launched, as Triton does."""

    arg_names = ("x_ptr", "y_ptr", "a", "N", "BLOCK", "INDEX")

    def __init__(self, compiled):
        self.compiled, self.launches = compiled, []

    def __getitem__(self, grid):
        def launch(*args, **options):
            self.launches.append((grid, args, options))
            return self.compiled

        return launch


@pytest.fixture
def device(monkeypatch):
    """Triton's driver, with the CPU as its device."""
    state = SimpleNamespace(current=-1)
    active = SimpleNamespace(
        get_current_device=lambda: state.current, get_current_stream=lambda index: f"stream of {index}"
    )
    monkeypatch.setattr(calls, "driver", SimpleNamespace(active=active))
    return state


def first(kernel, x, y, *, workspace=False, a=2.0):
    """A first call, as a generated function makes it."""
    call = Call(x.device, [x, y])
    between = call.workspace((8,), torch.float32) if workspace else y
    call.start(kernel, 3, OPTIONS, x, between, Float(a, 0), 8, INDEX="i32")
    return call


RESULTS = (Result("y", (8,), torch.float32),)


def test_a_repeated_call_passes_pointers_floats_and_constants_in_order(device):
    compiled = Compiled()
    kernel = Kernel(compiled)
    x, y = torch.ones(8), torch.ones(8)
    replay = Replay(first(kernel, x, y), RESULTS, 1)
    assert kernel.launches == [((3, 1, 1), (x, y, 2.0, 8), {**OPTIONS, "INDEX": "i32"})]
    other = torch.ones(8)
    (made,) = replay((other,), [other.data_ptr()], (7.0,), None)
    assert compiled.runs == [
        (
            3,
            1,
            1,
            "stream of -1",
            "handle",
            "metadata",
            None,
            None,
            None,
            other.data_ptr(),
            made.data_ptr(),
            7.0,
            8,
            64,
            "i32",
        )
    ]
    assert len(kernel.launches) == 1


def test_given_results_are_written_and_returned(device):
    compiled = Compiled()
    replay = Replay(first(Kernel(compiled), torch.ones(8), torch.ones(8)), RESULTS, 1)
    x, out = torch.ones(8), torch.empty(8)
    assert replay((x,), [x.data_ptr(), out.data_ptr()], (1.0,), (out,))[0] is out
    assert compiled.runs[0][9:11] == (x.data_ptr(), out.data_ptr())


def test_each_call_has_a_workspace_of_its_own(device):
    compiled = Compiled()
    x, y = torch.ones(8), torch.ones(8)
    call = first(Kernel(compiled), x, y, workspace=True)
    replay = Replay(call, RESULTS, 1)
    replay((x,), [x.data_ptr()], (1.0,), None)
    pointer = compiled.runs[0][10]
    assert pointer not in (x.data_ptr(), y.data_ptr(), call.tensors[2].data_ptr())


def test_a_zeroed_workspace_is_zeroed_each_time():
    made = calls.shaped((3, 2), torch.int32, zeroed=True)
    assert made.make(torch.device("cpu")).tolist() == [[0, 0], [0, 0], [0, 0]]
    assert (made.strides, calls.shaped((), torch.int32).strides) == ((2, 1), ())


def test_listeners_get_the_launches_through_triton(device, monkeypatch):
    compiled = Compiled()
    kernel = Kernel(compiled)
    x = torch.ones(8)
    replay = Replay(first(kernel, x, torch.ones(8)), RESULTS, 1)
    monkeypatch.setattr(calls.KNOBS, "launch_enter_hook", lambda metadata: None)
    (y,) = replay((x,), [x.data_ptr()], (5.0,), None)
    grid, args, options = kernel.launches[-1]
    assert (grid, args[2:], options) == ((3, 1, 1), (5.0, 8), {**OPTIONS, "INDEX": "i32"})
    assert args[0] is x
    assert args[1] is y
    assert not compiled.runs


def test_a_descriptor_is_made_again_for_the_tensor_of_the_call(device):
    compiled = Compiled()
    kernel = Kernel(compiled)
    x, y = torch.ones(8), torch.ones(8)
    call = Call(x.device, [x, y])
    options = {"N": 8, "BLOCK": 4, "INDEX": "i32"}
    call.start(kernel, (2, 3), options, SimpleNamespace(base=x, block=4), y, 1)
    replay = Replay(call, RESULTS, 0)
    other = torch.ones(8)
    (result,) = replay((other,), [other.data_ptr()], (), None)
    run = compiled.runs[-1]
    assert run[:3] == (2, 3, 1)
    made, pointer, scalar = run[9:12]
    assert made.base is other
    assert made.block == 4
    assert (pointer, scalar) == (result.data_ptr(), 1)


def test_a_descriptor_of_units_is_one_of_the_tensor(device):
    from opspec.runtime.launch import Pairs, describe

    compiled = Compiled()
    x, y = torch.ones(4, 32, dtype=torch.int8), torch.ones(8)
    call = Call(x.device, [x, y])
    options = {"N": 8, "BLOCK": 4, "INDEX": "i32"}
    call.start(Kernel(compiled), 2, options, *describe((x, y), (Pairs((4, 16)), None)), 1)
    replay = Replay(call, RESULTS, 0)
    other = torch.zeros(4, 32, dtype=torch.int8)
    replay((other,), [other.data_ptr()], (), None)
    made = compiled.runs[-1][9]
    assert made.base.data_ptr() == other.data_ptr()
    assert made.base.dtype == torch.int16
    assert (made.shape, made.strides, made.block_shape) == ([4, 16], [16, 1], [4, 16])


def test_nothing_of_the_first_call_is_kept_alive(device):
    import gc
    import weakref

    x, y = torch.ones(8), torch.ones(8)
    kept = weakref.ref(x)
    call = Call(x.device, [x, y])
    kernel = Kernel(Compiled())
    options = {"N": 8, "BLOCK": 4, "INDEX": "i32"}
    call.start(kernel, 2, options, x, SimpleNamespace(base=x), y)
    replay = Replay(call, RESULTS, 0)
    kernel.launches.clear()
    del x, call
    gc.collect()
    assert kept() is None
    assert replay is not None


def test_an_empty_grid_launches_nothing_and_one_too_large_is_refused():
    kernel = Kernel(Compiled())
    call = Call(torch.device("cpu"), [])
    call.start(kernel, 0, {})
    call.start(kernel, (4, 0), {})
    assert not kernel.launches
    assert not call.launches
    with pytest.raises(LaunchError, match="programs"):
        call.start(kernel, 2**31, {})


def test_the_device_of_the_tensors_is_made_current(device, monkeypatch):
    compiled, entered = Compiled(), []

    class On:
        def __init__(self, wanted):
            self.wanted = wanted

        def __enter__(self):
            entered.append(self.wanted)

        def __exit__(self, *_):
            entered.append("back")

    monkeypatch.setattr(calls, "on", On)
    x = torch.ones(8)
    call = first(Kernel(compiled), x, torch.ones(8))
    entered.clear()
    call.device = torch.device("cuda", 1)
    replay = Replay(call, (), 1)
    device.current = 0
    replay((x,), [x.data_ptr(), x.data_ptr()], (1.0,), (x,))
    assert entered == [torch.device("cuda", 1), "back"]
    assert compiled.runs[0][3] == "stream of 1"
    device.current = 1
    replay((x,), [x.data_ptr(), x.data_ptr()], (1.0,), (x,))
    assert len(entered) == 2
