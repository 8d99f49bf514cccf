"""The longest single call into SymPy: ``python -m tools.sympy_calls [--random N] [SPEC…]``.

Every call that rewrites a form (``cancel``, ``together``, ``factor``, ``Poly``, ``limit`` …) is timed in CPU seconds,
while every shipped op is asked every kind of question and random ops are counted. The aim is that none takes more than
a second: whoever asks a question waits for it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy

from opspec.analysis.costs import cost
from opspec.analysis.export import byte_totals, flop_totals
from opspec.analysis.forms import closed_form_python, tidy
from opspec.analysis.query import query
from opspec.diagnostics import Failure
from opspec.frontend import load
from opspec.ir.program import Module, Op

ROOT = Path(__file__).resolve().parents[1]
REWRITES = (
    "cancel", "together", "factor", "factor_terms", "expand", "diff", "limit", "roots", "degree", "powsimp", "fraction",
    "latex", "Poly", "simplify", "solve", "summation", "nsimplify",
)  # fmt: skip


@dataclass(slots=True)
class Call:
    """One call: what was called, how long it took in CPU seconds, on how many operations, and for whom."""

    name: str = "none"
    seconds: float = 0.0
    size: int = 0
    whose: str = ""


class Timer:
    """Keeps the longest call, and counts all of them."""

    def __init__(self) -> None:
        self.longest, self.count, self.whose, self.depth = Call(), 0, "", 0

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed; calls that it makes itself belong to it."""

        def timed(*arguments: Any, **more: Any) -> Any:
            self.depth += 1
            began = time.process_time()
            try:
                return function(*arguments, **more)
            finally:
                took = time.process_time() - began
                self.depth -= 1
                if self.depth == 0:
                    self.count += 1
                    if took > self.longest.seconds:
                        first = arguments[0] if arguments else None
                        size = int(first.count_ops()) if isinstance(first, sympy.Expr) else 0
                        self.longest = Call(name, took, size, self.whose)

        return timed


@contextmanager
def watching() -> Iterator[Timer]:
    """Times every rewrite that is called as ``sympy.NAME``, without the collector, as commands run."""
    timer = Timer()
    before = {name: getattr(sympy, name) for name in REWRITES}
    for name, function in before.items():
        if name == "Poly":
            continue
        setattr(sympy, name, timer.around(name, function))
    make = sympy.Poly.__new__
    sympy.Poly.__new__ = staticmethod(timer.around("Poly", make))
    was = gc.isenabled()
    gc.disable()
    try:
        yield timer
    finally:
        sympy.Poly.__new__ = make
        for name, function in before.items():
            setattr(sympy, name, function)
        if was:
            gc.enable()


def questions(op: Op) -> Iterator[tuple[str, str]]:
    """(question, machine) of every kind about an op."""
    for text in ("flops", "bytes", "ai", "ai.tensor", "launches"):
        yield text, ""
    for text in ("time", "bound", "attainable", "sensitivity(time)", "sensitivity(ai)"):
        yield text, "h200"
    for dim in op.dims:
        for text in (
            f"diff(ai, {dim})", f"limit(ai.tensor, {dim} -> oo)", f"limit(time, {dim} -> oo)", f"elasticity(ai, {dim})",
            f"solve(ai.tensor == ridge, {dim})", f"solve(time == 1 ms, {dim})", f"solve(flops == 1 TFLOP, {dim})",
        ):  # fmt: skip
            yield text, "h200"


def ask_everything(module: Module, op: Op, timer: Timer) -> None:
    """Every kind of question, with dims open and at each workload; refusals are answers, too."""
    workloads = [None, *(w.name for w in module.workloads_of(op.name))]
    for boundary in op.boundaries:
        for workload in workloads if boundary.name == "" else workloads[:2]:
            for text, machine in questions(op):
                timer.whose = f"{op.name}: {text}" + (f" at {workload}" if workload else "")
                try:
                    answer = query(
                        module,
                        op,
                        text,
                        workload=workload,
                        machine=machine or None,
                        boundary=boundary.name,
                        why=True,
                    )
                except Failure:
                    continue
                answer.to_json(), answer.to_latex()


def count_random(seed: int, timer: Timer) -> None:
    """The costs of a random op, tidied and printed as a package prints them."""
    sys.path.insert(0, str(ROOT / "tests" / "analysis"))
    from random_ops import Maker  # type: ignore[import-not-found]

    op = Maker(seed).op()
    timer.whose = f"random op {seed}"
    try:
        costs = cost(op)
    except Failure:
        return
    forms = list(flop_totals(costs.flops).values())
    for name in costs.boundaries:
        forms += byte_totals(costs, name).values()
    for form in forms:
        closed_form_python(tidy(form), integer=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the longest call; 1 if it took more than a second."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.sympy_calls", description="The longest call into SymPy"
    )
    parser.add_argument("specs", nargs="*", metavar="SPEC", help="specs or folders (all that ship)")
    parser.add_argument("--random", type=int, default=500, metavar="N", help="so many random ops (500)")
    options = parser.parse_args(argv)
    paths = [Path(p) for p in options.specs] or [ROOT / "specs"]
    with watching() as timer:
        for path in (
            p for folder in paths for p in ([folder] if folder.is_file() else sorted(folder.rglob("*.op")))
        ):
            module = load(path)
            for op in module.ops:
                ask_everything(module, op, timer)
                gc.collect()
        for seed in range(options.random):
            count_random(seed, timer)
            if seed % 100 == 99:
                gc.collect()
    longest = timer.longest
    print(
        f"{timer.count} calls; the longest: sympy.{longest.name} of {longest.size} operations, "
        f"{longest.seconds:.3f} s of CPU, for {longest.whose}"
    )
    return int(longest.seconds > 1)


if __name__ == "__main__":
    sys.exit(main())
