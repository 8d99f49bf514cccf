"""Write what can be derived in the documents anew: ``python -m tests.docs.update``; read the diff.

That is docs/diagnostics.md, the text blocks after marked specs, functions quoted from generated files,
and outputs of commands that hold no wildcard. Wildcards are for a person to place.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from opspec.diagnostics import render_text
from opspec.driver.codes import reference
from tests.docs import blocks as b


def update(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = b.workplace(Path(name), path)
        for block in b.blocks(path):
            old = f"```{block.kind}\n{block.text}```\n"
            if block.kind == "op":
                diagnostics = b.diagnose(b.spec_of(block))
                if b.seen(diagnostics) != b.marked(b.spec_of(block)):
                    wrong.append(f"{block.id}\n{render_text(diagnostics)}")
                if block.after is not None:
                    old += f"\n```text\n{block.after}```\n"
                    new = f"```op\n{block.text}```\n\n```text\n{render_text(diagnostics).rstrip()}\n```\n"
                    text = text.replace(old, new)
            elif block.kind == "python" and block.hint.startswith("from "):
                text = text.replace(
                    f"{block.hint} -->\n{old}", f"{block.hint} -->\n```python\n{b.excerpt(block.hint)}```\n"
                )
            elif block.kind == "console":
                parts = []
                for command, expected in b.commands(block):
                    found = b.run(command, folder)
                    open_ended = "…" in expected or "..." in expected.split("\n")
                    accepted = block.accepts(expected, found)
                    broken = "Traceback (most recent call last)" in found
                    if (open_ended and not accepted) or broken:
                        wrong.append(f"{block.id}: $ {command}\n{found}")
                    parts.append(
                        f"$ {command}\n{expected if open_ended or accepted or broken else found}".rstrip()
                        + "\n"
                    )
                text = text.replace(old, "```console\n" + "".join(parts) + "```\n")
    path.write_text(text, encoding="utf-8")
    return wrong


if __name__ == "__main__":
    (b.ROOT / "docs" / "diagnostics.md").write_text(reference(), encoding="utf-8")
    chosen = [Path(p).resolve() for p in sys.argv[1:]] or b.DOCUMENTS
    problems = [p for path in chosen for p in update(path)]
    print("\n\n".join(problems))
    sys.exit(1 if problems else 0)
