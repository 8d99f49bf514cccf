"""A run of several drivers on one page: a line for each shape."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opspec.runtime.bench.table import colour

HEAD = ("op", "workload", "µs", "of the roof", "fastest peer", "µs", "ours is", "verdict")
RIGHT = (2, 3, 5, 6)  # columns of numbers
RATIO = 6  # the column that a narrow page goes without
FLEXIBLE = (4, 1, 0)  # columns that give way where the page is narrow
LEAST = 8
UNIT = 1e6


@dataclass(frozen=True, slots=True)
class Failed:
    """An op without a result."""

    op: str
    reason: str


def show_overview(found: Sequence[Mapping[str, Any] | Failed]) -> None:
    """Print the page as wide as the terminal; in colour where there is one."""
    width = shutil.get_terminal_size((120, 24)).columns
    text = overview(found, width)
    if not (sys.stdout.isatty() and colour(text)):
        print(text)


def overview(found: Sequence[Mapping[str, Any] | Failed], width: int) -> str:
    """The page: a line for each shape, then what is to be said of those without a time."""
    table: list[tuple[str, ...]] = []
    notes: list[str] = []
    for item in found:
        if isinstance(item, Failed):
            table.append((item.op, "", "–", "", "", "", "", "ERROR"))
            notes.append(f"{item.op}: {item.reason}")
            continue
        lines = [line(item, record) for record in item["results"]]
        table += [(item["op"] if not k else "", *cells) for k, cells in enumerate(lines)]
        notes += [f"{item['op']}{note}" for record in item["results"] if (note := remark(record))]
        notes += [note for note in item["notes"] if note.startswith("nothing")]
        notes += [f"{item['op']}: {note}" for note in item["notes"] if note.startswith("the run ended")]
    lines_of = laid_out([HEAD, *table], width)
    return "\n".join([lines_of[0], "─" * max(map(len, lines_of)), *lines_of[1:], *said(notes)])


def said(notes: Sequence[str]) -> list[str]:
    """Remarks, each once."""
    return [f"! {note}" for note in dict.fromkeys(notes)]


def line(document: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of one shape, without the op."""
    name = workload(document, record)
    measured = record["measured"]
    if measured is None:
        return name, "–", "", "", "", "", ""
    if not measured.get("time_s") or measured["status"] not in {"ok", "interrupted"}:
        return name, "–", "", "", "", "", measured["status"].upper()
    base = measured.get("baseline")
    peer = (base["peer"].rpartition(":")[2], micro(base["time_s"])) if base else ("–", "")
    verdict = (f"{base['speedup']:.2f}×", base["verdict"]) if base else ("", "")
    return name, micro(measured["time_s"]), share(document, record), *peer, *verdict


def workload(document: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The name of a workload; of one that is a distribution, with the dims in which its shapes differ."""
    if record["weight"] is None:
        return str(record["workload"])
    beside = [other["dims"] for other in document["results"] if other["workload"] == record["workload"]]
    own = [f"{k}={v}" for k, v in record["dims"].items() if any(dims[k] != v for dims in beside)]
    return " ".join((record["workload"], ",".join(own))).rstrip()


def micro(seconds: float) -> str:
    """A time in µs."""
    return f"{seconds * UNIT:.1f}"


def share(document: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """How much of what binds it was reached, beside a roof of the same run: of a matrix product, else a stream."""
    measured, roofs = record["measured"], document["roofs"]
    calibrated = measured.get("calibrated") or {}
    if calibrated.get("bound") == "tensor" and record["cost"].get("flops.tensor") and roofs:
        rates = roofs["matmul_flops_per_s"]
        rate = record["cost"]["flops.tensor"] / measured["time_s"]
        within = calibrated["terms_s"]["tensor"]
        roof = record["cost"]["flops.tensor"] / within
        name = next((dtype for dtype, r in rates.items() if abs(r / roof - 1) < 1e-9), "product")
        return f"{rate / roof:.1%} {name}"
    stream = measured.get("share")
    return f"{stream['share']:.1%} {stream['kind']}" if stream else "–"


def remark(record: Mapping[str, Any]) -> str:
    """What is to be said below the table: why a shape has no time, or why it isn't settled."""
    measured = record["measured"]
    if measured is None:
        return ""
    if measured["status"] != "ok":
        status, reason = measured["status"], measured["reason"]
        said = reason if reason.startswith(status) else f"{status}, {reason}"
        return f" {record['workload']}: {said}"
    if measured.get("throttled_rounds"):
        return f" {record['workload']}: the card throttled in {measured['throttled_rounds']} of {measured['rounds']} rounds"
    return ""


def laid_out(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Lines that fit: a narrow page has less between columns and no ratio, and then names give way."""
    columns, gap = list(range(len(HEAD))), "  "
    widths = [max(len(row[i]) for row in rows) for i in columns]
    if sum(widths) + len(gap) * (len(columns) - 1) > width:
        columns.remove(RATIO)
        gap = " "
    while sum(widths[i] for i in columns) + len(gap) * (len(columns) - 1) > width:
        most = max(FLEXIBLE, key=lambda i: widths[i])
        if widths[most] <= LEAST:
            break
        widths[most] -= 1
    return [gap.join(cell(row[i], widths[i], right=i in RIGHT) for i in columns).rstrip() for row in rows]


def cell(text: str, size: int, *, right: bool) -> str:
    """A text in its column."""
    fitting = clipped(text, size)
    return fitting.rjust(size) if right else fitting.ljust(size)


def clipped(text: str, size: int) -> str:
    """A text that fits; what was cut off is an ellipsis."""
    return text if len(text) <= size else f"{text[: size - 1]}…"
