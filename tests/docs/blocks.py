"""The examples in the documents: found, run, compared.

````
```op             a spec: it checks without a fault, or gives exactly the codes that its lines mark with
                  `# error: OP301`; its budgets hold. `<!-- in SIGNATURE -->` above it puts the lines of one
                  kernel into an op of that signature, `<!-- file NAME -->` saves it for the commands.
```text           right after a marked spec: the rendered diagnostics, word for word
```console        `$ command`, then its output; `…` stands for anything within a line, a line `...` for lines;
                  under `<!-- numbers vary -->` (with the versions installed) other numbers are as good
```python         under `<!-- from FILE def NAME -->`: that function of that file
````
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from opspec.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(
    r"(?:^<!-- (?P<hint>[^\n]*?) -->\n+)?^```(?P<kind>op|console|python|json)\n(?P<text>.*?)^```\n(?:\n```text\n(?P<after>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"# (error|warning): ((?:OP\d+ ?)+)")

SETTINGS = {"CUDA_VISIBLE_DEVICES": "", "COLUMNS": "110"}
OWN_PROCESS = {"verify", "bench"}  # these choose how Triton runs before it is imported
LEAKS = re.compile(r"nanobind: leaked .*?refleaks\.html\n?", re.DOTALL)


@dataclass(frozen=True)
class Block:
    document: str
    line: int
    kind: str
    hint: str
    text: str
    after: str | None

    @property
    def id(self) -> str:
        return f"{self.document}:{self.line}"

    def accepts(self, expected: str, found: str) -> bool:
        """Whether a command of this block may print this."""
        return matches(expected, found, numbers=self.hint != "numbers vary")


def blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            path.relative_to(ROOT).as_posix(), text[: m.start("text")].count("\n") + 1,
            m["kind"], m["hint"] or "", m["text"], m["after"],
        )
        for m in _BLOCK.finditer(text)
    ]  # fmt: skip


def all_blocks(kind: str) -> list[Block]:
    return [b for path in DOCUMENTS for b in blocks(path) if b.kind == kind]


# specs ---------------------------------------------------------------------------------
def spec_of(block: Block) -> str:
    """The text of the spec that a block stands for; lines keep their numbers less one where it is wrapped."""
    if not block.hint.startswith("in "):
        return block.text
    return f"op example{block.hint[3:]} {{ kernel all {{\n{block.text}}} }}\n"


def diagnose(text: str):
    from opspec.analysis.expectations import check_expectations
    from opspec.diagnostics import Failure
    from opspec.frontend import text_with_warnings

    try:
        module, warnings = text_with_warnings(text, "example.op")
    except Failure as failure:
        return failure.diagnostics
    return (*warnings, *check_expectations(module))


def marked(text: str) -> Counter:
    found: Counter = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        for kind, codes in _MARK.findall(line):
            found.update((number, kind, code) for code in codes.split())
    return found


def seen(diagnostics) -> Counter:
    return Counter((d.span.source.position(d.span.start)[0], d.severity, d.code.code) for d in diagnostics)


# commands ------------------------------------------------------------------------------
def commands(block: Block) -> list[tuple[str, str]]:
    """(command, expected output) in order."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(c, "\n".join(lines).strip()) for c, lines in found]


def run(command: str, folder: Path) -> str:
    """Output of an `opspec`, `python` or `cat` command in a folder, without a shell."""
    words = shlex.split(command)
    if words[0] == "cat":
        return (folder / words[1]).read_text(encoding="utf-8").strip()
    assert words[0] in ("opspec", "python"), command
    here = words[0] == "opspec" and words[1] not in OWN_PROCESS
    printed = _run_here(words[1:], folder) if here else _run_apart(words, folder)
    return "\n".join(line.rstrip() for line in printed.strip().splitlines())


def _run_here(words: list[str], folder: Path) -> str:
    """What a command prints, run in this process, which has the compiler loaded already."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.chdir(folder)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        main(words)
    return printed.getvalue()


def _run_apart(words: list[str], folder: Path) -> str:
    """What a command prints, run in a process of its own."""
    start = [sys.executable, "-m", "opspec"] if words[0] == "opspec" else [sys.executable]
    done = subprocess.run(
        [*start, *words[1:]], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS}, text=True,
        check=False, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    # newer releases of Triton tell at exit what their bindings did not give back
    return LEAKS.sub("", done.stdout)


def matches(expected: str, found: str, *, numbers: bool = True) -> bool:
    """Whether an output is what is expected; ``numbers``: to the digit."""
    if not numbers:
        expected, found = (re.sub(r" +", " ", re.sub(r"\d[\d.,]*", "0", t)) for t in (expected, found))
    lines = []
    for line in expected.splitlines():
        if line.strip() == "...":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            lines.append(re.escape(line.rstrip()).replace("…", r"[^\n]*?") + "\n")
    return re.fullmatch("".join(lines), found.rstrip() + "\n") is not None


def workplace(folder: Path, document: Path) -> Path:
    """A folder in which the commands of one document run one after the other, with the files that it shows."""
    shutil.copytree(ROOT / "specs", folder / "specs")
    shutil.copytree(ROOT / "results", folder / "results")
    shutil.copytree(ROOT / "generated", folder / "generated", ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks(document):
        if block.hint.startswith("file "):
            (folder / block.hint[5:]).write_text(block.text, encoding="utf-8")
    return folder


# excerpts --------------------------------------------------------------------------------
def excerpt(hint: str) -> str:
    """The function that `from FILE def NAME` speaks of."""
    m = re.fullmatch(r"from (\S+) def (\w+)", hint)
    assert m, hint
    text = (ROOT / m[1]).read_text(encoding="utf-8")
    found = re.search(rf"^(?:@[^\n]*\n)*def {m[2]}\(.*?(?=^\S(?!\):)|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{m[1]} defines no {m[2]}"
    return found[0].rstrip() + "\n"
