"""What one kind of call launches, decided once and then only repeated.

The first calls with some shapes, strides, dtypes, devices and alignments run the generated checks and
choices. A ``Call`` writes down what they launched; a ``Replay`` does it again for other tensors of the
same kind: it makes the results, fills in pointers and scalars, and launches the compiled kernels. Nothing
here waits for the device or looks at data, so a call can be captured in a CUDA graph.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Self

import torch
import triton
from triton.runtime import driver

from opspec.runtime.launch import LaunchError, Result, can_overlap, on
from opspec.runtime.tuned import Tuning

KNOBS = triton.knobs.runtime
GRID = 2**31 - 1  # programs along the first axis of a grid


class Float(float):
    """A scalar argument that knows its place among a call's floats."""

    place: int

    def __new__(cls, value: float, place: int) -> Self:
        """The value at its place."""
        made = super().__new__(cls, value)
        made.place = place
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A tensor that a call makes: a contiguous result or workspace; ``zeroed`` before its first use."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    zeroed: bool = False

    def make(self, device: torch.device) -> torch.Tensor:
        """A new one; its content is whatever the memory holds, or zero."""
        made = torch.empty_strided(self.shape, self.strides, dtype=self.dtype, device=device)
        return made.zero_() if self.zeroed else made


def shaped(shape: Sequence[int], dtype: torch.dtype, *, zeroed: bool = False) -> Shaped:
    """A contiguous tensor of that shape."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return Shaped(shape=tuple(shape), strides=tuple(reversed(strides)), dtype=dtype, zeroed=zeroed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch of a call. ``places``: for each argument its place among the call's values, or None for
    one that stays the same; ``args``: what was passed the first time, constants of the kernel included."""

    kernel: Any
    compiled: Any
    grid: tuple[int, int, int]
    places: tuple[int | None, ...]
    args: tuple[Any, ...]
    options: dict[str, Any]

    def again(self, tensors: Sequence[torch.Tensor], floats: Sequence[float]) -> None:
        """The launch with other tensors and floats, through Triton's own entry."""
        values = (*tensors, *floats)
        args = [
            arg if place is None else moved(arg, values[place])
            for arg, place in zip(self.args, self.places, strict=True)
        ]
        self.kernel[self.grid](*args, **self.options)

    def descriptors(self) -> list[tuple[Any, int]]:
        """The descriptors among its arguments, and the place of the tensor of each."""
        pairs = zip(self.args, self.places, strict=True)
        return [(arg, place) for arg, place in pairs if place is not None and described(arg)]

    def compact(
        self, constants: list[Any], first: int, descriptors: int
    ) -> Callable[[Any, Sequence[Any]], None] | None:
        """The launch as one function of a stream and the call's values, or None where it must go ``again``.

        Values are pointers, floats, descriptors, then ``constants``, to which this adds its own; ``first`` is the
        place of the first of these, ``descriptors`` that of the launch's first descriptor. What stands in front
        of the last pointer, float or descriptor is picked from there.
        """
        run, function = getattr(self.compiled, "run", None), getattr(self.compiled, "function", None)
        if not callable(run) or function is None:
            return None
        last = max((i for i, place in enumerate(self.places) if place is not None), default=-1)
        picked = []
        for arg, place in zip(self.args[: last + 1], self.places[: last + 1], strict=True):
            if place is None:
                picked.append(first + len(constants))
                constants.append(arg)
            elif described(arg):
                picked.append(descriptors)
                descriptors += 1
            else:
                picked.append(place)
        names = self.kernel.arg_names[len(self.args) :]
        rest = (*self.args[last + 1 :], *(self.options[name] for name in names))
        (x, y, z), metadata = self.grid, self.compiled.packed_metadata
        pick = itemgetter(*picked) if len(picked) > 1 else lambda values: tuple(values[p] for p in picked)

        def go(stream: Any, values: Sequence[Any]) -> None:
            run(x, y, z, stream, function, metadata, None, None, None, *pick(values), *rest)

        return go


def described(arg: object) -> bool:
    """Whether an argument is a descriptor of a tensor, which holds its pointer."""
    return not isinstance(arg, torch.Tensor) and isinstance(getattr(arg, "base", None), torch.Tensor)


def moved(arg: Any, value: Any) -> Any:
    """``value`` where a kernel takes it as it is; a descriptor of it where it took one."""
    if not described(arg):
        return value
    other = copy.copy(arg)
    other.base = value if value.dtype == arg.base.dtype else value.view(arg.base.dtype)
    return other


@dataclass(slots=True)
class Call:
    """A call of a kind that is not known yet: launches, and if ``recording`` writes down what to repeat.

    ``tensors`` are told apart by identity, so no object may stand in it twice.
    """

    device: torch.device
    tensors: list[torch.Tensor]
    workspaces: list[Shaped] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    tunings: Mapping[str, Tuning] = field(default_factory=dict)
    recording: bool = True

    @property
    def overlaps(self) -> bool:
        """Whether programs of a launch can be there before the launch that they follow has ended."""
        return can_overlap(self.device)

    @property
    def following(self) -> dict[str, bool]:
        """What a kernel is started with that waits for the launch before it by itself."""
        return {"OVERLAP": True, "launch_pdl": True} if self.overlaps else {"OVERLAP": False}

    def tuned(self, kernel: str) -> Tuning:
        """What is known to be faster for a kernel block than its untuned choice; mostly nothing."""
        return self.tunings.get(kernel, {})

    def workspace(self, shape: Sequence[int], dtype: torch.dtype, *, zeroed: bool = False) -> torch.Tensor:
        """A tensor between kernels, from torch's allocator; each call has its own."""
        made = shaped(shape, dtype, zeroed=zeroed)
        self.workspaces.append(made)
        self.tensors.append(made.make(self.device))
        return self.tensors[-1]

    def start(
        self, kernel: Any, grid: int | tuple[int, ...], options: dict[str, Any], *args: Any, **constants: Any
    ) -> None:
        """Launch ``kernel`` on ``grid`` programs; a grid without programs launches nothing."""
        sizes = (grid,) if isinstance(grid, int) else tuple(grid)
        if 0 in sizes or min(sizes) < 0:
            return
        if sizes[0] > GRID:
            raise LaunchError(f"{sizes[0]} programs are more than one launch takes ({GRID})")
        x, y, z = (*sizes, 1, 1)[:3]
        if self.device.type == "cpu" and getattr(kernel, "is_gluon", bool)():  # Triton interprets none
            from opspec.runtime import warp_interpreter

            warp_interpreter.run(kernel, (x, y, z), args, {**options, **constants})
            return
        if not self.recording:
            with on(self.device):
                kernel[x, y, z](*args, **options, **constants)
            return
        given = {**options, **constants}
        known = [id(t) for t in self.tensors]
        places: list[int | None] = []
        for arg in args:
            base = getattr(arg, "source", arg.base) if described(arg) else arg
            if isinstance(arg, Float):
                places.append(
                    -1 - arg.place
                )  # floats stand behind all tensors, whose number is not known yet
            else:
                places.append(known.index(id(base)) if isinstance(base, torch.Tensor) else None)
        plain = tuple(float(a) if isinstance(a, Float) else a for a in args)
        with on(self.device):
            compiled = kernel[x, y, z](*plain, **given)
        self.launches.append(
            Launch(
                kernel=kernel,
                compiled=compiled,
                grid=(x, y, z),
                places=tuple(places),
                args=plain,
                options=given,
            )
        )


class Replay:
    """A kind of call, ready to be repeated."""

    __slots__ = ("compact", "constants", "descriptors", "device", "launches", "results", "workspaces")

    def __init__(self, call: Call, results: Sequence[Result], floats: int) -> None:
        many = len(call.tensors)
        self.device = call.device
        self.results = tuple(shaped(r.shape, r.dtype) for r in results)
        self.workspaces = tuple(call.workspaces)
        self.launches = tuple(forget(launch, many) for launch in call.launches)
        constants: list[Any] = []
        made = []
        self.descriptors = tuple(d for launch in self.launches for d in launch.descriptors())
        at, first = many + floats, many + floats + len(self.descriptors)
        for launch in self.launches:
            made.append(launch.compact(constants, first, at))
            at += len(launch.descriptors())
        self.compact = None if None in made else tuple(m for m in made if m is not None)
        self.constants = tuple(constants)

    def __call__(
        self,
        tensors: tuple[torch.Tensor, ...],
        pointers: list[int],
        floats: tuple[float, ...],
        out: tuple[torch.Tensor, ...] | None,
    ) -> tuple[torch.Tensor, ...]:
        """The results of a call on other tensors of the same kind."""
        device = self.device
        if out is None:
            out = tuple([made.make(device) for made in self.results])
            pointers += [t.data_ptr() for t in out]
        if not self.launches:
            return out
        spaces: list[torch.Tensor] = []
        if self.workspaces:
            spaces = [made.make(device) for made in self.workspaces]
            pointers += [t.data_ptr() for t in spaces]
        if self.compact is None or hooked():
            for launch in self.launches:
                launch.again((*tensors, *out, *spaces), floats)
            return out
        made: list[Any] = []
        if self.descriptors:
            every = (*tensors, *out, *spaces)
            made = [moved(arg, every[place]) for arg, place in self.descriptors]
        values = (*pointers, *floats, *made, *self.constants)
        active = driver.active
        index = active.get_current_device()
        if index == device.index or device.index is None:
            stream = active.get_current_stream(index)
            for go in self.compact:
                go(stream, values)
            return out
        with on(device):
            stream = active.get_current_stream(device.index)
            for go in self.compact:
                go(stream, values)
        return out


def forget(launch: Launch, many: int) -> Launch:
    """A launch with its floats behind ``many`` tensors, and without the tensors of the first call."""
    places = tuple(many - 1 - p if p is not None and p < 0 else p for p in launch.places)
    args = tuple(
        arg if place is None or described(arg) else None
        for arg, place in zip(launch.args, places, strict=True)
    )
    args = tuple(unbound(arg) if described(arg) else arg for arg in args)
    return Launch(
        kernel=launch.kernel,
        compiled=launch.compiled,
        grid=launch.grid,
        places=places,
        args=args,
        options=launch.options,
    )


def unbound(arg: Any) -> Any:
    """A descriptor that keeps no memory of the first call alive: its tensor is an empty one of its dtype."""
    other = copy.copy(arg)
    other.base = torch.empty(0, dtype=arg.base.dtype, device=arg.base.device)
    other.source = None
    return other


def hooked() -> bool:
    """Whether someone listens to launches (a profiler): then they take Triton's own entry, which tells them."""
    enter, leave = KNOBS.launch_enter_hook, KNOBS.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))
