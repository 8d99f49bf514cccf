"""Results of drivers as one Markdown table: ``python -m tools.results_table results/h200``.

Each row is one workload: what was measured, beside a plain stream or matrix product of the same run and
the fastest correct peer. Nothing is computed that is not in the files. A † says that the kernel was another text
than the one in ``generated/``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HEAD = (
    "| op | workload | dtype | µs (median) | rate | share of the roof in the same run | fastest correct peer | peer µs | verdict |\n"
    "|---|---|---|--:|--:|--:|---|--:|---|"
)


GENERATED = Path(__file__).resolve().parents[1] / "generated"


def earlier(document: dict[str, Any], generated: Path = GENERATED) -> bool:
    """Whether a result was measured with another text of its kernel than the generated one."""
    if "spec" not in document:
        return False
    spec = Path(document["spec"])
    path = generated / spec.relative_to(spec.parts[0]).with_suffix("") / "kernel.py"
    known = document["environment"]["software"].get("kernel_hash")
    return not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != known


def rows(document: dict[str, Any]) -> Iterator[str]:
    """A row per result of one driver's JSON."""
    mark = " †" if earlier(document) else ""
    for result in document["results"]:
        dtypes = ", ".join(result["dtypes"].values()) or "as written"
        lead = f"| {document['op']}{mark} | {result['workload']} | {dtypes} |"
        measured = result["measured"]
        if not measured or measured["status"] != "ok":
            reason = measured["reason"] if measured else "not measured"
            yield f"{lead} - | - | - | - | - | {reason} |"
            continue
        time = measured["time_s"]
        bound = result["roofline"]["bound"]
        if bound == "tensor":
            flops = result["cost"]["flops.tensor"] / time
            dtype = next(iter(result["dtypes"].values()), "bf16")
            roof = document["roofs"]["matmul_flops_per_s"].get(dtype)
            rate = f"{flops / 1e12:.0f} TFLOP/s"
            share = f"{flops / roof:.0%} of a {dtype} product" if roof else "-"
        else:
            stream = measured["share"]
            rate = f"{measured['rates']['bytes_per_s'] / 1e12:.2f} TB/s"
            share = f"{stream['share']:.1%} of a {stream['kind']}" if stream else "-"
        baseline = measured.get("baseline")
        peer = (
            f"{baseline['peer']} | {baseline['time_s'] * 1e6:.1f} | {baseline['verdict']}"
            if baseline
            else "- | - | -"
        )
        yield f"{lead} {time * 1e6:.1f} | {rate} | {share} | {peer} |"


def table(paths: Sequence[Path]) -> str:
    """The whole table, files in the order given."""
    lines = [HEAD]
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        if "results" in document:
            lines += rows(document)
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.results_table", description="Driver results as Markdown"
    )
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULT.json|FOLDER")
    given = parser.parse_args(argv).results
    print(table([f for p in given for f in (sorted(p.glob("*.json")) if p.is_dir() else [p])]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
