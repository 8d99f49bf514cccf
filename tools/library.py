"""The page of the shipped specs, computed: ``python -m tools.library [--check]``.

Each spec under ``specs/`` gives what its file and its ops say they are, and for every workload the compulsory
bytes, the intensity, the time at the roof of one machine and what binds there.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from opspec.analysis.query import query
from opspec.frontend import load
from opspec.ir.program import Module, Op, Workload

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "library.md"
MACHINE = "h200"
FAMILIES = {
    "map": "Element by element",
    "reduce": "Reductions of rows",
    "norm": "Norms",
    "quant": "Quantisation",
    "loss": "Losses",
    "scan": "Scans and places",
    "conv": "Convolutions",
    "cache": "Caches",
    "optim": "Optimisers",
    "gemm": "Products",
    "attention": "Attention",
    "nn": "Layers",
    "world_model": "Blocks of models",
}
HEAD = f"""# The library

The specs that ship, under `specs/`, with their closed forms at the workloads that they state: compulsory bytes,
tensor FLOPs per byte (`-` where nothing contracts), and the time at the roof of an {MACHINE.upper()}, a bound and no
prediction. What was measured stands under `results/`. The page is computed: `python -m tools.library` writes it
anew. A file is one line of `opspec query`, `build` and `verify` away from any other shape:

    opspec query specs/norm/rmsnorm.op bytes --set M=4096,N=5120 --dtype X=bf16
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page anew, or with ``--check`` say that it would change; 1 if it would."""
    parser = argparse.ArgumentParser(prog="python -m tools.library", description="The page of the specs")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page would change")
    options = parser.parse_args(argv)
    stale = not PAGE.is_file() or page() != PAGE.read_text(encoding="utf-8")
    if stale and not options.check:
        PAGE.write_text(page(), encoding="utf-8")
    return 1 if stale and options.check else 0


def page() -> str:
    """The whole page."""
    folders = sorted({p.parent.name for p in specs()}, key=[*FAMILIES, ""].index)
    parts = [HEAD]
    for folder in folders:
        parts.append(f"## {FAMILIES[folder]}\n")
        parts += [_spec(p) for p in specs() if p.parent.name == folder]
    return "\n".join(parts)


def specs() -> list[Path]:
    """Every spec that ships, in order."""
    return sorted((ROOT / "specs").rglob("*.op"))


def _spec(path: Path) -> str:
    module = load(path)
    link = Path(os.path.relpath(path, PAGE.parent)).as_posix()
    title = path.relative_to(ROOT / "specs").with_suffix("").as_posix()
    out = [f"**[{title}]({link})**: {_line(module.doc)}\n"]
    out += [f"- `{op.name}`: {_line(op.doc)}" for op in module.ops if op.doc and op.doc != module.doc]
    if out[1:]:
        out.append("")
    rows = [row for op in module.ops for w in module.workloads_of(op.name) for row in _rows(module, op, w)]
    if rows:
        out += [
            "| workload | sizes | bytes | ai.tensor | at the roof | bound |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    return "\n".join(out)


def _rows(module: Module, op: Op, workload: Workload) -> Iterator[str]:
    for boundary in op.boundaries:
        asked = {
            what: query(module, op, what, workload=workload, machine=MACHINE, boundary=boundary.name)
            for what in ("bytes", "ai.tensor", "time", "bound")
        }
        values = {what: answer.value for what, answer in asked.items()}
        named = f"{workload.name}, {boundary.name}" if boundary.name else workload.name
        intensity = float(values["ai.tensor"] or 0)
        cells = (
            f"`{op.name}` {named}",
            _sizes(workload) if not boundary.name else "",
            _bytes(float(values["bytes"] or 0)),
            f"{intensity:.3g}" if intensity else "-",
            _time(float(values["time"] or 0)),
            asked["bound"].symbolic.strip("'\""),
        )
        yield f"| {' | '.join(cells)} |"


def _sizes(workload: Workload) -> str:
    cases = [dict(dims) for _, dims in workload.cases]
    names = list(cases[0])
    texts = [f"{n}={'/'.join(map(str, dict.fromkeys(c[n] for c in cases)))}" for n in names]
    return ", ".join([*texts, *(f"{name}={dtype.name}" for name, dtype in workload.dtypes)])


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} B"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.4g} µs"


def _line(doc: str) -> str:
    """The first sentence or paragraph of a doc string, on one line."""
    return " ".join(doc.strip().split("\n\n")[0].split())


if __name__ == "__main__":
    sys.exit(main())
