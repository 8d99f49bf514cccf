"""Targets by name: limits for the resource model, and what Triton is told to compile for."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.diagnostics.hints import nearest
from opspec.schedule.resources import Limits

UNKNOWN_TARGET = register(
    Code(
        code="OP625",
        title="unknown compilation target",
        why="`--target` names an architecture that kernels can be compiled for without a GPU.",
        example="opspec build specs/ --target sm_75",
        fix="Use one of sm_80, sm_89, sm_90, sm_100, gfx942.",
    )
)


@dataclass(frozen=True, slots=True)
class Target:
    """``backend`` and ``arch`` as Triton takes them; ``warp`` threads per warp."""

    name: str
    backend: str
    arch: int | str
    warp: int
    limits: Limits


TARGETS = {
    t.name: t
    for t in (
        Target("sm_80", "cuda", 80, 32, Limits(shared_memory=166912, multiprocessors=108)),
        Target("sm_89", "cuda", 89, 32, Limits(shared_memory=101376, multiprocessors=128)),
        Target("sm_90", "cuda", 90, 32, Limits(shared_memory=232448, multiprocessors=132)),
        Target("sm_100", "cuda", 100, 32, Limits(shared_memory=232448, multiprocessors=148)),
        Target("gfx942", "hip", "gfx942", 64, Limits(shared_memory=65536, multiprocessors=304)),
    )
}


def target(name: str) -> Target:
    """The target of that name; raises ``Failure`` that lists the known ones."""
    found = TARGETS.get(name)
    if found is None:
        message = f"there is no target `{name[:40]}`; known are {', '.join(TARGETS)}"
        raise Failure(
            Diagnostic(code=UNKNOWN_TARGET, message=message, span=None, help=nearest(name, TARGETS))
        )
    return found


def limits(name: str = "sm_90") -> Limits:
    """Limits that generated configurations are chosen under."""
    return target(name).limits
