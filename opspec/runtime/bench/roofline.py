"""Floor, prediction and ledger: what the closed form and the card say about a time.

All in SI units: seconds, bytes, operations. Costs are those of the spec before any rewrite, so vector and
special-function work may shrink on its way to the card: they predict, but only compulsory bytes and matrix
work give the limit under which nothing real lies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONTENTION = "unit contention, at most"
WAVE = "last wave, at most"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Datasheet peaks of one card: dense, per second. ``tensor`` and others are by operand type."""

    name: str
    title: str
    bandwidth: float
    tensor: Mapping[str, float]
    vector: float | None = None
    sfu: float | None = None
    launch: float | None = None
    launch_graph: float | None = None
    l2_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Seconds by resource, the floor (their maximum), the prediction (plus launches) and what binds it.

    ``limit`` is the part of the floor that no rewrite and no clock can beat: memory and matrix work.
    """

    terms: dict[str, float]
    floor: float
    limit: float
    launch: float
    predicted: float
    bound: str


def moved(cost: Mapping[str, float]) -> float:
    """Compulsory bytes: read and written together."""
    return cost.get("bytes", cost.get("bytes.read", 0.0) + cost.get("bytes.write", 0.0))


def roofline(cost: Mapping[str, float], machine: Machine, contraction: str) -> Roofline:
    """The roofline of ``cost`` on ``machine``; ``contraction`` is the operand type of the matrix work.

    f32 matrix work is IEEE and runs on the vector units. A unit whose peak the machine does not state has no
    term.
    """
    terms = {"memory": moved(cost) / machine.bandwidth}
    matrix, vector = cost.get("flops.tensor", 0.0), cost.get("flops.vector", 0.0)
    peak = machine.tensor.get(contraction)
    limit = terms["memory"]
    if matrix and peak is None and contraction == "f32" and machine.vector:
        limit = max(limit, matrix / machine.vector)
        vector, matrix = vector + matrix, 0.0
    if matrix and peak:
        terms["tensor"] = matrix / peak
        limit = max(limit, terms["tensor"])
    if vector and machine.vector:
        terms["vector"] = vector / machine.vector
    if cost.get("flops.sfu") and machine.sfu:
        terms["sfu"] = cost["flops.sfu"] / machine.sfu
    floor = max(terms.values())
    launch = cost.get("launches", 1) * (machine.launch or 0.0)
    bound = max({**terms, "launch": launch}.items(), key=lambda item: item[1])[0]
    return Roofline(
        terms=terms, floor=floor, limit=limit, launch=launch, predicted=floor + launch, bound=bound
    )


def stream_kind(cost: Mapping[str, float]) -> str:
    """The plain stream that moves bytes as this operator does: by its share of reads."""
    total = moved(cost)
    share = cost.get("bytes.read", total) / total if total else 1.0
    if share > 0.9:
        return "read"
    if share < 0.1:
        return "write"
    return "mix21" if share > 0.58 else "copy"


def calibrate(cost: Mapping[str, float], roofs: Mapping[str, Any], contraction: str) -> dict[str, float]:
    """Seconds by resource at the rates that this card reached in this run, at large sizes."""
    terms: dict[str, float] = {}
    bandwidth = roofs["bandwidth_bytes_per_s"].get(stream_kind(cost))
    if bandwidth:
        terms["memory"] = moved(cost) / bandwidth
    rate = roofs["matmul_flops_per_s"].get(contraction)
    if rate and cost.get("flops.tensor"):
        terms["tensor"] = cost["flops.tensor"] / rate
    exponentials = cost.get("flops.sfu", 0.0)  # all special functions run at the rate of the exponential
    if exponentials and roofs.get("exp_per_s"):
        terms["sfu"] = exponentials / roofs["exp_per_s"]
    return terms


def ledger(
    *,
    measured: float,
    floor: float | None,
    calibrated: Mapping[str, float],
    stream: float | None,
    cost: Mapping[str, float],
    roofs: Mapping[str, Any],
    in_graph: bool,
    unfilled: float = 0.0,
) -> list[dict[str, Any]]:
    """Where the time went, as rows that add up to ``measured``; the last is what nothing explains.

    ``stream`` is the time of a plain stream of the same kind and size, sampled beside the operator: what it
    takes beyond its large-size rate is launching and ramping up, which any one kernel of this size pays.
    Units that don't work at the same time as the one that binds cost at most their own time: of what is left,
    that much may be contention, and no more. ``unfilled``: by what share the work may take longer because the
    last wave of programs leaves multiprocessors idle.
    """
    rows: list[dict[str, Any]] = []

    def add(name: str, seconds: float) -> None:
        rows.append({"name": name, "seconds": seconds})

    large = max(calibrated.values(), default=floor or 0.0)
    if floor is not None:
        add("floor at datasheet peaks", floor)
        add("measured roof against datasheet", large - floor)
    else:
        add("floor at measured roofs", large)
    launches = roofs["launch_s"]
    memory = calibrated.get("memory", 0.0)
    bound_by_memory = bool(calibrated) and memory >= large
    ramp = launches["graph"] if in_graph else launches["event_floor"]
    if stream is not None and bound_by_memory:
        ramp = stream - memory
    add("launch and ramp", ramp)
    further = max(cost.get("launches", 1) - 1, 0)
    if further:
        add("further launches", further * launches["graph"])
    extra = cost.get("traffic", 0.0) - moved(cost)
    if extra > 0 and memory > 0:
        add("extra traffic", memory * extra / moved(cost))
    left = measured - sum(row["seconds"] for row in rows)
    if unfilled > 0:
        add(WAVE, max(min(large * unfilled, left), 0.0))
        left -= rows[-1]["seconds"]
    others = sum(calibrated.values()) - max(calibrated.values(), default=0.0)
    if others > 0 and left > 0:
        add(CONTENTION, min(others, left))
    add("unexplained", measured - sum(row["seconds"] for row in rows))
    return rows


def foretold(rows: Sequence[Mapping[str, Any]]) -> float:
    """The prediction in a ledger: what it says without knowing the measured time."""
    return sum(float(row["seconds"]) for row in rows if row["name"] not in (CONTENTION, WAVE, "unexplained"))


def rates(cost: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Achieved rates: compulsory bytes, all operations and matrix operations per second."""
    found = {"bytes_per_s": moved(cost) / seconds}
    for key, name in (("flops", "flops_per_s"), ("flops.tensor", "tensor_flops_per_s")):
        if cost.get(key):
            found[name] = cost[key] / seconds
    return found


def reject(seconds: float, limit: float | None) -> str:
    """Why the time of a cold run cannot be real; empty when it can. (A warm one may beat the memory term.)"""
    if limit is None or seconds >= limit:
        return ""
    return (
        f"{seconds:.4g} s is under the floor of {limit:.4g} s: the compulsory bytes or operations cannot be done "
        "in that time at datasheet peaks, so the run did not do the work, was not waited for, or the bound is wrong"
    )
