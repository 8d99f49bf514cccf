"""How long each stage takes: stated, from a result file, or the model's bound on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from opspec.analysis.pipeline.codes import NO_TIME, refuse
from opspec.analysis.pipeline.results import Measured, measured
from opspec.ir.composition import Provenance, Stage
from opspec.ir.program import Module, Op, Workload
from opspec.source import Span

if TYPE_CHECKING:
    from opspec.analysis.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The roof under an op: seconds without (``floor``) and with launches (``time``), and what binds.

    Over a distribution weighted means, and the worst shape.
    """

    floor: Fraction
    time: Fraction
    resource: str
    machine: str
    worst: Fraction | None = None
    worst_dims: str = ""
    bytes: Fraction = Fraction(0)
    flops: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A stage with its time: ``count`` runs of ``each`` seconds. ``bound``: where it runs an op and a
    machine is known. ``notes`` are what a reader must know about the number."""

    name: str
    count: Fraction
    each: Fraction
    provenance: Provenance
    source: str = ""
    start: Fraction | None = None
    implied: bool = False
    runs: str = ""
    op: str = ""
    workload: str = ""
    bound: Bound | None = None
    worst: Fraction | None = None
    worst_dims: str = ""
    notes: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def seconds(self) -> Fraction:
        """All runs."""
        return self.count * self.each


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where times may come from: a machine for all stages, and result files by op. ``folder``: that of the
    spec, for result files that it names."""

    module: Module
    folder: Path
    machine: str = ""
    results: Mapping[str, str] | None = None


def time_stage(stage: Stage, sources: Sources, default_machine: str) -> Timed:
    """The time of a stage.

    Raises: Failure if there is none, or a result file can't be used.
    """
    if not stage.op:
        assert stage.seconds is not None
        return Timed(
            span=stage.span,
            name=stage.name,
            count=stage.count,
            each=stage.seconds,
            provenance=stage.provenance,
            source=stage.source,
            start=stage.start,
            implied=stage.total is not None,
        )
    found = sources.module.runnable(stage.op, stage.workload)
    assert found is not None, "the front end has checked it"
    name = sources.machine or stage.machine or default_machine
    bound = op_bound(sources.module, *found, name, stage.boundary) if name else None
    each, provenance, source = stage.seconds, stage.provenance, stage.source
    worst, worst_dims = None, ""
    notes: tuple[str, ...] = ()
    result = _result(stage, sources, found[0]) if each is None else None
    if result is not None:
        each, provenance, source = result.seconds, "measured", result.path
        worst, worst_dims = result.worst, result.worst_dims
        own = sources.module.op(stage.op) is not None
        if own and result.digest and result.digest != sources.module.digest:
            notes = ("measured with another revision of the spec",)
    elif each is None:
        if bound is None:
            raise refuse(NO_TIME, f"stage `{stage.name}` has no time: no machine is named", stage.span)
        each, provenance, source = bound.time, "derived", f"a bound on {bound.machine}, no prediction"
        worst, worst_dims = bound.worst, bound.worst_dims
    return Timed(
        span=stage.span,
        name=stage.name,
        count=stage.count if stage.total is None else stage.total / each,
        each=each,
        provenance=provenance,
        source=source,
        start=stage.start,
        implied=stage.total is not None,
        runs=f"{stage.op} @ {stage.workload}" + (f" boundary {stage.boundary}" if stage.boundary else ""),
        op=stage.op,
        workload=stage.workload,
        bound=bound,
        worst=worst,
        worst_dims=worst_dims,
        notes=notes,
    )


def _result(stage: Stage, sources: Sources, op: Op) -> Measured | None:
    spec = op.span.source.name if op.span is not None else ""
    given = (sources.results or {}).get(stage.op)
    if given is not None:
        return measured(Path(given), given, stage.op, stage.workload, spec, stage.span)
    if stage.results:
        path = sources.folder / stage.results
        return measured(path, stage.results, stage.op, stage.workload, spec, stage.span)
    return None


def op_bound(module: Module, op: Op, workload: Workload, machine: str, boundary: str = "") -> Bound:
    """The model's time of an op at a workload: weighted mean and worst over its shapes.

    Raises: Failure if the machine or a count is missing.
    """
    from opspec.analysis.costs import cost
    from opspec.analysis.forms import evaluate
    from opspec.analysis.lengths import shape_numbers
    from opspec.analysis.machine import machine_of
    from opspec.analysis.query import query
    from opspec.ir.dtypes import choices

    found = machine_of(module, machine)
    dtypes = {p.name: choices(p)[0] for p in op.dtype_params} | dict(workload.dtypes)

    def form(text: str) -> object:
        return query(module, op, text, machine=found, boundary=boundary, dtypes=dtypes).form

    time, launches, size, work = form("time"), form("launches"), form("bytes"), form("flops.tensor")
    launch = Fraction(repr(found.launch)) * int(launches)  # type: ignore[call-overload]
    total = sum((Fraction(repr(w)) for w, _ in workload.cases), Fraction(0))
    means = [Fraction(0)] * 3
    slowest: tuple[Fraction, tuple[tuple[str, int], ...]] = (Fraction(0), ())
    costs = cost(op, {k: v.name for k, v in dtypes.items()})
    for weight, dims in workload.cases:
        env = shape_numbers(workload, dims, costs)
        values = []
        for f in (time, size, work):
            value = evaluate(f, env)
            if not value.is_number:
                open_ = ", ".join(sorted(str(s) for s in value.free_symbols))
                raise refuse(
                    NO_TIME,
                    f"the time of `{op.name}` at `{workload.name}` depends on {open_}",
                    workload.span,
                    'say what the lengths are: `len ~ [512, 2048]`, `len ~ {512: 0.3, 2048: 0.7}` or `len ~ "lengths.csv"`',
                )
            values.append(
                Fraction(int(value.p), int(value.q)) if value.is_Rational else Fraction(float(value))
            )
        share = Fraction(repr(weight)) / total
        means = [m + share * v for m, v in zip(means, values, strict=True)]
        slowest = max(slowest, (values[0], dims), key=lambda x: x[0])
    several = len(workload.cases) > 1
    resource = query(module, op, "bound", workload=workload, machine=found, boundary=boundary).word
    return Bound(
        floor=means[0] - launch,
        time=means[0],
        resource=resource,
        machine=_named(found, machine),
        worst=slowest[0] if several else None,
        worst_dims=", ".join(f"{k} = {v}" for k, v in slowest[1]) if several else "",
        bytes=means[1],
        flops=means[2],
    )


def _named(machine: Machine, asked: str) -> str:
    return machine.name or asked
