"""What would help, each with the milliseconds that it could save by the model.

Every suggestion is a change of the costs or of the machine's use that is priced by the same roofline; none is
made that would save less than a hundredth. A floor falls to the next roof and no further, so savings do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import sympy

from opspec.analysis.costs import OpCost
from opspec.analysis.machine import Machine
from opspec.analysis.report.boundaries import EACH
from opspec.analysis.report.model import Advice, Reading
from opspec.analysis.report.readings import Cases, read
from opspec.ir.dtypes import DType
from opspec.ir.program import Op

WORTH = 0.01
_NARROW = "f8e4m3"
_NARROWABLE = frozenset({"f32", "bf16", "f16"})


def advise(op: Op, cases: Cases, machine: Machine, own: Reading) -> tuple[Advice, ...]:
    """Suggestions that save at least a hundredth of the time, the largest first."""
    found = []
    for text, after in _candidates(op, cases, machine, own):
        if own.time - after.time >= WORTH * own.time:
            found.append(Advice(text=text, saves=own.time - after.time, bound=after.bound))
    return tuple(sorted(found, key=lambda a: -a.saves))


def _candidates(op: Op, cases: Cases, machine: Machine, own: Reading) -> Iterator[tuple[str, Reading]]:
    for b in op.boundaries[1:]:
        if b.name != EACH:
            kind = "for analysis: no kernel is made of it" if b.analysis else "declared in the spec"
            yield f"group the statements as in `{b.name}` ({kind})", read(cases, machine, b.name)
    costs = cases[0][1]
    storage = {
        t.tensor: t.dtype
        for t in costs.byte_terms()
        if isinstance(t.dtype, DType) and t.dtype.name in _NARROWABLE
    }
    for name, dtype in storage.items():
        yield (
            f"store `{name}` in 8 bits instead of {dtype.name}, scales not counted",
            read(cases, machine, change=_stored(name)),
        )
    if len(storage) > 1:
        yield (
            "store every tensor in 8 bits, scales not counted",
            read(cases, machine, change=_stored(*storage)),
        )
    kinds = {t.dtype for t in costs.flops if t.unit == "tensor"}
    if kinds & _NARROWABLE and _NARROW in machine.tensor:
        yield f"multiply in {_NARROW} on the matrix units", read(cases, machine, change=_multiplied(_NARROW))
    if "f32" in kinds and "tf32" in machine.tensor:
        yield "multiply f32 as tf32 on the matrix units", read(cases, machine, change=_multiplied("tf32"))
    if own.terms.get("sfu"):
        yield "compute half of the special functions by polynomials on the vector unit", _half_of_sfu(own)
    yield "launch from a CUDA graph", read(cases, machine, graph=True)


def _stored(*names: str) -> Callable[[OpCost], OpCost]:
    def change(costs: OpCost) -> OpCost:
        blocks = tuple(
            replace(
                b, bytes=tuple(replace(t, size=sympy.Integer(1)) if t.tensor in names else t for t in b.bytes)
            )
            for b in costs.boundaries[""]
        )
        return replace(costs, boundaries={**costs.boundaries, "": blocks})

    return change


def _multiplied(dtype: str) -> Callable[[OpCost], OpCost]:
    def change(costs: OpCost) -> OpCost:
        blocks = tuple(
            replace(b, flops=tuple(replace(t, dtype=dtype) if t.unit == "tensor" else t for t in b.flops))
            for b in costs.boundaries[""]
        )
        return replace(costs, boundaries={**costs.boundaries, "": blocks})

    return change


def _half_of_sfu(own: Reading) -> Reading:
    """At best the special functions fall to half; everything else stays where it is."""
    terms = {**own.terms, "sfu": own.terms["sfu"] / 2}
    work = {k: v for k, v in terms.items() if k != "launch"}
    if own.launches != 1 or own.bound != "sfu":
        return own
    return replace(
        own, terms=terms, time=max(work.values()) + terms["launch"], bound=max(work, key=lambda k: work[k])
    )
