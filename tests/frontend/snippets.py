"""Snippets of specs in Markdown, each with the diagnostics that it must give.

A line that carries a fault says so in a comment, ``# error: OP204`` or ``# warning: OP501``;
the ``text`` block after the snippet is the rendered output, word for word.
``python tests/frontend/snippets.py`` writes the blocks, and the IR of accepted specs, anew;
read the diff.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from opspec.diagnostics import Diagnostic, Failure, render_text
from opspec.frontend import load, text_with_warnings
from opspec.ir.show import show_module

FOLDER = Path(__file__).parent / "diagnostics"
_CASE = re.compile(
    r"^## (?P<title>.+?)\n\n```op\n(?P<spec>.*?)\n```\n(?:\n```text\n(?P<text>.*?)\n```\n)?",
    re.MULTILINE | re.DOTALL,
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
    """Write every block anew; the number of snippets whose marks are wrong."""
    wrong = 0
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for m in _CASE.finditer(text):
            diagnostics = diagnose(m["spec"])
            marked, seen = Snippet(path.name, m["title"], m["spec"], "").marked, found(diagnostics)
            if seen != marked:
                wrong += 1
                print(f"{path.name}: {m['title']}: marked {dict(marked)}, found {dict(seen)}")
            shown = render_text(diagnostics).rstrip()
            block = f"## {m['title']}\n\n```op\n{m['spec']}\n```\n\n```text\n{shown}\n```\n"
            text = text.replace(m[0], block)
        path.write_text(text, encoding="utf-8")
    return wrong


ACCEPTED = Path(__file__).parent / "accepted"
SPECS = Path(__file__).parents[2] / "specs"


def golden() -> list[tuple[Path, Path]]:
    """Specs, and the files that hold their checked IR as text."""
    own = [(p, p.with_suffix(".ir")) for p in sorted(ACCEPTED.glob("*.op"))]
    return own + [(p, ACCEPTED / f"{p.stem}.ir") for p in sorted(SPECS.rglob("*.op"))]


if __name__ == "__main__":
    for spec, text in golden():
        text.write_text(show_module(load(spec)), encoding="utf-8")
    sys.exit(1 if update() else 0)
