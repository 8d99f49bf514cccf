"""What one call launches, recorded once, and the same launches made by hand.

By hand is through Triton's own entry with all arguments at hand and results allocated, as someone would write it
for one shape: what a generated function takes beyond that is the price of its checks and of its memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opspec.runtime.bench.check import as_tuple
from opspec.runtime.bench.inputs import InputSet
from opspec.runtime.bench.model import Driver, ScalarInput, TensorInput
from opspec.runtime.bench.waves import Started


def operator_of(function: Callable[..., Any]) -> Any:
    """The operator behind a generated function; None for any other."""
    return getattr(function, "__globals__", {}).get(f"_{getattr(function, '__name__', '')}__operator")


def record(driver: Driver, inputs: InputSet) -> tuple[Started, ...]:
    """The launches of one call, which are made while they are recorded; empty for a function of another kind.

    What the call changes in place is put back.
    """
    operator = operator_of(driver.function)
    if operator is None:
        return ()
    from opspec.runtime.calls import Call
    from opspec.runtime.library import apart

    tensors, floats, whole = arguments(driver, inputs, operator.parameters)
    made = inputs.call(driver.function)
    inputs.restore()
    outs = as_tuple(made) if driver.outputs else ()
    dims, _ = operator.check(*tensors, *whole)
    device = tensors[0].device if tensors else outs[0].device
    slots = apart((*tensors, *outs))
    tunings = operator._tunings(dims, device)  # noqa: SLF001 - launched as the function itself would
    call = Call(device, list(slots), tunings=tunings)
    operator.launch(call, dims, *slots[: len(tensors)], *floats, *whole, *slots[len(tensors) :])
    inputs.restore()
    return tuple(
        Started(
            kernel=str(getattr(getattr(launch.kernel, "fn", launch.kernel), "__name__", "kernel")),
            programs=math.prod(launch.grid),
            compiled=launch.compiled,
            go=by_hand(launch),
        )
        for launch in call.launches
    )


def arguments(
    driver: Driver, inputs: InputSet, parameters: Sequence[str]
) -> tuple[tuple[Any, ...], tuple[float, ...], tuple[int, ...]]:
    """The arguments of a call as its operator takes them: tensors, floats, whole numbers."""
    pairs = list(zip(driver.inputs, inputs.arguments, strict=True))
    tensors = tuple(value for item, value in pairs if isinstance(item, TensorInput))
    numbers = {item.name: value for item, value in pairs if isinstance(item, ScalarInput)} | inputs.named
    kinds = [p.split() for p in parameters]

    def named(kind: str) -> list[Any]:
        # a name that Python or the module has taken got an underscore
        return [numbers[n if n in numbers else n.removesuffix("_")] for k, n in kinds if k == kind]

    return tensors, tuple(float(v) for v in named("float")), tuple(int(v) for v in named("int"))


def by_hand(launch: Any) -> Callable[[], Any]:
    """The launch through Triton's own entry, with everything at hand."""
    kernel, args, options = launch.kernel[launch.grid], launch.args, launch.options
    return lambda: kernel(*args, **options)


def all_of(started: Sequence[Started]) -> Callable[[], None]:
    """All launches of a call, one after the other."""
    calls = [item.go for item in started]

    def go() -> None:
        for call in calls:
            call()

    return go
