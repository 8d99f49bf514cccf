"""``opspec verify``."""

from __future__ import annotations

import argparse
import sys

from opspec.diagnostics import Failure
from opspec.diagnostics.render import render_text
from opspec.driver.files import find_specs
from opspec.driver.verify import Verdict, prepare, verify_spec


def run(options: argparse.Namespace) -> int:
    """Verify; 1 if a kernel is wrong, 2 if a spec has none. Every spec is tried."""
    specs = find_specs(options.paths)
    repaired = prepare(options.device)
    _preface(options.device, repaired)
    wrong = refused = 0
    for spec in specs:
        print(spec.shown, flush=True)
        try:
            verdicts = verify_spec(
                spec, device=options.device, count=options.cases, seed=options.seed, progress=_progress
            )
        except Failure as failure:
            refused += 1
            print(render_text(failure.diagnostics), file=sys.stderr, flush=True)
            continue
        _progress("")
        for verdict in verdicts:
            print(_line(verdict), flush=True)
            for fault in verdict.faults:
                print(f"      {fault}", flush=True)
            wrong += bool(verdict.faults)
    if refused:
        print(f"{refused} of {len(specs)} specs have no kernel to verify", file=sys.stderr)
    if wrong:
        print(f"{wrong} wrong", file=sys.stderr)
    elif len(specs) > refused:
        print("all right" if not refused else "the others are right")
    return 1 if wrong else 2 if refused else 0


def _progress(text: str) -> None:
    """What is at work, on a terminal: a case takes seconds in the interpreter, and minutes where programs are many."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:100]}", end="", file=sys.stderr, flush=True)


def _preface(device: str, repaired: tuple[str, ...]) -> None:
    if device == "cuda":
        print("on the GPU, as compiled")
        return
    print("in Triton's interpreter on the CPU: checks indices, masks, order and storage roundings")
    for words in repaired:
        print(f"  interpreter repaired: {words}")
    print("  only a GPU shows hardware exp/log/rsqrt, matrix-unit accumulation and races")


def _line(verdict: Verdict) -> str:
    name = f"{verdict.op}__{verdict.boundary}" if verdict.boundary else verdict.op
    share = sum(verdict.decided) / len(verdict.decided) if verdict.decided else 1.0
    state = "WRONG" if verdict.faults else "right"
    kept = f"; {verdict.over} too large for the device" if verdict.over else ""
    counts = f"{verdict.cases:3} cases, {share:.0%} of elements decided{kept}"
    return f"  {name:32} {verdict.dtypes:12} {state}  {counts}"
