"""When a review says no."""

from __future__ import annotations

from typing import Literal as L
from typing import get_args

from opspec.analysis.review.model import Review

Policy = L["never", "budget", "cost", "change"]
POLICIES: tuple[str, ...] = get_args(Policy)
_SLOWER = 1.0 + 1e-9


def status(review: Review, policy: str = "budget") -> int:
    """The exit status: 2 for a spec that is broken in the head, 1 for a no, else 0.

    ``never``: always 0. ``budget``: a budget that does not hold says no. ``cost``: so does an op that takes
    longer at a workload. ``change``: so does any op whose costs differ, that came or that went.
    """
    if policy == "never":
        return 0
    if any(s.faults_after for s in review.specs):
        return 2
    if review.budgets("broken", "still broken"):
        return 1
    if policy == "cost":
        slower = (
            n
            for _, o in review.ops("changed")
            for n in o.numbers
            if n.quantity == "time" and (n.ratio or 1.0) > _SLOWER
        )
        return 1 if any(slower) else 0
    return 1 if policy == "change" and review.ops("changed", "added", "removed") else 0
