"""What a generated driver declares: inputs, workloads, costs, tolerance, peers.

Pure data; nothing here measures, and nothing imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Dims: TypeAlias = Mapping[str, int]
Dtypes: TypeAlias = Mapping[str, str]
MANTISSA = {"f32": 23, "f16": 10, "bf16": 7, "f8e4m3": 3, "f8e5m2": 2}
Kind = Literal["normal", "uniform", "positive", "index", "lengths", "offsets", "distinct", "codes", "bool"]


@dataclass(frozen=True, slots=True)
class TensorInput:
    """A tensor argument.

    ``dtype`` is a storage type (``bf16``, ``i64`` …) or a dtype parameter of the op (``X``). ``extents`` gives
    the shape from the dims. ``kind`` is the distribution: ``normal`` (times ``scale``, which may depend on the dims), ``uniform`` in [0, 1),
    ``positive`` (|normal| + 0.1), ``index`` in [0, below), ``lengths`` (as the workload states, else in
    [1, below]), ``offsets`` (rising from
    0 to below along the axis), ``distinct`` (no two equal, in [0, below)), ``codes`` (any bit pattern of a
    quantised type), ``bool``. ``i4`` is packed two to a byte along the last axis, low nibble first.
    """

    name: str
    dtype: str
    extents: Callable[[Dims], tuple[int, ...]]
    kind: Kind = "normal"
    below: Callable[[Dims], int] | None = None
    scale: float | Callable[[Dims], float] = 1.0
    inout: bool = False


@dataclass(frozen=True, slots=True)
class ScalarInput:
    """A number passed as it stands."""

    name: str
    value: float | int | bool


@dataclass(frozen=True, slots=True)
class Lengths:
    """Lengths that a workload states: (share, length) of a distribution, or ``listed`` one by one."""

    shares: tuple[tuple[float, int], ...] = ()
    listed: tuple[int, ...] = ()

    def values(self, count: int) -> tuple[int, ...]:
        """``count`` lengths in the stated shares, as near as whole numbers come; listed ones as they stand."""
        if self.listed:
            return tuple(self.listed[k % len(self.listed)] for k in range(count))
        total = sum(share for share, _ in self.shares)
        exact = [count * share / total for share, _ in self.shares]
        whole = [int(e) for e in exact]
        order = sorted(range(len(exact)), key=lambda k: whole[k] - exact[k])
        for k in order[: count - sum(whole)]:
            whole[k] += 1
        return tuple(
            length for many, (_, length) in zip(whole, self.shares, strict=True) for _ in range(many)
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """One shape. ``lengths`` of the tensors that hold some, where the spec states them."""

    dims: Dims
    dtypes: Dtypes = field(default_factory=dict)
    lengths: Mapping[str, Lengths] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Several shapes with weights (or request counts); reported one by one, as weighted mean and as worst."""

    shapes: tuple[tuple[float, Dims], ...]
    dtypes: Dtypes = field(default_factory=dict)
    lengths: Mapping[str, Lengths] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What an output may differ from float64: |out − ref| ≤ ulps·ulp(ref) + (terms·2⁻²⁴ + relative)·scale.

    ulp is the output type's unit in the last place at the reference value, ``terms`` the number of f32
    roundings along the longest chain of accumulation, ``relative`` what declared roundings of operands add
    (2⁻⁸ for ``using bf16``), and scale the largest finite magnitude in that output, which stands for the sum
    of absolute terms. Over all elements the relative norm error must also be what rounding explains, which
    grows with √terms. ``codes`` is for integer outputs: by how many codes they may differ, and then only in as
    many elements as such roundings carry over a tie.
    """

    ulps: float = 1.0
    terms: float = 0.0
    relative: float = 0.0
    codes: int = 0


@dataclass(frozen=True, slots=True)
class Peer:
    """Another implementation. ``factory(dims, dtypes)`` returns a callable like the reference, or raises.

    ``replays``: it runs in CUDA graphs of its own, which no other graph can hold.
    """

    name: str
    factory: Callable[[Dims, Dtypes], Callable[..., Any]]
    version: str = ""
    replays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Everything one generated ``bench.py`` says. The package docstring shows one.

    ``keywords`` is what the function, the reference and the peers take by name: dims that no shape tells.
    ``rows``: where each input and result that has it has an axis along which slices are independent, so that the
    reference can be taken part by part.
    """

    op: str
    spec: str
    spec_hash: str
    kernel_hash: str
    opspec_version: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    cost: Callable[[Dims, Dtypes], Mapping[str, float]]
    inputs: tuple[TensorInput | ScalarInput, ...]
    outputs: tuple[str, ...]
    keywords: Callable[[Dims], Mapping[str, Any]] | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    workloads: Mapping[str, Workload | Distribution]
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tolerance: Callable[[Dims, Dtypes], Tolerance] | None = None
    moments: Callable[[Dims, Mapping[str, tuple[int, ...]]], Mapping[str, float]] | None = None
    contraction: str = ""
    peers: tuple[Peer, ...] = ()
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fallback: str = ""

    @property
    def results(self) -> tuple[str, ...]:
        """Names of all that is checked: the outputs, then each tensor changed in place."""
        changed = (item.name for item in self.inputs if isinstance(item, TensorInput) and item.inout)
        return (*self.outputs, *changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One shape of one workload, fully decided."""

    workload: str
    weight: float | None
    dims: dict[str, int]
    dtypes: dict[str, str]
    lengths: Mapping[str, Lengths] = field(default_factory=dict)

    def dtype(self, name: str) -> str:
        """The storage type that ``name`` (a type or a dtype parameter) stands for."""
        return self.dtypes.get(name, name)


class UsageError(Exception):
    """The command line asks for something that the driver does not have. Exit status 2."""


def cases(
    driver: Driver, workload: str, settings: Dims | None = None, dtypes: Dtypes | None = None
) -> tuple[Case, ...]:
    """The shapes of ``workload`` with ``settings`` and ``dtypes`` put in place; UsageError for unknown names."""
    found = driver.workloads.get(workload)
    if found is None:
        raise UsageError(f"no workload `{workload}`; there are: {', '.join(driver.workloads)}")
    shapes: tuple[tuple[float | None, Dims], ...]
    match found:
        case Workload(dims=dims):
            shapes = ((None, dims),)
        case Distribution():
            shapes = found.shapes
    return tuple(
        Case(
            workload=workload,
            weight=weight,
            dims=merge("dim", dims, settings or {}),
            dtypes=choose(driver, {**found.dtypes, **(dtypes or {})}),
            lengths=found.lengths,
        )
        for weight, dims in shapes
    )


def lengths_of(item: TensorInput, case: Case) -> tuple[int, ...]:
    """The lengths that an input of that kind holds, before they are shuffled: those that the workload states,
    else from 1 to the bound in even steps."""
    count = math.prod(item.extents(case.dims))
    stated = case.lengths.get(item.name)
    if stated is not None:
        return stated.values(count)
    if item.below is None:
        raise ValueError(f"input `{item.name}` of kind {item.kind} needs `below`")
    top = item.below(case.dims)
    return tuple(1 + (top - 1) * k // max(count - 1, 1) if count > 1 else top for k in range(count))


def unit(dtype: str) -> float:
    """Half a unit in the last place of a float storage type, relative: what one rounding to it may lose."""
    return float(2.0 ** -(MANTISSA[dtype] + 1))


def cost_of(driver: Driver, case: Case) -> dict[str, float]:
    """The closed form at one shape, with the sums over lengths that its inputs will hold."""
    sums: Mapping[str, float] = {}
    if driver.moments is not None:
        held = [i for i in driver.inputs if isinstance(i, TensorInput) and i.kind == "lengths"]
        sums = driver.moments(case.dims, {item.name: lengths_of(item, case) for item in held})
    return dict(driver.cost({**case.dims, **sums}, case.dtypes))  # type: ignore[dict-item,unused-ignore]


def merge(what: str, base: Dims, settings: Dims) -> dict[str, int]:
    """``base`` with ``settings`` over it; names not in ``base`` are refused."""
    unknown = [name for name in settings if name not in base]
    if unknown:
        raise UsageError(f"no {what} `{unknown[0]}`; there are: {', '.join(base)}")
    return {**base, **settings}


def choose(driver: Driver, wanted: Dtypes) -> dict[str, str]:
    """The storage type of each dtype parameter: as wanted, else the first that the op allows."""
    for name, dtype in wanted.items():
        if name not in driver.dtypes:
            raise UsageError(f"no dtype parameter `{name}`; there are: {', '.join(driver.dtypes) or 'none'}")
        if dtype not in driver.dtypes[name]:
            raise UsageError(f"`{name}` may be {', '.join(driver.dtypes[name])}, not `{dtype}`")
    return {name: wanted.get(name, allowed[0]) for name, allowed in driver.dtypes.items()}
