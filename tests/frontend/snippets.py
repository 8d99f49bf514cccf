"""Snippets of specs in Markdown, each with the diagnostics that it must give.

A line that carries a fault says so in a comment, ``# error: OP204`` or ``# warning: OP501``;
the ``text`` block after the snippet is the rendered output, word for word.
``python tests/frontend/snippets.py`` writes the blocks anew; read the diff.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from opspec.diagnostics import Diagnostic, Failure, render_text
from opspec.frontend import text_with_warnings

FOLDER = Path(__file__).parent / "diagnostics"
_CASE = re.compile(
    r"^## (?P<title>.+?)\n\n```op\n(?P<spec>.*?)\n```\n(?:\n```text\n(?P<text>.*?)\n```\n)?", re.MULTILINE | re.DOTALL
)
_MARK = re.compile(r"# (error|warning): ((?:OP\d+ ?)+)")


@dataclass(frozen=True)
class Snippet:
    file: str
    title: str
    spec: str
    text: str

    @property
    def marked(self) -> Counter[tuple[int, str, str]]:
        found: Counter[tuple[int, str, str]] = Counter()
        for number, line in enumerate(self.spec.splitlines(), 1):
            for kind, codes in _MARK.findall(line):
                found.update((number, kind, code) for code in codes.split())
        return found


def snippets() -> list[Snippet]:
    return [
        Snippet(path.name, m["title"], m["spec"], m["text"] or "")
        for path in sorted(FOLDER.glob("*.md"))
        for m in _CASE.finditer(path.read_text(encoding="utf-8"))
    ]


def diagnose(spec: str) -> tuple[Diagnostic, ...]:
    try:
        return text_with_warnings(spec, "spec.op")[1]
    except Failure as failure:
        return failure.diagnostics


def found(diagnostics: tuple[Diagnostic, ...]) -> Counter[tuple[int, str, str]]:
    return Counter(
        (d.span.source.position(d.span.start)[0], d.severity, d.code.code) for d in diagnostics if d.span
    )


def update() -> int:
    wrong = 0
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8")

        def fresh(m: re.Match[str]) -> str:
            nonlocal wrong
            diagnostics = diagnose(m["spec"])
            snippet = Snippet(path.name, m["title"], m["spec"], "")
            if found(diagnostics) != snippet.marked:
                wrong += 1
                print(
                    f"{path.name}: {m['title']}: marked {dict(snippet.marked)}, found {dict(found(diagnostics))}"
                )
            shown = render_text(diagnostics).rstrip()
            return f"## {m['title']}\n\n```op\n{m['spec']}\n```\n\n```text\n{shown}\n```\n"

        path.write_text(_CASE.sub(fresh, text), encoding="utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if update() else 0)
