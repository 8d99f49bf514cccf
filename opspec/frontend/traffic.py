"""Recorded traffic: shapes with counts, from a CSV or JSON file beside the spec.

CSV: a header with the names of dims, separated by ``,``, ``;`` or tabs. JSON: a list of objects, or
an object whose ``shapes`` is one. ``count`` says how often a shape was seen (1 where it is missing);
other columns are left alone. Equal shapes are added up.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from opspec.diagnostics import Diagnostic, Note
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults.naming import listing
from opspec.source import Source, Span

Rows = list[tuple[Fraction, tuple[int, ...]]]
Reader = Callable[[s.Setting, tuple[str, ...]], Rows]
MAX_BYTES = 64 * 2**20
MAX_EXTENT = 2**40
COUNT = "count"


def read_traffic(
    folder: Path, setting: s.Setting, names: tuple[str, ...], report: list[Diagnostic]
) -> tuple[Rows, Source | None]:
    """Weighted values of ``names``, and the file as a source; what is wrong goes to ``report``."""
    span = setting.span
    text = _text(folder / setting.path, setting.path, span, report)
    if text is None:
        return [], None
    source = Source.normalised(setting.path, text)
    before = len(report)
    entries = (
        _json(source, span, report) if setting.path.endswith(".json") else _csv(source, names, span, report)
    )
    rows: dict[tuple[int, ...], Fraction] = {}
    for place, entry in entries:
        row = _row(entry, names, place, span, report)
        if row is not None and row[0]:
            rows[row[1]] = rows.get(row[1], Fraction(0)) + row[0]
        if len(report) - before >= 3:
            break
    if len(report) == before and not rows:
        report.append(faults.traffic(span, f"`{setting.path}` records no shape"))
    return [(w, v) for v, w in rows.items()], source


def _text(path: Path, shown: str, span: Span, report: list[Diagnostic]) -> str | None:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as e:
        reason = (getattr(e, "strerror", None) or "it is no path").lower()
        report.append(
            faults.traffic(span, f"cannot read `{shown}`: {reason}", "the path is relative to the spec")
        )
        return None
    if len(raw) > MAX_BYTES:
        report.append(faults.traffic(span, f"`{shown}` is larger than {MAX_BYTES // 2**20} MiB"))
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = raw[: e.start].count(b"\n") + 1
        report.append(faults.traffic(span, f"`{shown}`: line {line} is not UTF-8"))
        return None


def _csv(
    source: Source, names: tuple[str, ...], span: Span, report: list[Diagnostic]
) -> Iterator[tuple[str, dict[str, object]]]:
    head = source.text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(source.text), delimiter=delimiter)
    try:
        columns = [c.strip() for c in next(reader, [])]
        missing = [n for n in names if n not in columns]
        double = [c for c in columns if columns.count(c) > 1 and c in (*names, COUNT)]
        if missing or double:
            what = f"has no column `{missing[0]}`" if missing else f"has two columns `{double[0]}`"
            note = Note(f"its columns: {listing(c[:40] for c in columns) or 'none'}")
            report.append(faults.traffic(span, f"`{source.name}` {what}", "", note))
            return
        for cells in reader:
            if not any(c.strip() for c in cells):
                continue
            place = f"{source.name}:{reader.line_num}"
            if len(cells) != len(columns):
                message = f"{place} has {len(cells)} cells, and the header {len(columns)}"
                report.append(faults.traffic(span, message))
                return
            yield place, dict(zip(columns, cells, strict=True))
    except csv.Error as e:
        report.append(faults.traffic(span, f"`{source.name}` is not CSV: {e}"))


def _json(source: Source, span: Span, report: list[Diagnostic]) -> Iterator[tuple[str, dict[str, object]]]:
    try:
        data = json.loads(source.text)
    except (ValueError, RecursionError) as e:
        report.append(faults.traffic(span, f"`{source.name}` is not JSON: {e}"))
        return
    rows = data.get("shapes") if isinstance(data, dict) else data
    if not isinstance(rows, list):
        report.append(faults.traffic(span, f"`{source.name}` is no list of shapes"))
        return
    for k, row in enumerate(rows):
        if not isinstance(row, dict):
            report.append(faults.traffic(span, f"{source.name}: shape {k + 1} is no object"))
            return
        yield f"{source.name}: shape {k + 1}", row


def _row(
    entry: dict[str, object], names: tuple[str, ...], place: str, span: Span, report: list[Diagnostic]
) -> tuple[Fraction, tuple[int, ...]] | None:
    values: list[int] = []
    for name in names:
        if name not in entry:
            report.append(faults.traffic(span, f"{place} gives no `{name}`"))
            return None
        value = _whole(entry[name])
        if value is None or not 0 < value <= MAX_EXTENT:
            shown = str(entry[name])[:40]
            report.append(
                faults.traffic(span, f"{place} gives `{name}` as `{shown}`, which is no positive integer")
            )
            return None
        values.append(value)
    count = _whole(entry.get(COUNT, 1))
    if count is None or count < 0:
        shown = str(entry[COUNT])[:40]
        report.append(faults.traffic(span, f"{place} gives `{COUNT}` as `{shown}`, which is no count"))
        return None
    return Fraction(count), tuple(values)


def _whole(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
