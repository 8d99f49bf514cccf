from __future__ import annotations

import pytest

from opspec.frontend import load_text
from opspec.schedule.plan import Plan, schedule_kernel


def schedule(text: str, kernel: int = 0, op: int = 0, boundary: int = 0) -> Plan:
    module = load_text(text)
    chosen = module.ops[op]
    cases = [dict(dims) for w in module.workloads_of(chosen.name) for _, dims in w.cases]
    where = chosen.boundaries[boundary]
    return schedule_kernel(
        chosen,
        where,
        where.kernels[kernel],
        typical=lambda e: max((e.evaluate(c) for c in cases), default=None),
    )


@pytest.fixture
def plan():
    """``plan(text, kernel=0)``: a scheduled kernel block of a spec."""
    return schedule
