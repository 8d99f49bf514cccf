"""Diagnostics → text for a terminal, JSON for a program, annotations for a review.

```
error[OP204]: index `m` ranges over `M` and over `N`
  --> specs/norm.op:7:24
   |
 7 |     y[m] = a[m] + b[m]
   |                     ^
   = note: axis 0 of `b` gives it `N`
   = help: use two indices
```
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from opspec.diagnostics.core import Diagnostic, Note
from opspec.source import Span

_WIDTH = 160
_COLOURS = {"error": "31", "warning": "33", "note": "36", "help": "32", "frame": "34", "bold": "1"}


def render_text(diagnostics: Iterable[Diagnostic], *, colour: bool = False) -> str:
    """All of them, a blank line between two, and a line that counts them."""
    items = list(diagnostics)
    blocks = [_block(d, colour=colour) for d in items]
    if items:
        blocks.append(summary(items))
    return "\n\n".join(blocks) + ("\n" if blocks else "")


def render_one(diagnostic: Diagnostic, *, colour: bool = False) -> str:
    """One diagnostic without the count."""
    return _block(diagnostic, colour=colour)


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """``2 errors, 1 warning``."""
    counts: dict[str, int] = {}
    for d in diagnostics:
        counts[d.severity] = counts.get(d.severity, 0) + 1
    return ", ".join(f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in sorted(counts.items()))


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON list; places have 1-based lines and columns, ends are exclusive."""
    return json.dumps([_record(d) for d in diagnostics], indent=2, ensure_ascii=False) + "\n"


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands, which a review shows beside the line."""
    lines = []
    for d in diagnostics:
        kind = {"error": "error", "warning": "warning", "note": "notice"}[d.severity]
        where = ""
        if d.span is not None:
            line, column = d.span.source.position(d.span.start)
            end_line, end_column = d.span.source.position(max(d.span.end, d.span.start))
            where = f"file={_property(d.span.source.name)},line={line},col={column}"
            where += f",endLine={end_line},endColumn={end_column},"
        text = d.message
        for n in d.notes:
            text += f"\nnote: {n.text}" + (f" ({n.span.place})" if n.span is not None else "")
        if d.help:
            text += f"\nhelp: {d.help}"
        lines.append(f"::{kind} {where}title={_property(d.code.code)}::{_data(text)}")
    return "\n".join(lines) + ("\n" if lines else "")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _record(d: Diagnostic) -> dict[str, object]:
    return {
        "code": d.code.code,
        "severity": d.severity,
        "message": d.message,
        "place": _place(d.span),
        "notes": [{"text": n.text, "place": _place(n.span)} for n in d.notes],
        "help": d.help,
    }


def _place(span: Span | None) -> dict[str, object] | None:
    if span is None:
        return None
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
    }


# text ------------------------------------------------------------------------------
def _block(d: Diagnostic, *, colour: bool) -> str:
    head = _paint(f"{d.severity}[{d.code.code}]", d.severity, colour) + _paint(
        f": {_visible(d.message)}", "bold", colour
    )
    lines = [head]
    margin = _margin(d)
    if d.span is not None:
        lines += _excerpt(d.span, margin, _paint("^", d.severity, colour), colour=colour)
    for n in d.notes:
        lines += _note(n, margin, colour=colour)
    if d.help:
        lines.append(
            f"{' ' * margin} {_bar('=', colour)} {_paint('help', 'help', colour)}: {_visible(d.help)}"
        )
    return "\n".join(lines)


def _margin(d: Diagnostic) -> int:
    spans = [s for s in (d.span, *(n.span for n in d.notes)) if s is not None]
    return max((len(str(s.source.position(s.start)[0])) for s in spans), default=1)


def _note(note: Note, margin: int, *, colour: bool) -> list[str]:
    lines = [f"{' ' * margin} {_bar('=', colour)} {_paint('note', 'note', colour)}: {_visible(note.text)}"]
    if note.span is not None:
        lines += _excerpt(note.span, margin, _paint("-", "note", colour), colour=colour)
    return lines


def _excerpt(span: Span, margin: int, mark: str, *, colour: bool) -> list[str]:
    """The place, the line and a line of marks under the span; long lines are cut around it."""
    number, column = span.source.position(span.start)
    text = span.source.line(number)
    start = column - 1
    end = max(start + 1, min(start + (span.end - span.start), len(text)))
    if len(text) > _WIDTH:
        left = max(0, min(start - 40, len(text) - _WIDTH))
        text = ("…" if left else "") + text[left : left + _WIDTH] + ("…" if left + _WIDTH < len(text) else "")
        shift = left - (1 if left else 0)
        start, end = start - shift, min(end - shift, len(text))
    head = _expand(text[:start])
    body = _expand(text[start:end]) or " "
    pad = " " * margin
    bar = _bar("|", colour)
    return [
        f"{pad}{_bar('-->', colour)} {span.place}",
        f"{pad} {bar}",
        f"{_paint(str(number).rjust(margin), 'frame', colour)} {bar} {head}{body}{_expand(text[end:])}".rstrip(),
        f"{pad} {bar} {' ' * len(head)}{mark * len(body)}",
    ]


def _expand(text: str) -> str:
    return _visible(text.replace("\t", "    "))


def _visible(text: str) -> str:
    """Control characters (which could drive a terminal) as symbols."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _bar(text: str, colour: bool) -> str:
    return _paint(text, "frame", colour)


def _paint(text: str, kind: str, colour: bool) -> str:
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if colour else text
