"""The groupings into kernels between which an op's intensity lies: its own, the declared ones and the two extremes."""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.program import Boundary, Kernel, Op

EACH = "each statement alone"
ALL = "all in one kernel"


def with_extremes(op: Op) -> Op:
    """The op with two more boundaries for analysis, each only where it is not one of the others already.

    A value that crosses is stored as its annotation says, in f32 without one.
    """
    own = op.boundaries[0].kernels
    parts: dict[str, list[int]] = {}
    for k, define in enumerate(op.defines):
        parts.setdefault(define.origin, []).append(k)
    defines = op.defines
    each = tuple(
        replace(own[0], name=f"~{n}", body=tuple(defines[k] for k in at))
        for n, at in enumerate(parts.values())
    )
    one = (replace(own[0], name="~all", body=defines),)
    known = {_partition(b.kernels) for b in op.boundaries}
    added = []
    for name, kernels in ((EACH, each), (ALL, one)):
        if _partition(kernels) not in known:
            known.add(_partition(kernels))
            added.append(Boundary(name=name, kernels=kernels, analysis=True))
    return replace(op, boundaries=(*op.boundaries, *added)) if added else op


def _partition(kernels: tuple[Kernel, ...]) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(d.name for d in k.body) for k in kernels)
