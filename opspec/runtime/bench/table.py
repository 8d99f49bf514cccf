"""The table that a person reads: plain text; on a terminal that has ``rich``, the same text in colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opspec.runtime.bench.units import percent, scaled, seconds, significant


@dataclass(frozen=True, slots=True)
class Block:
    """A titled table. ``right`` tells which columns hold numbers; ``notes`` follow below."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """All tables of a document, in the order in which they are read."""
    found = [heading(document)]
    if document["roofs"]:
        found.append(roof_block(document["roofs"]))
    for record in document["results"]:
        found.extend(shape_blocks(record))
    if document["distributions"]:
        found.append(distribution_block(document["distributions"]))
    return found


def heading(document: Mapping[str, Any]) -> Block:
    """What was run, on what."""
    gpu, software = document["environment"]["gpu"], document["environment"]["software"]
    machine = document["machine"]
    rows = [("spec", document["spec"]), ("status", document["status"])]
    if gpu:
        rows.append(
            ("card", f"{gpu['name']}, {gpu['memory_bytes'] / 2**30:.0f} GiB, driver {gpu['driver'] or '?'}")
        )
    packages = ", ".join(f"{name} {value}" for name, value in software["packages"].items() if value)
    rows.append(("software", packages))
    rows.append(
        ("datasheet", f"{machine['title']} ({machine['source']})" if machine else "none: no floor is known")
    )
    rows.append(("counters", software["counters"]))
    return Block(f"bench of {document['op']}", (), tuple(rows), tuple(document["notes"]))


def roof_block(roofs: Mapping[str, Any]) -> Block:
    """Roofs measured in this run."""
    rows = [(f"{kind} stream", scaled(rate, "B/s")) for kind, rate in roofs["bandwidth_bytes_per_s"].items()]
    rows += [
        (f"{name} matrix product", scaled(rate, "FLOP/s"))
        for name, rate in roofs["matmul_flops_per_s"].items()
    ]
    if roofs.get("exp_per_s"):
        rows.append(("exponentials", scaled(roofs["exp_per_s"], "/s")))
    rows += [
        (f"launch, {name.replace('_', ' ')}", seconds(value)) for name, value in roofs["launch_s"].items()
    ]
    notes = tuple(f"{name}: not measured, {why}" for name, why in roofs["missing"].items())
    return Block("roofs measured in this run", ("roof", "reached"), tuple(rows), notes)


def shape_blocks(record: Mapping[str, Any]) -> list[Block]:
    """Prediction, times and ledger of one shape; times that cannot be real stay in the JSON."""
    found = [prediction_block(record)]
    measured = record["measured"]
    if measured is None:
        return found
    if measured.get("candidates") and measured["status"] != "rejected":
        found.append(times_block(measured))
    if measured.get("ledger"):
        found.append(ledger_block(measured))
    return found


def prediction_block(record: Mapping[str, Any]) -> Block:
    """The closed form, the floor, the predictions and the headline."""
    cost, line, measured = record["cost"], record["roofline"], record["measured"]
    total = cost.get("bytes", cost.get("bytes.read", 0) + cost.get("bytes.write", 0))
    rows = [("operations", scaled(cost.get("flops"), "FLOP")), ("compulsory bytes", scaled(total, "B"))]
    if line:
        rows.append(("floor", seconds(line["floor_s"])))
        launch = f", {seconds(line['launch_s'])} of it launch" if line["launch_s"] else ""
        rows.append(("predicted", f"{seconds(line['predicted_s'])}, bound by {line['bound']}{launch}"))
    notes: list[str] = []
    if measured is None:
        rows.append(("measured", "nothing was measured"))
    else:
        rows += measured_rows(measured)
        notes += remarks(measured)
    return Block(title(record), (), tuple(rows), tuple(notes))


def title(record: Mapping[str, Any]) -> str:
    """The workload and its shape on one line."""
    dims = ", ".join(f"{name} = {value}" for name, value in record["dims"].items())
    dtypes = ", ".join(f"{name} = {value}" for name, value in record["dtypes"].items())
    weight = "" if record["weight"] is None else f" (weight {record['weight']:g})"
    return f"{record['workload']}{weight}: " + "; ".join(part for part in (dims, dtypes) if part)


def measured_rows(measured: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headline of a measurement."""
    rows: list[tuple[str, str]] = []
    if measured.get("calibrated") and measured["ledger"]:
        rows.append(("calibrated", f"{seconds(measured['calibrated']['predicted_s'])} from this run's roofs"))
    if measured.get("time_s") and measured["status"] in {"ok", "interrupted"}:
        low, high = measured["interval_s"]
        how = "in a graph" if measured["method"] == "graph" else "by events"
        value = (
            f"{seconds(measured['time_s'])} [{seconds(low)} … {seconds(high)}], {measured['cache']} L2, {how}"
        )
        rows.append(("measured", value))
    else:
        rows.append(("measured", measured["status"].upper()))
    reached = measured.get("rates") or {}
    for key, name, unit in (
        ("bytes_per_s", "bandwidth", "B/s"),
        ("tensor_flops_per_s", "matrix rate", "FLOP/s"),
        ("flops_per_s", "rate", "FLOP/s"),
    ):
        if key in reached:
            rows.append((name, scaled(reached[key], unit)))
    share = measured.get("share")
    if share:
        rows.append(("of a plain stream", f"{percent(share['share'])} of a {share['kind']} of the same size"))
    bound = measured.get("calibrated") or {}
    if bound.get("bound") not in {None, "memory"}:
        rows.append(
            ("of the measured roof", f"{percent(bound['share'])} of {bound['bound']} at this run's rate")
        )
    lasting = measured.get("sustained")
    if lasting:
        rows.append(
            (
                "sustained",
                f"{seconds(lasting['time_s'])} after {lasting['elapsed_s']:.1f} s back to back, no flush",
            )
        )
    if measured.get("wall_s"):
        rows.append(
            (
                "call, host clock",
                f"{seconds(measured['wall_s'])}, {seconds(measured['launch_cost_s'])} of it launch",
            )
        )
    if measured.get("graph_s") and measured["method"] != "graph":
        rows.append(("in a CUDA graph", seconds(measured["graph_s"])))
    host = measured.get("host")
    if host:
        text = f"{seconds(host['call_s'])}, by hand {seconds(host['by_hand_s'])}: {seconds(host['wrapper_s'])} of wrapper"
        rows.append(("call, until it returns", text))
    rows += [("waves", waves(item)) for item in measured.get("launches") or () if item["waves"]]
    base = measured.get("baseline")
    if base:
        version = f" ({base['version']})" if base["version"] else ""
        rows.append(
            ("against the fastest peer", f"{base['speedup']:.3f}× {base['peer']}{version}: {base['verdict']}")
        )
    warm = measured.get("warm")
    if warm:
        rows.append(
            ("warm L2", f"{seconds(warm['median_s'])}: from the cache, not to be read as memory bandwidth")
        )
    return rows


def waves(item: Mapping[str, Any]) -> str:
    """How a launch fills the card."""
    return (
        f"{significant(item['waves'])} of {item['kernel']}: {item['programs']} programs, "
        f"{item['per_multiprocessor']} at once on each of {item['multiprocessors']} multiprocessors"
    )


def remarks(measured: Mapping[str, Any]) -> list[str]:
    """What a reader must know before quoting the number."""
    notes = [measured["reason"]] if measured["reason"] else []
    if measured.get("fallback"):
        notes.append(f"fallback: {measured['fallback']}")
    if measured.get("incomplete"):
        notes.append(f"measured by events alone, what followed failed: {measured['incomplete']}")
    if measured.get("drifted"):
        notes.append(
            f"the rate drifted by {percent(measured['drift'])} over the run: see the clocks in the JSON"
        )
    if measured.get("throttled_rounds"):
        notes.append(f"the card throttled in {measured['throttled_rounds']} of {measured['rounds']} rounds")
    if measured.get("stopped") == "budget":
        missing = "; ".join(f"{name}: {text}" for name, text in measured["unreached"].items())
        notes.append(f"stopped by the time budget, not reached: {missing}")
    return notes


def times_block(measured: Mapping[str, Any]) -> Block:
    """All candidates, times and verdicts."""
    verdicts = {item["peer"]: item for item in measured.get("verdicts") or ()}
    rows = []
    notes = []
    key, other = ("graph", "events") if measured["method"] == "graph" else ("events", "graph")
    both = any(row["graph"] for row in measured["candidates"])
    for row in measured["candidates"]:
        times, wall, verdict = row[key] or row["events"], row["wall"], verdicts.get(row["name"])
        if times is None:
            notes.append(f"{row['name']}: {row['status']}, {row['reason']}")
            continue
        if row["status"] != "ok":
            notes.append(f"{row['name']}: {row['status']}, {row['reason']}")
        if row.get("prepared"):
            notes.append(f"{row['name']}: made beforehand and not timed: {row['prepared']}")
        if both and row["graph"] is None:
            notes.append(f"{row['name']}: by events, no graph ({row['graph_refused']})")
        columns = [seconds(times[name]) for name in ("median_s", "p10_s", "p90_s", "p99_s", "min_s")]
        columns += [seconds(row[other]["median_s"] if row[other] else None)] if both else []
        host = seconds(wall["median_s"]) if wall else "–"
        ratio = f"{1 / verdict['ratio']:.3f}×" if verdict else ""
        said = verdict["verdict"] if verdict else ("" if row["role"] != "peer" else row["status"])
        rows.append((row["name"], *columns, host, str(times["count"]), ratio, said))
    beside = (("by events" if key == "graph" else "in a graph"),) if both else ()
    header = ("", "median", "p10", "p90", "p99", "min", *beside, "call", "n", "ours is", "")
    return Block("times", header, tuple(rows), tuple(notes))


def ledger_block(measured: Mapping[str, Any]) -> Block:
    """Where the time went."""
    whole = measured["time_s"]
    rows = tuple(
        (row["name"], seconds(row["seconds"]), percent(row["seconds"] / whole)) for row in measured["ledger"]
    )
    return Block(
        "where the time went", ("", "time", "share"), (*rows, ("measured", seconds(whole), "100.0%"))
    )


def distribution_block(found: Sequence[Mapping[str, Any]]) -> Block:
    """Weighted mean and worst shape."""
    rows = tuple(
        (
            item["workload"],
            seconds(item["mean_s"]),
            seconds(item["worst_s"]),
            ", ".join(f"{name} = {value}" for name, value in item["worst_dims"].items()),
        )
        for item in found
    )
    return Block("distributions", ("workload", "weighted mean", "worst", "at"), rows)


def render(document: Mapping[str, Any]) -> str:
    """The tables as plain text."""
    return "\n\n".join(render_block(block) for block in blocks(document)) + "\n"


def render_block(block: Block) -> str:
    """One table: first column to the left, the rest of a table with a header to the right."""
    lines = [block.title, "─" * len(block.title)]
    table = [block.header, *block.rows] if block.header else list(block.rows)
    if table:
        widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
        for row in table:
            cells = [
                text.rjust(width) if i and block.header else text.ljust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
    lines += [f"! {note}" for note in block.notes]
    return "\n".join(lines)


def show(document: Mapping[str, Any], *, terminal: bool) -> None:
    """Print the tables; on a terminal, where ``rich`` is installed, with verdicts and warnings in colour."""
    text = render(document)
    if terminal and colour(text):
        return
    print(text)


def colour(text: str) -> bool:
    """Print ``text`` through ``rich``, laid out as it is; whether that could be done."""
    try:
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        return False
    console = Console()
    for line in text.split("\n"):
        styled = Text(line, style="yellow" if line.startswith("! ") else "")
        for word, style in STYLES.items():
            styled.highlight_words([word], style)
        console.print(styled, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    return True


STYLES = {
    "FASTER": "green",
    "SLOWER": "red",
    "AMBIGUOUS": "yellow",
    "REJECTED": "bold red",
    "INCORRECT": "bold red",
    "ERROR": "bold red",
}
