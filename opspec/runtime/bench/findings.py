"""From samples to statements: the headline, verdicts, the baseline, shares, ledger, flags.

Works on numbers and records alone; needs neither a GPU nor torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opspec.runtime.bench.environment import clocks_record
from opspec.runtime.bench.roofline import calibrate, foretold, ledger, moved, rates, reject, stream_kind
from opspec.runtime.bench.statistics import compare, drift, summarise
from opspec.runtime.bench.waves import unfilled

if TYPE_CHECKING:
    from opspec.runtime.bench.measure import Bench, Run
    from opspec.runtime.bench.model import Case, Driver

DRIFT = 0.05  # a change of rate over the run that is flagged


def timing(samples: Sequence[float]) -> dict[str, Any] | None:
    """Summary and raw samples, in seconds; None without samples."""
    if not samples:
        return None
    found = summarise(samples)
    return {
        "count": found.count,
        "median_s": found.median,
        "low_s": found.low,
        "high_s": found.high,
        "p10_s": found.p10,
        "p90_s": found.p90,
        "p99_s": found.p99,
        "min_s": found.min,
        "samples_s": list(samples),
    }


def conclude(bench: Bench, driver: Driver, run: Run, record: dict[str, Any], case: Case) -> None:
    """Fill the record's measurement from what the run has gathered."""
    measured = record["measured"]
    measured.pop("samples", None)
    floor = record["roofline"]["floor_s"] if record["roofline"] else None
    limit = record["roofline"]["limit_s"] if record["roofline"] else None
    method, headline = choose_method(run)
    rows = candidate_rows(run, headline, limit)
    ours = summarise(headline["ours"])
    why_not = reject(ours.median, limit)
    measured.update(
        status="rejected" if why_not else "ok",
        reason=why_not,
        method=method,
        candidates=rows,
        time_s=ours.median,
        interval_s=[ours.low, ours.high],
        stopped=run.cold.stopped or "interrupted",
        unreached=dict(run.cold.unreached),
    )
    measured.update(condition(run))
    if not why_not:
        measured.update(standing(rows, method), rates=rates(run.cost, ours.median))
        measured.update(against_roofs(bench, driver, run, case, headline, floor, in_graph=method == "graph"))
    device_time = summarise(run.cold.samples["ours"]).median
    if "ours" in run.walls:
        wall = summarise(run.walls["ours"].wall).median
        measured["wall_s"] = wall
        measured["launch_cost_s"] = wall - device_time
    if run.graph.get("ours"):
        measured["graph_s"] = summarise(run.graph["ours"]).median
    if run.launches:
        measured["launches"] = run.launches
    if run.host:
        call, by_hand = run.host["call"], run.host["by_hand"]
        measured["host"] = {"call_s": call, "by_hand_s": by_hand, "wrapper_s": call - by_hand}
    if run.sustained is not None and run.sustained.samples.get("ours"):
        everything = run.sustained.samples["ours"]
        measured["sustained"] = {
            "time_s": summarise(everything[len(everything) // 2 :]).median,
            "elapsed_s": run.sustained.elapsed,
            "samples_s": list(everything),
            "clocks": [clocks_record(look) for look in run.sustained.clocks],
        }
    if run.warm is not None and run.warm.samples.get("ours"):
        measured["warm"] = {"cache": "warm", **(timing(run.warm.samples["ours"]) or {})}


def choose_method(run: Run) -> tuple[str, Mapping[str, Sequence[float]]]:
    """The samples that speak: those from graphs for a short operator, where it could be captured."""
    if run.short and run.graph.get("ours"):
        return "graph", run.graph
    return "events", run.cold.samples


def candidate_rows(
    run: Run, headline: Mapping[str, Sequence[float]], limit: float | None
) -> list[dict[str, Any]]:
    """One row for each candidate and for each peer that came to nothing."""
    rows = [candidate_row(run, "ours", "ours")]
    if run.stream is not None:
        rows.append(candidate_row(run, run.stream.name, "stream"))
    for peer in run.peers:
        row = candidate_row(run, peer.name, "peer")
        row.update(
            version=peer.version,
            status="ok" if peer.status == "ready" else peer.status,
            reason=peer.reason,
            prepared=peer.prepared,
            first_call_s=peer.first_call_s,
            checks=[dataclasses.asdict(item) for item in peer.checks],
        )
        samples = headline.get(peer.name)
        if peer.status == "ready" and samples:
            why_not = reject(summarise(samples).median, limit)
            if why_not:
                row.update(status="rejected", reason=why_not)
        rows.append(row)
    return rows


def candidate_row(run: Run, name: str, role: str) -> dict[str, Any]:
    """All times of one candidate."""
    host = run.walls.get(name)
    return {
        "name": name,
        "role": role,
        "version": "",
        "status": "ok",
        "reason": "",
        "events": timing(run.cold.samples.get(name, ())),
        "graph": timing(run.graph.get(name, ())),
        "graph_refused": run.graph_refused.get(name, ""),
        "wall": timing(host.wall) if host else None,
        "enqueue": timing(host.enqueue) if host else None,
    }


def standing(rows: Sequence[Mapping[str, Any]], preferred: str) -> dict[str, Any]:
    """Verdicts against each peer that is right, and the baseline: the fastest of them, never the slowest.

    Two are compared by the preferred clock if both have it, else both by events: never one clock against the other.
    """
    ours = rows[0]
    verdicts: list[dict[str, Any]] = []
    for row in rows:
        if row["role"] != "peer" or row["status"] != "ok" or not row["events"]:
            continue
        method = preferred if ours[preferred] and row[preferred] else "events"
        own, theirs = (summarise(item[method]["samples_s"]) for item in (ours, row))
        verdict, ratio, low, high = compare(own, theirs)
        verdicts.append(
            {
                "peer": row["name"],
                "version": row["version"],
                "method": method,
                "time_s": theirs.median,
                "verdict": verdict,
                "ratio": ratio,
                "ratio_low": low,
                "ratio_high": high,
            }
        )
    best = max(verdicts, key=lambda item: item["ratio"], default=None)
    baseline = None if best is None else {**best, "speedup": 1 / best["ratio"]}
    return {"verdicts": verdicts, "baseline": baseline}


def condition(run: Run) -> dict[str, Any]:
    """Drift, throttling and clocks over the cold run."""
    samples = run.cold.samples["ours"]
    change = drift(samples)
    return {
        "drift": change,
        "drifted": change is not None and abs(change) > DRIFT,
        "rounds": len(samples),
        "throttled_rounds": sum(run.cold.throttled),
        "throttled": list(run.cold.throttled),
        "clocks": [clocks_record(look) for look in run.cold.clocks],
    }


def against_roofs(
    bench: Bench,
    driver: Driver,
    run: Run,
    case: Case,
    headline: Mapping[str, Sequence[float]],
    floor: float | None,
    *,
    in_graph: bool,
) -> dict[str, Any]:
    """The share of a plain stream of the same kind and size, the calibrated prediction and the ledger."""
    seconds = summarise(headline["ours"]).median
    found: dict[str, Any] = {"share": None, "calibrated": None, "ledger": None}
    stream = None
    if run.stream is not None and headline.get(run.stream.name):
        plain = summarise(headline[run.stream.name]).median
        rate = run.stream_bytes / plain
        stream = moved(run.cost) / rate
        found["share"] = {
            "kind": stream_kind(run.cost),
            "stream_bytes": run.stream_bytes,
            "stream_bytes_per_s": rate,
            "share": stream / seconds,
        }
    if bench.roofs is None:
        return found
    terms = calibrate(run.cost, bench.roofs, case.dtype(driver.contraction))
    rows = ledger(
        measured=seconds,
        floor=floor,
        calibrated=terms,
        stream=stream,
        cost=run.cost,
        roofs=bench.roofs,
        in_graph=in_graph,
        unfilled=unfilled(run.launches),
    )
    found["ledger"] = rows
    found["calibrated"] = {
        "terms_s": terms,
        "bound": max(terms.items(), key=lambda item: item[1])[0] if terms else None,
        "share": max(terms.values()) / seconds if terms else None,
        "predicted_s": foretold(rows),
    }
    return found


def distribution(name: str, records: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Weighted mean and worst shape of a workload that is a distribution; None unless all were measured."""
    own = [r for r in records if r["workload"] == name]
    times = [
        (r["weight"], r["measured"]["time_s"], r)
        for r in own
        if r["measured"] and r["measured"]["status"] == "ok"
    ]
    if not own or len(times) < len(own) or any(weight is None for weight, _, _ in times):
        return None
    total = sum(weight for weight, _, _ in times)

    def against_floor(entry: tuple[float, float, Mapping[str, Any]]) -> float:
        return float(entry[1] / entry[2]["roofline"]["floor_s"]) if entry[2]["roofline"] else entry[1]

    worst = max(times, key=against_floor)
    return {
        "workload": name,
        "mean_s": sum(weight * seconds for weight, seconds, _ in times) / total,
        "worst_dims": dict(worst[2]["dims"]),
        "worst_s": worst[1],
        "worst_by": "time over floor" if worst[2]["roofline"] else "time",
    }
