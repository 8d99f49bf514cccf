"""What a name in a question stands for."""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from opspec.analysis.codes import NO_ANSWER, UNKNOWN_NAME
from opspec.analysis.costs.model import KINDS, UNITS, add
from opspec.analysis.machine import Machine
from opspec.analysis.query.context import Context, needs_machine, refuse, unknown
from opspec.analysis.query.parse import Name
from opspec.analysis.query.quantity import BYTE, FLOP, NONE, PLAIN, SECOND, Quantity
from opspec.analysis.roofline import (
    RESOURCES,
    attainable,
    block_times,
    contraction_dtype,
    exact,
    total_time,
)
from opspec.source import Span

_COSTS = (
    "flops", "flops.tensor", "flops.vector", "flops.sfu", "bytes", "bytes.read", "bytes.write", "ai", "ai.tensor",
    "ai.vector", "ai.sfu", "traffic", "time", *(f"time.{r}" for r in RESOURCES), "bound", "attainable", "ridge", "peak",
    "peak.vector", "peak.sfu", "bandwidth", "launches",
)  # fmt: skip


def known_names(context: Context) -> list[str]:
    """All names that a question about this op may use, without selectors."""
    units = sorted({f"flops.{t.unit}.{t.op}" for t in context.costs.flops if t.unit != "tensor"})
    return [*_COSTS, *units, *context.dims()]


def value_of(name: Name, context: Context) -> Quantity:
    """The closed form of a name. ``bound`` is not one: it has no form.

    Raises: Failure for unknown names, and where a machine or a schedule is missing.
    """
    dims = context.dims()
    head, _, rest = name.text.partition(".")
    is_cost = head in {c.split(".")[0] for c in _COSTS}
    if name.text in dims and not name.selector:
        if is_cost:
            raise refuse(
                UNKNOWN_NAME,
                f"`{name.text}` is a dim of the op and a cost: the question is ambiguous",
                name.span,
                f"write `dim({name.text})` for the dim, or `{name.text}.…` for a part of the cost",
            )
        return Quantity(dims[name.text], PLAIN)
    if head == "flops":
        return _flops(name, rest, context)
    if head == "bytes":
        return _bytes(name, rest, context)
    if head == "ai" and not name.selector:
        below = _bytes(Name("bytes", "", name.span), "", context).value
        above = _flops(Name("flops", "", name.span), rest, context).value
        if below == 0:
            raise refuse(NO_ANSWER, "the op moves no bytes, so it has no intensity", name.span)
        return Quantity(above / below, FLOP.times(BYTE, -1))
    if name.text in _COSTS and (not name.selector or head == "time"):
        return _with_machine(name, context)
    raise unknown(name.text, known_names(context), name.span)


def _flops(name: Name, rest: str, context: Context) -> Quantity:
    unit, _, op = rest.partition(".")
    terms = list(context.costs.flops)
    if name.selector:
        terms = [t for t in terms if t in _selected(name, context)[0]]
    if unit:
        chosen = [t for t in terms if t.unit == unit and op in ("", t.op)]
        full = f"flops.{rest}"
        if unit not in UNITS or (op and op not in KINDS.get(unit, ())):
            kinds = [f"flops.{unit}.{k}" for k in sorted(KINDS.get(unit, ()))]
            raise unknown(
                full, kinds or [k for k in known_names(context) if k.startswith("flops")], name.span
            )
        terms = chosen
    return Quantity(add(t.count for t in terms), FLOP)


def _bytes(name: Name, rest: str, context: Context) -> Quantity:
    if rest not in ("", "read", "write"):
        raise unknown(name.text, ["bytes", "bytes.read", "bytes.write"], name.span)
    terms = list(context.costs.byte_terms(context.boundary))
    if name.selector:
        terms = _selected(name, context)[1]
    terms = [t for t in terms if rest in ("", t.direction)]
    notes = tuple(f"`{t.tensor}` is an upper bound: {t.why}" for t in terms if t.bound == "upper")
    return Quantity(add(t.count for t in terms), BYTE, notes=tuple(dict.fromkeys(notes)))


def _selected(name: Name, context: Context) -> tuple[list, list]:  # type: ignore[type-arg]
    """FLOP and byte terms of a kernel, tensor or statement.

    Raises: Failure if there is none, or the name means two different things.
    """
    wanted = name.selector
    blocks = context.costs.boundaries[context.boundary]
    kernels = {b.name: b for b in blocks}
    tensors = [t.name for t in context.op.tensors]
    origins = list(dict.fromkeys(d.origin for d in context.op.defines))
    is_kernel, is_value = wanted in kernels, wanted in tensors or wanted in origins
    if is_kernel and is_value:
        raise refuse(
            UNKNOWN_NAME,
            f"`{wanted}` is a kernel and also a {'tensor' if wanted in tensors else 'statement'}",
            name.span,
            "rename the kernel",
        )
    if is_kernel:
        return list(kernels[wanted].flops), list(kernels[wanted].bytes)
    if not is_value:
        raise unknown(
            wanted,
            list(dict.fromkeys([*kernels, *tensors, *origins])),
            name.span,
            "kernel, tensor or statement",
        )
    flops = [t for t in context.costs.flops if t.origin == wanted]
    every = context.costs.byte_terms(context.boundary)
    named = [t for t in every if t.tensor == wanted]
    if wanted not in tensors and not named:
        named = [t for t in every if wanted in t.statements]
    if wanted in tensors and wanted not in origins and name.text.startswith("flops"):
        outputs = [d.origin for d in context.op.defines if d.output is not None and d.output.tensor == wanted]
        if not outputs:
            raise refuse(NO_ANSWER, f"`{wanted}` is an input: no operation computes it", name.span)
        flops = [t for t in context.costs.flops if t.origin in outputs]
    return flops, named


def _with_machine(name: Name, context: Context) -> Quantity:
    costs, machine, boundary = context.costs, context.machine, context.boundary
    if name.text == "launches":
        return Quantity(sympy.Integer(len(costs.boundaries[boundary])), NONE)
    if name.text == "traffic":
        if not context.traffic:
            raise refuse(
                NO_ANSWER,
                "`traffic` is not available without a schedule",
                name.span,
                "ask for `bytes`, or see the schedule's traffic with `opspec explain`",
            )
        return Quantity(add(context.traffic.values()), BYTE)
    if machine is None:
        raise needs_machine(name.text, name.span)
    if name.text.startswith("time"):
        return _time(name, context, machine)
    dtype = contraction_dtype(costs)
    match name.text:
        case "peak.vector" | "peak.sfu":
            rate = machine.vector if name.text == "peak.vector" else machine.sfu
            return Quantity(exact(rate), FLOP.times(SECOND, -1))
        case "attainable":
            notes = peaks_used(context, machine, name.span)
            return Quantity(attainable(costs, machine, boundary), FLOP.times(SECOND, -1), notes=notes)
        case "bandwidth":
            return Quantity(exact(machine.bandwidth), BYTE.times(SECOND, -1))
        case "peak" | "ridge":
            found = machine.peak(dtype) if dtype else None
            if name.text == "ridge" and dtype is None:
                help = "ask for `bound`, `attainable` or `peak / bandwidth`, which every op has"
                raise refuse(
                    NO_ANSWER, "the op has no contraction, so it has no matrix ridge", name.span, help
                )
            peak = exact(found[1] if found else machine.vector)
            notes = peaks_used(context, machine, name.span)
            if name.text == "peak":
                return Quantity(peak, FLOP.times(SECOND, -1), notes=notes)
            return Quantity(peak / exact(machine.bandwidth), FLOP.times(BYTE, -1), notes=notes)
    raise unknown(name.text, known_names(context), name.span)


def _time(name: Name, context: Context, machine: Machine) -> Quantity:
    """Seconds of all kernels, or of one in brackets; behind a dot those that a resource alone needs.

    Raises: Failure for brackets that name no kernel, and where no schedule gives the traffic of L2.
    """
    blocks = block_times(context.costs, machine, context.boundary, traffic=context.traffic)
    if name.selector:
        known = [b.name for b in blocks]
        if name.selector not in known:
            raise unknown(name.selector, known, name.span, "kernel")
        blocks = tuple(b for b in blocks if b.name == name.selector)
    resource = next((r for r in RESOURCES if name.text == f"time.{r}"), None)
    if resource == "l2" and not context.traffic:
        raise refuse(
            NO_ANSWER, "`time.l2` is not available without a schedule", name.span, "ask for `traffic`, too"
        )
    launch = "launch.plain" if resource in (None, "launch") else "clock.boost" if resource == "sfu" else ""
    what = "launch latency" if launch == "launch.plain" else "the clock"
    notes = (f"asserted in {machine.name}: {what}",) if launch and _asserted(machine.sources, launch) else ()
    if resource in (None, "tensor", "vector"):
        notes = (*notes, *peaks_used(context, machine, name.span))
    if resource is None:
        return Quantity(total_time(blocks), SECOND, notes=notes)
    return Quantity(add(b.seconds.get(resource, sympy.Integer(0)) for b in blocks), SECOND, notes=notes)


def peaks_used(context: Context, machine: Machine, span: Span) -> tuple[str, ...]:
    """Notes on products that run on another unit, or at the peak of another type, than their own.

    Raises: Failure if the machine has no peak for a type: only f32 runs on the vector unit instead.
    """
    notes: dict[str, None] = {}
    for dtype in dict.fromkeys(t.dtype for t in context.costs.flops if t.unit == "tensor"):
        found = machine.peak(dtype)
        if found is None and dtype != "f32":
            known = ", ".join(machine.tensor)
            raise refuse(
                NO_ANSWER,
                f"`{machine.name}` states no peak for products of {dtype}",
                span,
                f"its peaks are for {known}; add one, with its source, or ask about another machine",
            )
        if found is None:
            notes[f"vector unit: {machine.name} has no matrix unit for {dtype}"] = None
        elif found[0] != dtype:
            notes[f"{machine.name} has no peak for {dtype}: {found[0]}'s is taken"] = None
    return tuple(notes)


def _asserted(sources: object, key: str) -> bool:
    return isinstance(sources, dict) and sources.get(key, "").startswith("asserted")


def resources() -> Iterable[str]:
    """Words that ``bound`` may be compared with."""
    return RESOURCES
